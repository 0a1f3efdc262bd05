"""How the paths of a dataset's samples follow from its columns or from the sample's number: rules that explain which
files the first samples were seen to read. A rule that explains them all is taken for the others; one that does not is
never used."""
import itertools
import re

MOST_FILES = 4  # of a sample
SHIFTS = (0, 1, -1)
DIVISORS = (10, 100, 256, 500, 512, 1000, 1024, 5000, 10000)
MOST_VIA = 12
MOST_SLOTS, MOST_PAIRS = 3, 6
MOST_LOOKS = 4000  # at cells, in one search


def tidy(path):
    """The path without empty components and those that are ".", as the library reports it."""
    if "//" in path or "./" in path or path[-1:] in ("/", "."):
        parts = [part for part in path.split("/") if part not in ("", ".")]
        return ("/" if path[:1] == "/" else "") + "/".join(parts)
    return path


def _stem(name):
    return name.rpartition(".")[0] or name


class Form:
    """What of a cell's text is in the path: without the first `drop` components, without its extension (`stem`), and of
    that the characters `cut`."""
    __slots__ = ("drop", "stem", "cut")

    def __init__(self, drop=0, stem=False, cut=None):
        self.drop, self.stem, self.cut = drop, stem, cut

    def of(self, text):
        text = tidy(text)
        if self.drop:
            parts = text.split("/")
            if self.drop >= len(parts):
                return None
            text = "/".join(parts[self.drop:])
        if self.stem:
            above, slash, name = text.rpartition("/")
            text = above + slash + _stem(name)
        return text if self.cut is None else text[self.cut[0]:self.cut[1]] or None


class Cells:
    """The texts of a column in the row of the sample's number, or in the row that the column `via` has for it."""

    def __init__(self, column, via=None, form=None):
        self.column, self.via, self.form = column, via, form or Form()

    def raw(self, rows):
        if self.via is not None:
            rows = self.via.cells(rows)
            return [None if row is None else self.column.cell(row) for row in rows]
        if rows and max(rows) >= self.column.size:
            rows = [row % self.column.size for row in rows]
        return self.column.cells(rows)

    def texts(self, rows):
        form, cells = self.form, self.raw(rows)
        if not form.drop and not form.stem and form.cut is None:
            if None not in cells:
                joined = "\0".join(cells) + "\0"
                if not any(untidy in joined for untidy in ("//", "./", "/\0", ".\0")):
                    return cells
            return [None if text is None else tidy(text) for text in cells]
        return [None if text is None else form.of(text) for text in cells]

    def with_form(self, form):
        return Cells(self.column, self.via, form)


class Number:
    """The sample's number, or that in a column, in decimal: number // divisor + shift, with at least `width` digits."""

    def __init__(self, column=None, shift=0, divisor=1, width=0):
        self.column, self.shift, self.divisor, self.width = column, shift, divisor, width

    def texts(self, rows):
        shift, divisor, width = self.shift, self.divisor, self.width
        numbers = rows if self.column is None else self.column.cells(rows)
        return [None if number is None or number // divisor + shift < 0 else "%0*d" % (width, number // divisor + shift)
                for number in numbers]


class Rule:
    """A path: texts and sources of texts, one after the other."""

    def __init__(self, pieces):
        self.pieces = [piece for piece in pieces if piece != ""]

    def paths(self, rows):
        """By row; None where the rule gives none."""
        if len(self.pieces) == 1 and not isinstance(self.pieces[0], str):
            return self.pieces[0].texts(rows)
        columns = [[piece] * len(rows) if isinstance(piece, str) else piece.texts(rows) for piece in self.pieces]
        return [None if None in parts else "".join(parts) for parts in zip(*columns)]


def padded(rule, seen):
    """(another rule that explains the same, a row for which they differ) where it is open whether numbers are padded:
    all that were seen had equally many digits. Else None."""
    rows = [row for one in seen for row in one.rows]
    for place, piece in enumerate(rule.pieces):
        if not isinstance(piece, Number) or piece.width or piece.column is not None or piece.divisor != 1:
            continue
        lengths = set(map(len, piece.texts(rows)))
        least = max(0, -piece.shift)
        if len(lengths) == 1 and len(piece.texts([least])[0]) < max(lengths):
            wider = Number(None, piece.shift, 1, max(lengths))
            return Rule(rule.pieces[:place] + [wider] + rule.pieces[place + 1:]), least
    return None


class Seen:
    """What was read for some samples: their rows, and the paths that were opened, without telling which belong to which
    sample where there are several."""
    __slots__ = ("rows", "paths")

    def __init__(self, rows, paths):
        self.rows, self.paths = list(rows), paths


def holds(rule, seen):
    """Whether it explains all that was seen, of at least two different files."""
    different = set()
    for one in seen:
        for path in rule.paths(one.rows):
            if path is None or path not in one.paths:
                return False
            different.add(path)
    return len(different) > 1


