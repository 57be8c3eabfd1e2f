"""Runs collectives over Open MPI: one to four processes of tests/group/processes.c and the example,
by mpirun on this machine; one that is killed; and a program without Open MPI. Skipped (77) where
there is no mpirun."""

import os
import pathlib
import re
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


def main():
    if not shutil.which("mpirun"):
        print("skipped: there is no mpirun (on Debian: apt install openmpi-bin)")
        sys.exit(77)
    for n, cases in ((1, ("collectives", "refuses")), (2, ("collectives", "products", "training")),
                     (4, ("collectives", "products", "training", "refuses"))):
        for case in cases:
            fine(mpirun(n, PROGRAM, case), f"{case} of {n} processes")
    other = r"all_reduce of f32, process \d of \d: other processes run another"
    for n, case in ((3, "differ"), (2, "shapes")):
        told = fine(mpirun(n, PROGRAM, case), f"{case} of {n} processes")
        assert len(re.findall(other, told)) == n, told
    told = mpirun(3, PROGRAM, "dies", options=("--enable-recovery",)).stdout
    for rank in (0, 2):
        assert re.search(rf"process {rank} goes on: .*all_reduce", told), told
    example = BUILD / "examples" / "several_processes"
    told = fine(mpirun(2, example), "the example")
    assert "2 processes: y = 3.000 x + -0.500" in told, told


main()
