"""nginx.py DATA SCRATCH EPOCHS: a server hands out all files of DATA, over one connection, each epoch."""
import http.client
import os
import socket
import subprocess
import sys
import time

from job import Job

PATIENCE = 60  # seconds
SETTINGS = """
daemon off; worker_processes 2; pid {scratch}/pid; error_log {scratch}/error.log; {user}
events {{ worker_connections 64; }}
http {{
  access_log off; sendfile on; keepalive_requests 100000;
  client_body_temp_path {scratch}/a; proxy_temp_path {scratch}/b; fastcgi_temp_path {scratch}/c;
  uwsgi_temp_path {scratch}/d; scgi_temp_path {scratch}/e;
  server {{ listen unix:{scratch}/socket; root {data}; }}
}}
"""


class Link(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=PATIENCE)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(self.path)


def answers(path):
    with socket.socket(socket.AF_UNIX) as link:
        return link.connect_ex(path) == 0


def main():
    data, scratch, epochs = sys.argv[1], sys.argv[2], int(sys.argv[3])
    settings = os.path.join(scratch, "nginx.conf")
    with open(settings, "w", encoding="ascii") as file:
        file.write(SETTINGS.format(scratch=scratch, data=data, user="user root;" if os.geteuid() == 0 else ""))
    server = subprocess.Popen(["nginx", "-p", scratch, "-c", settings, "-e", os.path.join(scratch, "error.log")])
    path, job = os.path.join(scratch, "socket"), Job()
    deadline = time.monotonic() + PATIENCE
    while not answers(path):
        if server.poll() is not None or time.monotonic() > deadline:
            sys.exit("the server does not come up")
        time.sleep(0.001)
    names = sorted(os.path.relpath(os.path.join(above, name), data)
                   for above, _, files in os.walk(data) for name in files)
    try:
        for _ in range(epochs):
            with job.epoch():
                link = Link(path)
                for name in names:
                    link.request("GET", "/" + name)
                    answer = link.getresponse()
                    job.see((answer.status, answer.read()))
                link.close()
    finally:
        server.terminate()
        server.wait(PATIENCE)
    job.end()


if __name__ == "__main__":
    main()
