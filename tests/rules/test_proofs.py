#!/usr/bin/env python3
"""Proves with z3 what rulec says is to be proved; the answer must be unsat everywhere.

    test_proofs.py BUILD     BUILD holds the program rulec
"""

import collections
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
LEAST = 250  # that many obligations there are
SECONDS = 20  # for each


def main():
    if not shutil.which("z3"):
        print("skipped: z3 is not installed")
        return 77
    program = pathlib.Path(sys.argv[1]) / "rulec"
    rules = sorted((ROOT / "src/rules").glob("*.rules"))
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "obligations.smt2"
        subprocess.run([program, "--obligations", out, *rules], check=True)
        done = subprocess.run(["z3", f"-t:{SECONDS * 1000}", out], capture_output=True, text=True)

    proved, wrong, name = 0, [], ""
    unproved = collections.Counter()
    for line in done.stdout.splitlines():
        if line == "unsat":
            proved += 1
        elif line in ("sat", "unknown", "timeout") or line.startswith("(error"):
            wrong.append(f"{name}: {line}")
        elif ": " in line:
            unproved[line.split(": ")[1]] += 1
        else:
            name = line
    for line in wrong:
        print(line)
    print(f"{proved} proved; not proved: " + ", ".join(f"{n} ({why})" for why, n in unproved.items()))
    if proved < LEAST:
        print(f"only {proved} obligations, not {LEAST}")
    return 1 if wrong or proved < LEAST or done.stderr else 0


if __name__ == "__main__":
    sys.exit(main())
