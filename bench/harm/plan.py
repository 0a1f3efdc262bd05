"""What harm.toml says: jobs, grounds, and the rows that they make."""
import dataclasses
import hashlib
import os
import tomllib

from bench.lib.place import BUILD, LIBRARY, TOP, Failed

FOLDER = os.path.join(TOP, "bench", "harm")
FILE = os.path.join(FOLDER, "harm.toml")
# Files of the benchmark itself on which figures depend; the others choose, compute and print.
MEASURING = ("harm.toml", "data.py", "gluster.py", "grounds.py", "run.py")


@dataclasses.dataclass(frozen=True)
class Ground:
    name: str
    kind: str  # local, slowfs, gluster
    share: float  # of each job's count
    pages: str = ""  # local: "read" or "evicted"
    options: tuple = ()  # slowfs's
    rate: str = ""  # gluster: of the link, as tc writes it
    optional: bool = False


@dataclasses.dataclass(frozen=True)
class Job:
    name: str
    data: str  # kind, see data.py
    count: int
    least: int
    script: str = ""
    command: tuple = ()
    arguments: tuple = ()  # of the script
    output: str = ""  # "tree": what is left in the scratch folder counts
    user: str = ""  # the user that runs it, if not the one that runs the benchmark
    grounds: tuple = ()  # all that are not optional, unless it names some
    gluster: bool = False

    def count_on(self, ground):
        return max(self.least, int(self.count * ground.share))


@dataclasses.dataclass(frozen=True)
class Row:
    job: Job
    ground: Ground

    @property
    def name(self):
        return f"{self.job.name}@{self.ground.name}"


@dataclasses.dataclass(frozen=True)
class Plan:
    epochs: int
    rounds: int
    worst: int  # rows that are measured again
    worst_rounds: int
    rows: tuple


def load(path=FILE):
    with open(path, "rb") as text:
        said = tomllib.load(text)

    def made(kind, name, values):
        values = {key: tuple(one) if isinstance(one, list) else one for key, one in values.items()}
        try:
            return kind(name=name, **values)
        except TypeError as why:
            raise Failed(f"{path}: {name}: {why}") from None

    grounds = [made(Ground, name, values) for name, values in said["grounds"].items()]
    jobs = [made(Job, name, values) for name, values in said["jobs"].items()]
    for job in jobs:
        if bool(job.script) == bool(job.command):
            raise Failed(f"{path}: {job.name}: one of script and command")

    def wanted(job, ground):
        if ground.optional:
            return ground.kind == "gluster" and job.gluster
        return not job.grounds or ground.name in job.grounds

    rows = tuple(Row(job, ground) for job in jobs for ground in grounds if wanted(job, ground))
    return Plan(said["epochs"], said["rounds"], said["worst"], said["worst_rounds"], rows)


def fingerprint():
    """Of all that the figures depend on in the tree: what was measured with another is measured again."""
    whole = hashlib.sha256()
    paths = [LIBRARY, *(os.path.join(BUILD, name) for name in ("sluice-optimizer", "bench/slowfs", "bench/reader"))]
    for top in (FOLDER, os.path.join(TOP, "adapters")):
        for above, _, names in os.walk(top):
            paths += [os.path.join(above, name) for name in names if name.endswith((".toml", ".js", ".java", ".py"))
                      and (above != FOLDER or name in MEASURING)]
    for path in sorted(paths):
        with open(path, "rb") as file:
            whole.update(hashlib.file_digest(file, "sha256").digest())
    return whole.hexdigest()[:16]
