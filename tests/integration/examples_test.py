#!/usr/bin/python3
"""The examples for torchrun, Slurm and Kubernetes, as far as one machine can run them: the training prints
what it prints without Sluice, and Sluice has followed its processes."""
# test: timeout=240
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import harness

EXAMPLES = os.path.join(harness.TOP, "examples")
WORK = os.environ.get("TEST_DIR") or tempfile.mkdtemp(prefix="sluice-examples-test-")
SLUICE = os.path.join(harness.BUILD, "sluice")
TORCHRUN = os.path.join(harness.BUILD, "venv", "bin", "torchrun")
BATCHES = 16  # of 120 samples, two epochs of them, whatever the number of processes; or more

# Slurm's srun: the command once for each task, at the same time, because they wait for each other.
SRUN = """#!/bin/sh
tasks=$SLURM_NTASKS
while :; do
  case $1 in
    --ntasks=*) tasks=${1#*=} ;;
    --*) ;;
    *) break ;;
  esac
  shift
done
echo "$tasks $*" >>"$SRUN_LOG"
children=
task=0
while [ $task -lt $tasks ]; do
  SLURM_PROCID=$task SLURM_NTASKS=$tasks SLUICE_REPORT=$REPORTS.$task "$@" &
  children="$children $!"
  task=$((task + 1))
done
status=0
for child in $children; do wait $child || status=$?; done
exit $status
"""
SCONTROL = """#!/bin/sh
[ "$1 $2 $3" = "show hostnames nodes[1-2]" ] && printf '127.0.0.1\\nnode2\\n'
"""


def has_torch(python):
    return subprocess.run([python, "-c", "import torch.distributed as d; assert d.is_available()"],
                          capture_output=True, check=False).returncode == 0


def write(path, text, mode=0o755):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    os.chmod(path, mode)
    return path


def make_files(folder):
    for number in range(120):
        path = os.path.join(folder, "abc"[number % 3], str(number))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(bytes(number * step % 251 for step in range(1, 700 + number)))
    return folder


