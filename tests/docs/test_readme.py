#!/usr/bin/env python3
"""Tests the README: its program builds and prints what it should, the commands it shows are
accepted, and the files it names are there.

    test_readme.py BUILD
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from math import exp
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "README.md").read_text()
failures = []


def check(what, holds, why=""):
    print("ok" if holds else "FAILED", what, "" if holds else why)
    if not holds:
        failures.append(what)


def softmax_diagonal():
    """Returns the two numbers of the program: softmax of x · xᵀ by rows, at [0, 0] and [1, 1]."""
    x = ((1, 2, 3), (4, 5, 6))
    rows = [[sum(a * b for a, b in zip(r, s)) for s in x] for r in x]
    return [1 / sum(exp(v - row[i]) for v in row) for i, row in enumerate(rows)]


def check_program(build, folder):
    programs = re.findall(r"^<!-- example -->\n```c\n(.*?)^```", TEXT, re.S | re.M)
    check("there is one program", len(programs) == 1)
    source = folder / "example.c"
    source.write_text(programs[0])
    sanitize = os.environ.get("TENON_SANITIZE")
    compilers = ["gcc"] if sanitize else [c for c in ("gcc", "clang-14", "clang") if shutil.which(c)]
    for compiler in compilers:
        program = folder / compiler
        command = [compiler, "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
                   f"-I{ROOT}/include", source, "-o", program, f"-L{build}", "-ltenon",
                   f"-Wl,-rpath,{build}"]
        r = subprocess.run(command + ([f"-fsanitize={sanitize}"] if sanitize else []),
                           capture_output=True, text=True)
        check(f"{compiler} builds it", r.returncode == 0, r.stderr)
        if r.returncode:
            continue
        r = subprocess.run([program], capture_output=True, text=True, timeout=100)
        expected = softmax_diagonal()
        try:
            got = [float(word) for word in r.stdout.split()]
        except ValueError:
            got = []
        same = len(got) == 2 and all(abs(a - b) <= 1e-5 * b + 1e-12 for a, b in zip(got, expected))
        check(f"{compiler}'s prints them", r.returncode == 0 and same and not r.stderr,
              f"{r}, expected {expected}")
        r = subprocess.run([program], capture_output=True, text=True, timeout=100,
                           env={**os.environ, "TENON_DEVICE": "ABACUS"})
        check(f"{compiler}'s tells of failure", r.returncode == 1 and "ABACUS" in r.stderr and
              not r.stdout, f"{r}")
    check("a compiler was there", compilers)


def check_command(build):
    """Checks that the command accepts each `tenon VERB … --option` of the README."""
    tenon = build / "tenon"
    lines = re.findall(r"^    tenon (\w+)(.*?)(?:#.*)?$", TEXT, re.M)
    check("commands are shown", len(lines) >= 4)
    for verb, rest in lines if tenon.exists() else []:
        r = subprocess.run([tenon, "help", verb], capture_output=True, text=True)
        missing = [o for o in re.findall(r"--[a-z-]+", rest) if o not in r.stdout]
        check(f"tenon {verb}", r.returncode == 0 and not missing, f"{missing} {r.stderr}")


def check_paths():
    """Checks paths in back quotes and in command lines."""
    quoted = re.findall(r"`([\w.-]+/[\w./-]*)`", TEXT)
    typed = re.findall(r"^    (scripts/[\w.-]+)", TEXT, re.M)
    check("paths are named", len(quoted) >= 5 and len(typed) >= 2)
    for path in sorted({*quoted, *typed, *re.findall(r"`(\w+\.md)`", TEXT)}):
        check(path, (ROOT / path).exists(), "is not there")
    for path in typed:
        check(f"{path} can be run", os.access(ROOT / path, os.X_OK))


def check_targets():
    """Checks the CMake targets: those that the install tests link to."""
    named = set(re.findall(r"tenon::\w+", TEXT))
    used = set(re.findall(r"tenon::\w+", (ROOT / "tests/install/CMakeLists.txt").read_text()))
    check("targets", named == used, f"{named} here, {used} there")
    check("presets", set(re.findall(r"--preset (\w+)", TEXT)) <=
          set(re.findall(r'"name": "(\w+)"', (ROOT / "CMakePresets.json").read_text())))


def check_numbers():
    types = len(re.findall(r"^\s*X\(TN_\w+, \d+, \"", (ROOT / "include/tenon/dtype.h").read_text(),
                           re.M))
    said = re.search(r"(\d+) data types", TEXT)
    check("the number of data types", said and int(said.group(1)) == types, f"there are {types}")


def check_setup():
    """Checks scripts/setup.sh: --help installs nothing, and unknown options are errors."""
    for option, status in (("--help", 0), ("-h", 0), ("--tets", 2)):
        done = subprocess.run([ROOT / "scripts" / "setup.sh", option], capture_output=True, text=True,
                              check=False)
        said = done.stderr if status else done.stdout
        check(f"setup.sh {option}", done.returncode == status and "--tests" in said, done)


def main(build):
    with tempfile.TemporaryDirectory() as folder:
        check_program(build, Path(folder))
    check_command(build)
    check_paths()
    check_targets()
    check_setup()
    check_numbers()
    return bool(failures)


sys.exit(main(Path(sys.argv[1]).resolve()))
