#!/usr/bin/python3
"""A program that is linked with the address sanitizer's shared runtime, which is gcc's default, ended
with its complaint about the order of libraries. Under `sluice run` it runs, and finds what it is for."""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../integration"))
import harness
from harness import claim

JOB = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char** argv) {
  char* bytes = malloc(4096);
  int fd = open(argv[1], O_RDONLY);
  long sum = 0;
  const long got = read(fd, bytes, 4096);
  for (long i = 0; i < got; ++i) sum += bytes[i];
  printf("%ld %s\n", sum, getenv("ASAN_OPTIONS") ? getenv("ASAN_OPTIONS") : "none");
  fflush(stdout);
  if (argc > 2) pread(fd, bytes, 4097, 0);  // one more than there is room for
  free(bytes);
  return 0;
}
"""


def run(place, options, *arguments):
    argv = [os.path.join(harness.BUILD, "sluice"), "run", "--",
            os.path.join(place.work, "job"), os.path.join(place.work, "data", "file"), *arguments]
    return place.run(argv, library=None, ASAN_OPTIONS=options, SLUICE_LINGER="1",
                     SLUICE_SOCKET=os.path.join(place.sockets, "s.sock"))


def test(place):
    if not shutil.which("gcc"):
        harness.skip("gcc is not here")
    with open(os.path.join(place.work, "data", "file"), "wb") as file:
        file.write(b"a" * 9000)
    job = os.path.join(place.work, "job")
    built = subprocess.run(["gcc", "-g", "-w", "-x", "c", "-", "-fsanitize=address", "-o", job],
                           input=JOB, text=True, capture_output=True, check=False)
    if built.returncode != 0:
        harness.skip("gcc has no address sanitizer")
    linked = subprocess.run(["ldd", job], capture_output=True, text=True, check=True).stdout
    claim("libasan" in linked, "the runtime is not shared: this is no test")
    for options, expected in ((None, "verify_asan_link_order=0"),
                              ("exitcode=54", "exitcode=54:verify_asan_link_order=0")):
        done = run(place, options)
        claim(done.returncode == 0, f"status {done.returncode}: {done.stderr}")
        claim(done.stdout.split()[1:] == [expected], done.stdout)
    done = run(place, "exitcode=54", "overflow")
    claim(done.returncode == 54 and "heap-buffer-overflow" in done.stderr,
          f"the overflow was not found: {done.returncode} {done.stderr}")
    done = run(place, "verify_asan_link_order=1")
    claim(done.returncode != 0, "the user's own settings were lost")


if __name__ == "__main__":
    harness.main(test)
