"""What the jobs share: times of their epochs, and a digest of all that they saw."""
import contextlib
import hashlib
import json
import time


class Job:
    def __init__(self):
        self.seconds, self.hash = [], hashlib.sha256()

    @contextlib.contextmanager
    def epoch(self):
        started = time.monotonic()
        yield
        self.seconds.append(time.monotonic() - started)

    def see(self, content):
        self.hash.update(content if isinstance(content, (bytes, bytearray, memoryview)) else
                         repr(content).encode())

    def end(self):
        print(json.dumps({"epochs": self.seconds, "digest": self.hash.hexdigest()}))
