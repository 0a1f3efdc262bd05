"""The Debian package. dpkg-shlibdeps finds what it depends on, dpkg-deb packs it."""
import gzip
import hashlib
import os
import shutil
import subprocess

MAINTAINER = "The Sluice authors <sluice@localhost>"
DESCRIPTION = """feed I/O-bound jobs: the bytes that they ask for next are in memory
 Put `sluice run` in front of an unmodified training command that reads its
 data from slow storage. A preloaded library observes what is read, and a
 sidecar prefetches it with io_uring."""
# Bytecode that a Python run by root has written beside the modules belongs to no package.
BEFORE_REMOVAL = """#!/bin/sh
set -e
find "$DPKG_ROOT/usr/share/sluice" -depth -type d -name __pycache__ -exec rm -rf {} +
"""
MODULE = "usr/lib/python3/dist-packages/sluice"
COPYRIGHT = """Sluice
Copyright 2026 The Sluice authors

Licensed under the Apache License, Version 2.0. On Debian systems its text is in
/usr/share/common-licenses/Apache-2.0.

"""


def programs(root):
    """Paths below `root` of what the loader loads."""
    found = []
    for folder in ("usr/bin", "usr/lib"):
        for name in sorted(os.listdir(os.path.join(root, folder))):
            path = os.path.join(folder, name)
            if os.path.isfile(os.path.join(root, path)):
                found.append(path)
    return found


def depends(root, work):
    """The packages of the libraries that the programs need, as a field of the control file."""
    os.makedirs(os.path.join(work, "debian"))
    with open(os.path.join(work, "debian/control"), "w", encoding="utf-8") as control:
        control.write("Source: sluice\n\nPackage: sluice\nArchitecture: any\n")
    found = subprocess.run(["dpkg-shlibdeps", "-O", *(os.path.join(root, path) for path in programs(root))],
                           cwd=work, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return found.stdout.decode().partition("=")[2].strip()


def compress(path):
    """As Debian wants documents: gzip's best, without name and time."""
    with open(path, "rb") as file:
        data = file.read()
    with open(path + ".gz", "wb") as file:
        file.write(gzip.compress(data, 9, mtime=0))
    os.unlink(path)


def lay_out(prefix, root, notices):
    shutil.copytree(prefix, os.path.join(root, "usr"))
    os.makedirs(os.path.join(root, os.path.dirname(MODULE)))
    os.symlink("../../../share/sluice/adapters/python/sluice", os.path.join(root, MODULE))
    documents = os.path.join(root, "usr/share/doc/sluice")
    os.rename(os.path.join(documents, "CHANGELOG.md"), os.path.join(documents, "changelog"))
    os.unlink(os.path.join(documents, "LICENSE"))
    compress(os.path.join(documents, "changelog"))
    compress(os.path.join(root, "usr/share/man/man1/sluice.1"))
    with open(os.path.join(documents, "copyright"), "w", encoding="utf-8") as text:
        text.write(COPYRIGHT + notices)


def regular_files(root):
    return sorted(os.path.relpath(os.path.join(parent, name), root)
                  for parent, _, names in os.walk(root) for name in names
                  if not os.path.islink(os.path.join(parent, name)))


def write_control(root, needs, version):
    sums, size = "", 0
    for name in regular_files(root):
        with open(os.path.join(root, name), "rb") as file:
            data = file.read()
        sums += f"{hashlib.md5(data).hexdigest()}  {name}\n"
        size += (len(data) + 4095) // 4096 * 4
    control = {
        "control": f"Package: sluice\nVersion: {version}\nArchitecture: amd64\nMaintainer: {MAINTAINER}\n"
                   f"Installed-Size: {size}\nDepends: {needs}\nSuggests: python3\nSection: utils\n"
                   f"Priority: optional\nDescription: {DESCRIPTION}\n",
        "md5sums": sums,
        "triggers": "activate-noawait ldconfig\n",
        "prerm": BEFORE_REMOVAL,
    }
    os.mkdir(os.path.join(root, "DEBIAN"))
    for name, text in control.items():
        path = os.path.join(root, "DEBIAN", name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755 if name == "prerm" else 0o644)


def make(prefix, work, version, epoch, notices):
    """Returns the package's path, in `work`."""
    root = os.path.join(work, "deb")
    lay_out(prefix, root, notices)
    write_control(root, depends(root, work), version)
    package = os.path.join(work, f"sluice_{version}_amd64.deb")
    # The number of threads would decide where xz begins another block.
    subprocess.run(["dpkg-deb", "--build", "--root-owner-group", "-Zxz", "--threads-max=1", root, package],
                   check=True, stdout=subprocess.DEVNULL, env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch)})
    return package
