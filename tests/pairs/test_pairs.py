#!/usr/bin/env python3
"""Compares the pairs of the CPU: each case of the operator suite has the same bits by LLVM as by C.

    test_pairs.py BUILD_FOLDER

Runs the suite of tests/ops with each pair, which records a hash of each result (TENON_TEST_RECORD),
and compares the records. One case in TENON_TEST_SHARE is run (default 10, with TENON_LONG 1: all), which ones
depends on TENON_TEST_SEED. Skipped without the LLVM module.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(sys.argv[1])
OPS = pathlib.Path(__file__).resolve().parents[1] / "ops"
PAIRS = ("c/cc", "llvm/llvm")
SUITES = [p for p in sorted(OPS.glob("test_*.py")) if p.stem != "test_coverage"]


def module_is_missing():
    if os.environ.get("TENON_SANITIZE"):
        return "a library with sanitizers does not load into Python"
    command = [BUILD / "tenon", "bench", "add:4x4", "--repeat", "1"]
    done = subprocess.run(command, env={**os.environ, "TENON_PAIR": "llvm/llvm"}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.stdout.strip() if done.returncode else ""


def record(suite, pair, folder):
    """Runs a suite with a pair; returns {label: hash}, with a number where a label is repeated."""
    path = pathlib.Path(folder) / f"{suite.stem}-{pair.replace('/', '-')}"
    share = os.environ.get("TENON_TEST_SHARE") or ("1" if os.environ.get("TENON_LONG") else "10")
    env = {**os.environ, "TENON_PAIR": pair, "TENON_TEST_RECORD": str(path),
           "TENON_TEST_SHARE": share}
    done = subprocess.run([sys.executable, suite, BUILD], env=env, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        sys.exit(f"{suite.name} fails with {pair}:\n{done.stdout}")
    found = {}
    for line in path.read_text().splitlines():
        label, value = line.rsplit("\t", 1)
        found[f"{label} #{len(found)}"] = value
    return found


def main():
    if why := module_is_missing():
        print(f"skipped: no LLVM module to compare: {why}")
        sys.exit(77)
    compared = 0
    with tempfile.TemporaryDirectory() as folder:
        for suite in SUITES:
            first, second = (record(suite, pair, folder) for pair in PAIRS)
            if list(first) != list(second):
                sys.exit(f"{suite.name}: the pairs ran other cases")
            differ = [label for label in first if first[label] != second[label]]
            if differ:
                sys.exit(f"{suite.name}: {len(differ)} cases differ, as {differ[:5]}")
            compared += len(first)
    print(f"{compared} results have the same bits")
    sys.exit(compared < 100)


main()
