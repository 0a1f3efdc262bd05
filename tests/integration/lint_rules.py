#!/usr/bin/python3
# test: timeout=60
"""scripts/lint finds what the rules of the tree forbid, each planted into a tree of its own."""
import os
import shutil
import subprocess
import tempfile

import harness
from harness import claim

# path, its text, what lint says of it
PLANTED = (
    ("policy/planner/late.cc", "#include <chrono>\n", "policy/ is pure: no chrono"),
    ("policy/replacement/file.cc", "#include <unistd.h>\n", "policy/ is pure: no unistd.h"),
    ("policy/streams/clock.cc", "uint64_t now() { return clock_gettime(0, nullptr); }\n",
     "policy/ is pure: no clock_gettime"),
    ("policy/importance/die.cc", "#include <random>\n", "policy/ is pure: no random"),
    ("policy/samples/up.cc", '#include "policy/planner/scheduler.h"\n',
     "policy/samples/ may not include policy/planner/"),
    ("policy/util/out.cc", '#include "optimizer/io/fd.h"\n', "policy/util/ may not include optimizer/io/"),
    ("optimizer/io/back.cc", '#include "optimizer/loop/base.h"\n',
     "optimizer/io/ may not include optimizer/loop/"),
    ("optimizer/loop/up.cc", '#include "optimizer/sessions/sessions.h"\n',
     "optimizer/loop/ may not include optimizer/sessions/"),
    ("optimizer/sessions/up.cc", '#include "optimizer/services/streams/files.h"\n',
     "optimizer/sessions/ may not include optimizer/services/"),
    ("preload/base/side.cc", '#include "policy/util/random.h"\n', "preload/base/ may not include policy/util/"),
    ("preload/loose.cc", "int x;\n", "lies in no room"),
    ("protocol/test.h", '#pragma once\n#include "tests/victims/data.h"\n', "protocol/ may not include tests/"),
    ("preload/handler/grow.cc", 'void* grow() { return malloc(8); }\n#include "preload/handler/poison.h"\n',
     "malloc in code that a signal handler runs"),
    ("preload/handler/late.cc", '#include "preload/handler/poison.h"\n#include <vector>\n',
     'its last header is to be "preload/handler/poison.h"'),
    ("preload/session/up.cc", '#include "preload/samples/places.h"\n',
     "preload/session/ may not include preload/samples/"),
    ("cli/getenv.cc", 'const char* home = getenv("HOME");\n', "getenv belongs in the configuration"),
    ("bench/cold.py", 'open("/proc/sys/vm/drop_' 'caches", "w").write("3")\n',
     "other processes' caches are dropped, too"),
    ("lmdb/header.h", "int x;\n", "no #pragma once"),
    ("lmdb/long.cc", "int x;\n" * 400, "401 lines, more than 400"),
    ("tests/unit/long.cc", "int x;\n" * 600, "601 lines, more than 600"),
    ("cli/methods.h", "#pragma once\nclass Wide {\n public:\n" + "  int f(int a = 1) const { return a; }\n" * 26 + "};\n",
     "a class of 26 public methods, more than 25"),
    ("cli/members.h", "#pragma once\nclass Deep : Base {\n  std::map<int, int> a_, b_;\n" + "  int c_ = 0;\n" * 14 +
     "};\n", "a class of 16 members, more than 15"),
)
ALLOWED = (
    ("policy/planner/plan.cc", '#include <vector>\n#include "policy/streams/stream.h"\n// clock_gettime\n'),
    ("policy/util/random.h", "#pragma once\n#include <random>\n"),
    ("preload/handler/fine.cc", '#include "preload/session/events.h"\n#include "preload/handler/poison.h"\n// malloc\n'),
    ("preload/hooks/read.cc", '#include "preload/startup/startup.h"\nvoid* grow() { return malloc(8); }\n'),
    ("cli/wide.h", "#pragma once\nclass Wide {\n public:\n" + "  void f();\n" * 25 + "  class Other {\n   public:\n" +
     "    void g() {\n      int x;\n    }\n" * 25 + "  };\n\n private:\n  void h();\n" + "  int x_ = 0;\n" * 15 + "};\n"),
    ("cli/data.h", "#pragma once\nstruct Data {\n" + "  int x;\n" * 30 + "};\n"),
    ("optimizer/services/samples/core.cc", '#include "policy/planner/plan.h"\n#include <chrono>\n'),
)


def lint(tree):
    return subprocess.run([os.path.join(tree, "scripts/lint"), "rules"], cwd=tree, capture_output=True,
                          text=True, check=False)


def put(tree, path, text):
    os.makedirs(os.path.dirname(os.path.join(tree, path)), exist_ok=True)
    with open(os.path.join(tree, path), "w", encoding="utf-8") as file:
        file.write(text)


def test(_):
    with tempfile.TemporaryDirectory(prefix="sluice-lint-") as tree:
        os.makedirs(os.path.join(tree, "scripts"))
        for name in ("lint", "lint_sizes.py"):
            shutil.copy(os.path.join(harness.TOP, "scripts", name), os.path.join(tree, "scripts", name))
        for path, text in ALLOWED:
            put(tree, path, text)
        done = lint(tree)
        claim(done.returncode == 0, f"what is allowed is complained of: {done.stdout}{done.stderr}")
        for path, text, said in PLANTED:
            put(tree, path, text)
            done = lint(tree)
            os.unlink(os.path.join(tree, path))
            claim(done.returncode == 1 and len(done.stdout.splitlines()) == 1 and path in done.stdout
                  and said in done.stdout, f"{path}: {done.stdout!r} {done.stderr!r}")


if __name__ == "__main__":
    harness.main(test)
