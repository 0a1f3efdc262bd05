"""How large files and classes may be, by the text that clang-format leaves: what begins at an indentation ends with a
brace at the same one. How long functions may be is in .clang-tidy."""
import re

LONGEST_FILE = 600  # lines; a longer file is two
LONGEST_SHIPPED = 400  # likewise, of what ships
MOST_METHODS, MOST_MEMBERS = 25, 15  # public methods, and members, of a class
EXEMPT = ("optimizer/packs/pack_store.h",)  # chunks will replace it


def without_comments(line):
    return re.sub(r'"(?:[^"\\]|\\.)*"', '""', line).split("//")[0].rstrip()


def classes(lines):
    """(first line, last line, whether it is a struct) of each class, counted from 0."""
    for at, line in enumerate(lines):
        found = re.match(r"( *)(class|struct|union) .*", line)
        if not found or line.endswith(";"):
            continue
        opened = at
        while opened < len(lines) - 1 and not lines[opened].endswith(("{", ";")):
            opened += 1
        if lines[opened].endswith("{"):
            end = opened + 1
            while end < len(lines) and not re.match(rf" {{{len(found.group(1))}}}\}}", lines[end]):
                end += 1
            yield at, opened, end, found.group(2) != "class"


def size_of_class(lines, public):
    """(public methods, members) of the class whose body these lines are, without its nested ones."""
    methods, members, depth, statement = 0, 0, 0, ""
    for line in lines:
        text = line.strip()
        if text in ("public:", "protected:", "private:"):
            public = text == "public:"
            continue
        statement = (statement + " " + text).strip()
        depth += text.count("{") - text.count("}")
        if depth > 0 or not statement.endswith((";", "}")):
            continue
        one, statement = statement, ""
        if re.match(r"(using|friend|static|class|struct|enum|union|typedef|template <.*> (class|struct))\b", one):
            if re.match(r"static\b", one) and "(" in one and public:
                methods += 1
            elif re.match(r"(struct|class|union|enum)\b.*\}\s*\w+[^{}]*;$", one):
                members += 1
            continue
        declared = re.sub(r"\{.*\}", "", one)
        declared = re.sub(r"<[^<>]*>", "", re.sub(r"<[^<>]*>", "", declared))
        declared = re.sub(r" = [^,;]*", "", declared)
        if "(" in declared:
            methods += public and "= delete" not in one and "operator=" not in one and "~" not in one
        else:
            members += 1 + declared.count(",")
    return methods, members


def check(path, lines, ships):
    """What is too large in this C or C++ file, a line for each. A struct is a list of data: its members are not
    counted."""
    longest = LONGEST_SHIPPED if ships else LONGEST_FILE
    found = [f"{path}: {len(lines)} lines, more than {longest}"] if len(lines) > longest else []
    if not ships:
        return found
    code = [without_comments(line) for line in lines]
    for first, opened, last, is_struct in classes(code):
        methods, members = size_of_class(code[opened + 1:last], is_struct)
        if methods > MOST_METHODS:
            found.append(f"{path}:{first + 1}: a class of {methods} public methods, more than {MOST_METHODS}")
        if members > MOST_MEMBERS and not is_struct and path not in EXEMPT:
            found.append(f"{path}:{first + 1}: a class of {members} members, more than {MOST_MEMBERS}")
    return found
