"""postgres.py DATA SCRATCH EPOCHS CLUSTER: a server loads a table from DATA with COPY, and computes sums; each
epoch again. Its own files are in SCRATCH, copied from the empty CLUSTER. Not as root."""
import glob
import os
import shutil
import subprocess
import sys

from job import Job


def main():
    data, scratch, epochs = sys.argv[1], sys.argv[2], int(sys.argv[3])
    programs = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
    cluster = os.path.join(scratch, "cluster")
    shutil.copytree(sys.argv[4], cluster)
    os.chmod(cluster, 0o700)
    subprocess.run([os.path.join(programs, "pg_ctl"), "-D", cluster, "-w", "-t", "100", "-l",
                    os.path.join(scratch, "log"), "-o", f"-c listen_addresses= -k {scratch} -F", "start"],
                   stdout=subprocess.DEVNULL, check=True)
    job = Job()
    try:
        for _ in range(epochs):
            with job.epoch():
                asked = subprocess.run(
                    [os.path.join(programs, "psql"), "-h", scratch, "-U", "harm", "-qAt", "-d", "postgres"],
                    input="drop table if exists t; create table t (id int, word text, value int);"
                          f"copy t from '{data}/table.csv' csv;"
                          "select count(*), sum(value), count(distinct word) from t;",
                    capture_output=True, text=True, check=False)
            job.see((asked.returncode, asked.stdout))
            if asked.returncode:
                print(asked.stderr, file=sys.stderr)
    finally:
        subprocess.run([os.path.join(programs, "pg_ctl"), "-D", cluster, "-w", "-m", "fast", "stop"],
                       stdout=subprocess.DEVNULL, check=True)
    job.end()


if __name__ == "__main__":
    main()
