"""Runs suites of tests/ops with a record of each result's bits (TENON_TEST_RECORD), for tests that
compare two ways to compute. One case in TENON_TEST_SHARE is run (default 10, with TENON_LONG 1:
all), which ones depends on TENON_TEST_SEED."""

import os
import pathlib
import subprocess
import sys

BUILD = pathlib.Path(sys.argv[1])
OPS = pathlib.Path(__file__).resolve().parents[1] / "ops"
SUITES = [p for p in sorted(OPS.glob("test_*.py")) if p.stem != "test_coverage"]


def run(command, **environment):
    return subprocess.run(command, env={**os.environ, **environment}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)


def reason_to_skip(**environment):
    """Returns why kernels cannot be run so; "" if they can."""
    if os.environ.get("TENON_SANITIZE"):
        return "a library with sanitizers does not load into Python"
    done = run([BUILD / "tenon", "bench", "add:4x4", "--repeat", "1"], **environment)
    return done.stdout.strip() if done.returncode else ""


def record(suite, folder, name, **environment):
    """Runs a suite so; returns {label: hash}, with a number where a label is repeated."""
    path = pathlib.Path(folder) / f"{suite.stem}-{name.replace('/', '-')}"
    share = os.environ.get("TENON_TEST_SHARE") or ("1" if os.environ.get("TENON_LONG") else "10")
    done = run([sys.executable, suite, BUILD], TENON_TEST_RECORD=str(path), TENON_TEST_SHARE=share,
               **environment)
    if done.returncode:
        sys.exit(f"{suite.name} fails with {name}:\n{done.stdout}")
    found = {}
    for line in path.read_text().splitlines():
        label, value = line.rsplit("\t", 1)
        found[f"{label} #{len(found)}"] = value
    return found


def different(suite, first, second):
    """Returns the labels whose hashes differ."""
    if list(first) != list(second):
        sys.exit(f"{suite.name}: the two ran other cases")
    return [label for label in first if first[label] != second[label]]