def search(seen, found, likely=lambda rule: True):
    """The rules for the files of each sample, as many as are found; `found`: a columns.Found; `likely`: a last test of
    a rule that explains what was seen."""
    seen, found.looks = _distinct(seen), MOST_LOOKS
    if sum(len(one.rows) for one in seen) < 2:
        return []
    rules, explained = [], set()
    for path in seen[0].paths:
        if path in explained or len(rules) == MOST_FILES:
            continue
        rule = next((rule for rule in _hypotheses(path, seen, found) if holds(rule, seen) and likely(rule)), None)
        if rule is not None:
            rules.append(rule)
            explained.update(rule.paths(seen[0].rows))
        elif len(seen[0].rows) > 1:  # which of them it belongs to is not known: one attempt is enough
            break
    return rules


def _distinct(seen):
    """Without what was opened for most of the samples (a table of labels), and without samples of which nothing was."""
    times = {}
    for one in seen:
        for path in set(one.paths):
            times[path] = times.get(path, 0) + 1
    often = {path for path, count in times.items() if count > 1 and 2 * count > len(seen)}
    left = (Seen(one.rows, [path for path in dict.fromkeys(one.paths) if path not in often]) for one in seen)
    return [one for one in left if one.paths and min(one.rows) >= 0]


def _hypotheses(path, seen, found):
    for row in seen[0].rows:
        for cells in _sources(row, found):
            yield from _around(path, row, cells)
    for row in seen[0].rows:
        above, slash, name = path.rpartition("/")
        for pieces in _numbers(name, row, found):
            yield Rule([above + slash, *pieces])
    for other in seen[1:MOST_PAIRS] if len(seen[0].rows) == 1 else ():
        if len(other.rows) == 1:
            for beside in other.paths:
                yield from _by_components([path, beside], [seen[0].rows[0], other.rows[0]], found)


def _sources(row, found):
    for cells in _all_sources(row, found):
        found.looks -= 1
        if found.looks < 0:
            return
        yield cells


def _all_sources(row, found):
    """Columns with a cell for the row: by its number, or by what a column of numbers has there."""
    for column in found.texts:
        yield Cells(column)
    for via in found.numbers[:MOST_VIA]:
        at = via.cell(row)
        if at is not None and row < via.size:
            for column in found.texts:
                if 0 <= at < column.size:
                    yield Cells(column, via)


def _around(path, row, cells):
    """Rules in which the cell, or an end of it, is a part of the path."""
    text = cells.raw([row])[0]
    parts = tidy(text).split("/") if text else []
    if not parts or _stem(parts[-1]) not in path:  # all forms end in it, or in more
        return
    for drop in range(len(parts)):
        for stem in (False, True):
            form = Form(drop, stem)
            piece = form.of(text)
            at = path.rfind(piece) if piece else -1
            if at >= 0:
                yield Rule([path[:at], cells.with_form(form), path[at + len(piece):]])
                break


def _numbers(name, row, found):
    """Pieces for a component with a number in it."""
    for digits in re.finditer("[0-9]+", name):
        value, text = int(digits.group()), digits.group()
        if len(text) > 18:
            continue
        widths = [len(text)] if text[0] == "0" and len(text) > 1 else [0, len(text)]
        numbers = [Number(None, value - row, 1)]
        numbers += [Number(None, shift, divisor) for divisor in DIVISORS for shift in SHIFTS
                    if row // divisor + shift == value]
        for column in found.numbers if found.looks > 0 else ():
            found.looks -= 1
            at = column.cell(row)
            numbers += [Number(column, shift) for shift in SHIFTS if at is not None and at + shift == value]
        for number in numbers:
            for width in widths:
                sized = Number(number.column, number.shift, number.divisor, width)
                yield [name[:digits.start()], sized, name[digits.end():]]


def _by_components(paths, rows, found):
    """Rules of the components in which the paths of two samples differ."""
    parts, others = (path.split("/") for path in paths)
    places = [place for place, (a, b) in enumerate(zip(parts, others)) if a != b]
    if len(parts) != len(others) or not 0 < len(places) <= MOST_SLOTS:
        return
    options = []
    for place in places:
        pair = [parts[place], others[place]]
        options.append(list(itertools.islice(_of_component(pair, rows, found), 8)))
    for chosen in itertools.product(*options):
        slots = dict(zip(places, chosen))
        pieces = []
        for place, part in enumerate(parts):
            pieces += ["/"] if place else []
            pieces += slots.get(place, [part])
        yield Rule(pieces)


def _of_component(pair, rows, found):
    """Pieces that explain a component of two samples' paths."""
    for pieces in _component_pieces(pair[0], rows[0], found):
        if Rule(pieces).paths(rows) == pair:
            yield pieces


def _component_pieces(name, row, found):
    yield from _numbers(name, row, found)
    for cells in _sources(row, found):
        text = cells.raw([row])[0]
        if not text:
            continue
        for rule in _around(name, row, cells):
            yield rule.pieces
        parts = tidy(text).split("/")
        for begin in range(5 if len(name) <= 4 else 0):
            cut = (begin, begin + len(name))
            if _stem(parts[-1])[cut[0]:cut[1]] == name:
                yield [cells.with_form(Form(len(parts) - 1, True, cut))]
