#!/usr/bin/python3
"""The socket's folder is missing, unwritable, a symbolic link, a file, too open, or planted by
another user: the job is right, says one line, and nothing is created through it."""
import os
import shutil
import socket

import harness
from harness import claim

STRANGER = 65534


def test(place):
    argv = harness.victim("map_scan")
    plain = place.run(argv, library=None)
    root = os.geteuid() == 0

    def attempt(what, folder, complains=True, **settings):
        done = place.run(argv, SLUICE_SOCKET=os.path.join(folder, "s.sock"), **settings)
        harness.same(plain, done, what)
        if complains:
            claim(len(harness.sluice_lines(done)) >= 1, f"{what}: not a word about it")
        return done

    missing = os.path.join(place.folder, "missing", "deeper")
    attempt("missing", missing)
    claim(not os.path.exists(missing) or os.stat(missing).st_mode & 0o77 == 0, "a folder too open")
    aim = os.path.join(place.folder, "aim")
    link = os.path.join(place.folder, "link")
    os.mkdir(aim, 0o700)
    os.symlink(aim, link)
    attempt("a symbolic link", link)
    claim(os.listdir(aim) == [], f"created through a link: {os.listdir(aim)}")
    file = os.path.join(place.folder, "file")
    with open(file, "w", encoding="ascii"):
        pass
    attempt("a file", file)
    wide = os.path.join(place.folder, "wide")
    os.mkdir(wide)
    os.chmod(wide, 0o777)
    done = attempt("writable by all", wide)
    claim(f"{wide} is not this user's alone (chmod 700 it" in done.stderr, f"no remedy: {done.stderr}")
    claim(os.listdir(wide) == [], f"created where all may write: {os.listdir(wide)}")
    attempt("a path too long for a socket", os.path.join(place.folder, "x" * 120))
    if root:
        planted = os.path.join(place.folder, "planted")
        os.mkdir(planted, 0o700)
        # A stranger listens there already: a job must not send it anything.
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind(os.path.join(planted, "s.sock"))
        listener.listen()
        listener.settimeout(0.1)
        os.chown(planted, STRANGER, STRANGER)
        os.chown(os.path.join(planted, "s.sock"), STRANGER, STRANGER)
        attempt("planted by another user", planted)
        try:
            heard = listener.accept()[0].recv(100)
            claim(not heard, f"a stranger received {heard!r}")
        except TimeoutError:
            pass
        read_only = os.path.join(place.folder, "read-only")
        os.mkdir(read_only, 0o500)
        os.chown(read_only, STRANGER, STRANGER)
        os.chmod(place.folder, 0o755)

        def ordinary():
            os.setgroups([])
            os.setgid(STRANGER)
            os.setuid(STRANGER)

        os.chmod(place.work, 0o777)
        data = [os.path.join(place.folder, "scan.bin")] * 3
        shutil.copy(os.path.join(harness.DATA, "scan.bin"), data[0])
        tools = os.path.join(place.folder, "tools")
        os.mkdir(tools)
        for name in ("libsluice.so", "sluice-optimizer", "victims/map_scan"):
            shutil.copy(os.path.join(harness.BUILD, name), tools)
        done = place.run([tools + "/map_scan", *data], preexec=ordinary, SLUICE_DATASET=data[0],
                         library=tools + "/libsluice.so",
                         SLUICE_SOCKET=os.path.join(read_only, "s.sock"))
        harness.same(plain, done, "a read-only folder")
        claim(os.listdir(read_only) == [], "created in a read-only folder")
    claim(place.optimizers() == [], f"started all the same: {place.optimizers()}")
    for name in os.listdir(place.folder):
        harness.drive.end_optimizer(os.path.join(place.folder, name))


if __name__ == "__main__":
    harness.main(test)
