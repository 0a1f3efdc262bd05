"""The wheel: package `sluice` with the programs and libraries inside it, laid out as under a PREFIX."""
import base64
import hashlib
import os
import re
import subprocess
import time
import zipfile

# sluice-lmdb needs libraries that a wheel cannot count on (protobuf, libjpeg, libpng, lmdb).
PROGRAMS = ("bin/sluice", "bin/sluice-optimizer", "lib/libsluice.so", "lib/libsluice_config.so")
PACKAGE = "share/sluice/adapters/python/sluice"


def newest_libc(paths):
    """The newest version of the C library that symbols of these are from, as (2, 34)."""
    symbols = subprocess.run(["objdump", "-T", *paths], check=True, stdout=subprocess.PIPE).stdout.decode()
    return max(tuple(map(int, found)) for found in re.findall(r"GLIBC_(\d+)\.(\d+)", symbols))


def files_of(prefix, version):
    """{name in the wheel: path}."""
    files = {"sluice/" + name: os.path.join(prefix, name) for name in PROGRAMS}
    for parent, _, names in os.walk(os.path.join(prefix, "share/sluice")):
        for name in names:
            path = os.path.join(parent, name)
            files["sluice/" + os.path.relpath(path, prefix)] = path
    for name in os.listdir(os.path.join(prefix, PACKAGE)):
        if name.endswith(".py"):
            files["sluice/" + name] = os.path.join(prefix, PACKAGE, name)
    files[f"sluice-{version}.data/data/share/man/man1/sluice.1"] = os.path.join(prefix, "share/man/man1/sluice.1")
    return files


def metadata(version):
    with open("README.md", encoding="utf-8") as readme:
        text = readme.read()
    return (f"Metadata-Version: 2.1\nName: sluice\nVersion: {version}\n"
            "Summary: Feeds I/O-bound jobs: the bytes that they ask for next are in memory\n"
            "License: Apache-2.0\nLicense-File: LICENSE\nLicense-File: NOTICES\n"
            "Classifier: License :: OSI Approved :: Apache Software License\n"
            "Classifier: Operating System :: POSIX :: Linux\n"
            "Requires-Python: >=3.6\nDescription-Content-Type: text/markdown\n\n" + text)


def record_line(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def make(prefix, work, version, epoch, notices):
    """Returns the wheel's path, in `work`."""
    files = files_of(prefix, version)
    major, minor = newest_libc([files["sluice/" + name] for name in PROGRAMS])
    tag = f"py3-none-manylinux_{major}_{minor}_x86_64"
    info = f"sluice-{version}.dist-info"
    contents = {}
    for name, path in files.items():
        with open(path, "rb") as file:
            contents[name] = (file.read(), os.access(path, os.X_OK) and "/bin/" in name)
    with open("LICENSE", "rb") as licence:
        about = {"LICENSE": licence.read()}
    about["NOTICES"] = notices.encode()
    about["METADATA"] = metadata(version).encode()
    about["WHEEL"] = f"Wheel-Version: 1.0\nGenerator: sluice\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    about["entry_points.txt"] = b"[console_scripts]\nsluice = sluice.__main__:main\n"
    contents.update({f"{info}/{name}": (data, False) for name, data in about.items()})
    record = "".join(record_line(name, contents[name][0]) for name in sorted(contents))
    contents[f"{info}/RECORD"] = (f"{record}{info}/RECORD,,\n".encode(), False)
    path = os.path.join(work, f"sluice-{version}-{tag}.whl")
    order = sorted(contents, key=lambda name: (name.startswith(info), name.endswith("RECORD"), name))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name in order:
            data, executable = contents[name]
            # A zip archive counts in steps of two seconds, from 1980.
            entry = zipfile.ZipInfo(name, max(time.gmtime(epoch)[:6], (1980, 1, 1, 0, 0, 0)))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3
            entry.external_attr = (0o100755 if executable else 0o100644) << 16
            wheel.writestr(entry, data)
    return path
