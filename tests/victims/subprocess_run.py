"""Children as Python makes them, while a mapping is being read."""
import hashlib
import mmap
import multiprocessing
import os
import subprocess
import sys

data = sys.argv[1]
with open(data, "rb") as file:
    view = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def digest(part):
    size = len(view) // 4
    return hashlib.sha256(view[part * size:(part + 1) * size]).hexdigest()


def main():
    print(digest(0))
    for close in (True, False):
        for shell in (True, False):
            done = subprocess.run("cksum < /dev/null; exit 4" if shell else ["cksum", data],
                                  shell=shell, close_fds=close, capture_output=True, check=False)
            print(done.returncode, done.stdout, done.stderr)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as cat:
        print(len(cat.communicate(view[100:5000000])[0]))
    print(subprocess.run([sys.executable, "-c", "import sys; print(len(open(sys.argv[1], 'rb').read()))",
                          data], capture_output=True, check=False, preexec_fn=lambda: os.nice(1)).stdout)
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            print(method, pool.map(digest, range(4)))
    pid = os.fork()
    if pid == 0:
        print(digest(3), flush=True)
        os._exit(9)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


if __name__ == "__main__":
    main()