class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = os.path.join(WORK, "root")
        cls.data = make_files(os.path.join(cls.root, "data", "train"))
        cls.model = write(os.path.join(cls.root, "data", "model", "weights"), "x" * 100_000, 0o644)
        cls.tools = os.path.join(WORK, "tools")
        os.mkdir(cls.tools)
        os.symlink(SLUICE, os.path.join(cls.tools, "sluice"))

    def setUp(self):
        place = harness.Place()
        self.place = place.__enter__()
        self.addCleanup(place.__exit__, None, None, None)
        self.settings = {"SLUICE_SOCKET": os.path.join(place.sockets, "s.sock"), "SLUICE_LINGER": "60",
                         "SLUICE_PATIENCE": harness.Place.patience, "SLUICE_DATASET": self.data,
                         "SLUICE_STAGE": "always"}

    def output(self, *command, **more):
        environment = {"PATH": f"{self.tools}:/usr/bin:/bin", "HOME": WORK, "LC_ALL": "C.UTF-8", **more}
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200, cwd=WORK,
                              env=environment)
        self.assertEqual(done.returncode, 0, f"{command}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def trained(self, text):
        """What the training has printed, among what else a launcher prints."""
        found = re.search(r"samples 240\nchecksums \d+\nloss \d\.\d+\n", text)
        self.assertTrue(found, text)
        return found.group()

    def batches_followed(self, report):
        """How many batches the training took from data loaders that Sluice watched."""
        with open(report, encoding="utf-8") as file:
            return json.load(file)["loop_waits"]

    @unittest.skipUnless(os.path.exists(TORCHRUN), "no build/venv with PyTorch 2")
    def test_torchrun(self):
        os.symlink(TORCHRUN, os.path.join(self.tools, "torchrun"))
        plain = self.output("torchrun", "--standalone", "--nproc-per-node", "2",
                            os.path.join(EXAMPLES, "train_files.py"), self.data)
        report = os.path.join(WORK, "torchrun.json")
        text = self.output(os.path.join(EXAMPLES, "torchrun.sh"), "2", self.data, SLUICE_REPORT=report,
                           **self.settings)
        self.assertEqual(self.trained(text), self.trained(plain))
        self.assertGreaterEqual(self.batches_followed(report), BATCHES)

    @unittest.skipUnless(has_torch("/usr/bin/python3"), "no PyTorch in /usr/bin/python3")
    def test_slurm(self):
        write(os.path.join(self.tools, "srun"), SRUN)
        write(os.path.join(self.tools, "scontrol"), SCONTROL)
        log, reports = os.path.join(WORK, "srun.log"), os.path.join(WORK, "slurm.json")
        job = {"SLURM_JOB_ID": str(os.getpid()), "SLURM_JOB_NUM_NODES": "2", "SLURM_NTASKS": "3",
               "SLURM_JOB_NODELIST": "nodes[1-2]", "SLURM_SUBMIT_DIR": EXAMPLES, "SRUN_LOG": log, "REPORTS": reports}
        plain = self.output("srun", "/usr/bin/python3", os.path.join(EXAMPLES, "train_files.py"), self.data,
                            MASTER_ADDR="127.0.0.1", MASTER_PORT=str(20000 + os.getpid() % 20000), **job)
        os.unlink(log)
        text = self.output("bash", os.path.join(EXAMPLES, "slurm.sbatch"), self.data, self.model, **job,
                           **self.settings)
        self.assertEqual(self.trained(text), self.trained(plain))
        with open(log, encoding="ascii") as steps:
            warmed, trained = steps.read().splitlines()
        self.assertEqual(warmed, f"2 sluice warm {self.model}")
        self.assertRegex(trained, r"\A3 sluice run -- python3 ")
        self.assertGreaterEqual(sum(self.batches_followed(f"{reports}.{task}") for task in range(3)), BATCHES)
        # Without a model nothing is read beforehand.
        os.unlink(log)
        self.output("bash", os.path.join(EXAMPLES, "slurm.sbatch"), self.data, **job, **self.settings)
        with open(log, encoding="ascii") as steps:
            self.assertEqual(steps.read().count("\n"), 1)

    @unittest.skipUnless(has_torch("/usr/bin/python3"), "no PyTorch in /usr/bin/python3")
    def test_kubernetes(self):
        try:
            import yaml
        except ImportError:
            self.skipTest("no yaml module")
        with open(os.path.join(EXAMPLES, "kubernetes.yaml"), encoding="utf-8") as text:
            pod = yaml.safe_load(text)["spec"]["template"]["spec"]
        volumes = {volume["name"] for volume in pod["volumes"]}
        containers = pod["initContainers"] + pod["containers"]
        for container in containers:
            for mount in container["volumeMounts"]:
                self.assertIn(mount["name"], volumes)
        version = self.output("sluice", "--version").split()[1]
        self.assertEqual({c["image"] for c in pod["initContainers"]}, {f"registry.example/sluice:{version}"})
        # The paths of the containers, below a folder.
        self.output(os.path.join(harness.TOP, "scripts", "install"), os.path.join(self.root, "usr"),
                    B=os.environ.get("B", "build"))
        os.mkdir(os.path.join(self.root, "sluice"))
        os.symlink(EXAMPLES, os.path.join(self.root, "app"))

        def here(text):
            return re.sub(r"(?<![\w/.])/(usr|sluice|data|app)(?=/)", rf"{self.root}/\1", text)
        report = os.path.join(WORK, "kubernetes.json")
        for container in containers:
            variables = {one["name"]: here(str(one["value"])) for one in container.get("env", [])}
            text = self.output(*map(here, container["command"]), **variables, **self.settings, SLUICE_REPORT=report)
        plain = self.output("/usr/bin/python3", os.path.join(EXAMPLES, "train_files.py"), self.data)
        self.assertEqual(self.trained(text), self.trained(plain))
        self.assertGreaterEqual(self.batches_followed(report), BATCHES)
        (sidecar,) = self.place.optimizers()
        self.assertEqual(os.readlink(f"/proc/{sidecar}/exe"),
                         os.path.realpath(self.root) + "/sluice/bin/sluice-optimizer")


if __name__ == "__main__":
    sys.exit(0 if unittest.main(exit=False, verbosity=0).result.wasSuccessful() else 1)
