"""The C functions of libsluice.so in this process, and what they take. Private to the package."""
import array
import ctypes
import os

LATER = ("sluice_importance", "sluice_report_importance", "sluice_report_labelled", "sluice_select",
         "sluice_serve", "sluice_selection", "sluice_rank_of", "sluice_seed", "sluice_waited",
         "sluice_reads_for_others", "sluice_locate_parts", "sluice_located", "sluice_watch_opens",
         "sluice_take_opens", "sluice_next", "sluice_substitutes", "sluice_rank",
         "sluice_tentative")  # may be missing


def _find():
    """The library's functions by name, with their C types; none if one not in LATER is missing."""
    number, u32, u64, text = ctypes.c_int, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_char_p
    indices, texts = ctypes.c_void_p, ctypes.POINTER(text)
    # Functions called for each sample hold the GIL: releasing it costs more than the call, which
    # never waits. The others may wait, and release it.
    cheap, waiting = ctypes.PyDLL(None), ctypes.CDLL(None)
    table = (
        (waiting, "sluice_dataset", (text, u64)),
        (waiting, "sluice_order", (number, u32, u64, indices, u64, u32)),
        (cheap, "sluice_begin", (number, u64)),
        (cheap, "sluice_end", (number, u64)),
        (cheap, "sluice_next", (number, number, number)),
        (waiting, "sluice_fetch_begin", (number,)),
        (waiting, "sluice_fetch_end", (number,)),
        (cheap, "sluice_wanted", ()),
        (waiting, "sluice_locate_files", (number, u64, texts, u64)),
        (waiting, "sluice_locate_parts", (number, u64, texts, u64, u32)),
        (waiting, "sluice_located", (number,)),
        (cheap, "sluice_watch_opens", (number,)),
        (cheap, "sluice_take_opens", (indices, u64)),
        (waiting, "sluice_locate_extent", (number, u64, text, u64, u64)),
        (waiting, "sluice_locate_extents", (number, u64, text, indices, indices, u64)),
        (waiting, "sluice_locate_keys", (number, u64, text, text, indices, u64)),
        (cheap, "sluice_importance", ()),
        (cheap, "sluice_substitutes", ()),
        (cheap, "sluice_tentative", ()),
        (waiting, "sluice_report_importance", (number, indices, indices, u64)),
        (waiting, "sluice_report_labelled", (number, indices, indices, indices, u64)),
        (waiting, "sluice_select", (number, u32, indices, u64)),
        (waiting, "sluice_serve", (number, u32, u64, indices, indices, u64)),
        (cheap, "sluice_selection", (indices,)),
        (cheap, "sluice_rank_of", (text,)),
        (cheap, "sluice_rank", (u32, u32, u32)),
        (cheap, "sluice_seed", (u64,)),
        (cheap, "sluice_waited", (u64,)),
        (cheap, "sluice_reads_for_others", ()),
    )
    functions = {}
    for library, name, types in table:
        try:
            function = getattr(library, name)
        except AttributeError:
            if name in LATER:
                continue
            return {}
        function.argtypes, function.restype = types, number
        functions[name] = function
    return functions


found = _find()  # by name; empty in a process without the library


def encode(value):
    """A string, bytes or path as bytes."""
    encoded = os.fsencode(value)
    if b"\0" in encoded:
        raise ValueError("embedded null byte")
    return encoded


def encode_all(paths):
    """The paths as bytes. One encoding of all is ten times faster than one for each."""
    try:
        encoded = os.fsencode("\0".join(paths)).split(b"\0")
    except TypeError:  # some are bytes or PathLike
        return [encode(path) for path in paths]
    if len(encoded) != len(paths):
        raise ValueError("embedded null byte")
    return encoded


def absolute(paths, here):
    """The paths as bytes, and absolute, but for empty ones."""
    encoded = encode_all(paths)
    if all(path.startswith(b"/") for path in encoded):
        return encoded
    return [here + path if path[:1] not in (b"/", b"") else path for path in encoded]


def integers(indices):
    """A ctypes array of 64-bit integers, over the same memory if possible, and its length."""
    try:
        view = memoryview(indices)
        fits = view.ndim == 1 and view.c_contiguous and view.format in ("q", "Q", "l", "L")
    except TypeError:
        fits = False
    if not fits or view.itemsize != 8:
        view = memoryview(array.array("q", indices))
    kind = ctypes.c_uint64 * len(view)
    return (kind.from_buffer_copy(view) if view.readonly else kind.from_buffer(view)), len(view)
