"""Starts processes by mpirun on this machine, for the tests of groups."""

import os
import pathlib
import shutil
import subprocess
import sys

BUILD = pathlib.Path(sys.argv[1]).resolve()
PROGRAM = BUILD / "tests" / "group_processes"
LIMIT = 120


def run(command, **environment):
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                   "TENON_THREADS": "1", "ASAN_OPTIONS": "detect_leaks=0", **environment}
    return subprocess.run(command, env=environment, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=LIMIT, check=False)


def mpirun(n, *command, options=(), **environment):
    return run(["mpirun", "--oversubscribe", *options, "-n", str(n), *command], **environment)


def fine(done, what):
    if done.returncode:
        sys.exit(f"{what}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def skip_without_mpi():
    if not shutil.which("mpirun"):
        print("skipped: there is no mpirun (on Debian: apt install openmpi-bin)")
        sys.exit(77)
