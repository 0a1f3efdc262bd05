"""The tree that random programs are about: the same bytes, names, modes and times for every run, and
what is left of it after one."""
import hashlib
import os
import random
import shutil
import stat

USER, GROUP = 65534, 4242  # an ordinary user, and the group that may enter the folder grp
LONG_AGO = 1600000000
MAPPED, STREAMED = "mapped.bin", "streamed.bin"
_SIZES = (0, 1, 100, 511, 4096, 4097, 5000, 8191, 12288, 16384, 20000, 30000, 33000, 40960, 50001,
          65536)
_FOLDERS = ("sub", "deep", "deep/er", "grp", "other")


def _files():
    draw = random.Random(20)
    found = {}
    for index, size in enumerate(_SIZES):
        found[f"f{index:02}"] = (size, 0o644)
    for index in range(6):
        found[f"sub/g{index}"] = (draw.randrange(1, 9000), 0o644)
        found[f"other/g{index}"] = (draw.randrange(1, 9000), 0o644)
    for index in range(4):
        found[f"deep/er/h{index}"] = (draw.randrange(1, 20000), 0o644)
    for index in range(3):
        found[f"grp/p{index}"] = (draw.randrange(1, 9000), 0o644)
    found["own"] = (3000, 0o600)
    found["group"] = (3001, 0o640)
    found["closed"] = (3002, 0o000)
    found["run"] = (3003, 0o755)
    return {name: (draw.randbytes(size), mode) for name, (size, mode) in found.items()}


FILES = _files()
LARGE = {MAPPED: random.Random(21).randbytes((1 << 20) + 3),
         STREAMED: random.Random(22).randbytes((1 << 20) + 777)}
SAMPLES = sorted(FILES) + ["hard"]


def make(top, owner, as_root):
    """The tree as it is before a program runs, in a folder that is not there yet."""
    os.mkdir(top)
    for folder in _FOLDERS:
        os.mkdir(os.path.join(top, folder))
    for index, (name, (content, mode)) in enumerate(
            [*FILES.items(), *((n, (c, 0o644)) for n, c in LARGE.items())]):
        path = os.path.join(top, name)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(handle, content)
        if owner:
            os.fchown(handle, owner, owner)
        os.fchmod(handle, mode)
        os.utime(handle, (LONG_AGO + index, LONG_AGO + index))
        os.close(handle)
    os.link(os.path.join(top, "f05"), os.path.join(top, "hard"))
    for name, target in (("link", "f06"), ("dirlink", "sub"), ("dangling", "nothing"),
                         ("deep/up", "../f07")):
        os.symlink(target, os.path.join(top, name))
    if as_root:
        os.chown(os.path.join(top, "group"), owner, GROUP)
        os.chown(os.path.join(top, "grp"), 0, GROUP)
        os.chmod(os.path.join(top, "grp"), 0o750)
    if owner:
        for folder in ("", "sub", "deep", "deep/er", "other"):
            os.chown(os.path.join(top, folder), owner, owner)
    for index, folder in enumerate(("", *_FOLDERS)):
        os.utime(os.path.join(top, folder), (LONG_AGO + 100, LONG_AGO + 100 + index))


def remove(top):
    """Whatever a program has left, modes included."""
    for folder, _, _ in os.walk(top):
        os.chmod(folder, 0o700)
    shutil.rmtree(top)


def state(top):
    """One line for each name in the tree: what it is and holds. Times are compared where a program
    or none set them; those of what it changed are `now`."""
    lines = []
    for folder, folders, files in os.walk(top):
        folders.sort()
        for name in sorted(folders + files):
            path = os.path.join(folder, name)
            about = os.lstat(path)
            line = f"{os.path.relpath(path, top)} {about.st_mode:o} {about.st_uid}:{about.st_gid}"
            if stat.S_ISLNK(about.st_mode):
                line += " -> " + os.readlink(path)
            if stat.S_ISREG(about.st_mode):
                when = about.st_mtime_ns if about.st_mtime < 1700000000 else "now"
                with open(path, "rb") as file:
                    content = hashlib.sha1(file.read()).hexdigest()
                line += f" links {about.st_nlink} size {about.st_size} {when} {content}"
            lines.append(line)
    return sorted(lines)
