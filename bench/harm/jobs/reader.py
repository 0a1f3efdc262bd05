"""reader.py DATA SCRATCH EPOCHS PROGRAM: Caffe's way through an LMDB, by the benchmarks' own reader: in order,
at a steady pace."""
import json
import subprocess
import sys

from job import Job

PACE = 100  # MB/s of computing


def main():
    done = subprocess.run([sys.argv[4], "lmdb", sys.argv[1], "--passes", sys.argv[3], "--pace", str(PACE)],
                          stdout=subprocess.PIPE, check=True)
    passes = json.loads(done.stdout)["passes"]
    job = Job()
    job.seconds = [one["seconds"] for one in passes]
    job.see([(one["bytes"], one["digest"]) for one in passes])
    job.end()


if __name__ == "__main__":
    main()
