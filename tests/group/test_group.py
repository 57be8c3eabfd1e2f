"""Runs collectives over Open MPI: one to four processes of tests/group/processes.c and the example,
by mpirun on this machine; one that is killed; and a program without Open MPI. Skipped (77) where
there is no mpirun."""

import re

from launch import BUILD, PROGRAM, fine, mpirun, skip_without_mpi


def main():
    skip_without_mpi()
    for n, cases in ((1, ("collectives", "refuses")), (2, ("collectives", "products", "training", "devices")),
                     (4, ("collectives", "products", "training", "devices", "refuses"))):
        for case in cases:
            fine(mpirun(n, PROGRAM, case), f"{case} of {n} processes")
    other = r"all_reduce of f32, process \d of \d: other processes run another"
    for n, case in ((3, "differ"), (2, "shapes"), (2, "swapped")):
        told = fine(mpirun(n, PROGRAM, case), f"{case} of {n} processes")
        assert len(re.findall(other, told)) == n, told
    told = mpirun(3, PROGRAM, "dies", options=("--enable-recovery",)).stdout
    for rank in (0, 2):
        assert re.search(rf"process {rank} goes on: .*all_reduce", told), told
    example = BUILD / "examples" / "several_processes"
    told = fine(mpirun(2, example), "the example")
    assert "2 processes: y = 3.000 x + -0.500" in told, told


main()
