"""redis.py DATA SCRATCH EPOCHS: a server starts from a dump in DATA and returns some of it; each epoch
again."""
import os
import socket
import subprocess
import sys
import time

from job import Job

PATIENCE = 60  # seconds


def ask(path, *commands):
    """The server's answers to inline commands, as bytes; None while it is not there or loads."""
    with socket.socket(socket.AF_UNIX) as link:
        try:
            link.connect(path)
        except OSError:
            return None
        link.sendall("".join(command + "\r\n" for command in commands).encode() + b"QUIT\r\n")
        answer = b""
        while part := link.recv(1 << 16):
            answer += part
    return None if answer.startswith(b"-LOADING") else answer


def main():
    data, scratch, epochs = sys.argv[1], sys.argv[2], int(sys.argv[3])
    path = os.path.join(scratch, "socket")
    job = Job()
    for _ in range(epochs):
        with job.epoch():
            server = subprocess.Popen(
                ["redis-server", "--port", "0", "--unixsocket", path, "--dir", data, "--dbfilename",
                 "dump.rdb", "--save", "", "--logfile", os.path.join(scratch, "log")])
            deadline = time.monotonic() + PATIENCE
            while (answer := ask(path, "DBSIZE", "GET key:7", "GET key:4711", "STRLEN key:99")) is None:
                if server.poll() is not None or time.monotonic() > deadline:
                    sys.exit("the server does not answer")
                time.sleep(0.001)
            ask(path, "SHUTDOWN NOSAVE")
            server.wait(PATIENCE)
        job.see(answer)
    job.end()


if __name__ == "__main__":
    main()
