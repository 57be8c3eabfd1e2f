"""Runs collectives over NCCL's stand-in (tests/cuda/nccl.c): their results, what is said where NCCL is
missing or fails, and that all processes go the same way. Skipped (77) where there is no mpirun, or
the build has no stand-ins."""

import re
import sys
import tempfile

from launch import BUILD, PROGRAM, fine, mpirun, skip_without_mpi

CUDA = BUILD / "tests" / "cuda"


def told_of(n, text, told):
    assert len(re.findall(text, told)) == n, (n, text, told)


BY_MPI = r"logs: collectives of \d processes go by MPI, through host memory: "
FAULTS = (({"TENON_NCCL": "/none"}, r"NCCL is missing \(/none\): install it"),
          ({"TENON_NCCL": str(CUDA / "libcuda.so.1")}, r"NCCL has no ncclGetUniqueId \(NCCL 2.14 needed\)"),
          ({"STAND_IN_NCCL": "ncclGetUniqueId:2"}, r"NCCL cannot make an id on CUDA:0: ncclSystemError \("),
          ({"STAND_IN_NCCL": "ncclCommInitRankConfig:5"},
           r"NCCL cannot join the processes on CUDA:0: ncclInvalidUsage \("),
          ({"STAND_IN_NCCL": "ncclCommGetAsyncError:1"},
           r"NCCL cannot tell how a collective goes on CUDA:0: ncclUnhandledCudaError \("))


def one_of_two(name, value, **environment):
    """The output of two processes, the second of which has another environment."""
    return mpirun(1, PROGRAM, "engine", ":", "-n", "1", "env", f"{name}={value}", PROGRAM, "engine",
                  options=("--enable-recovery",), **environment).stdout


def nccl_is_used(cuda):
    """NCCL gets what lies on the devices, MPI the rest; the results are the same."""
    for n, case in ((3, "few"), (2, "products"), (1, "refuses")):
        fine(mpirun(n, PROGRAM, case, **cuda), f"{case} of {n} processes by NCCL")
    told = fine(mpirun(2, PROGRAM, "engine", **cuda), "the engine")
    told_of(2, "explains: a collective by NCCL\n", told)
    told_of(2, "logs: collectives of 2 processes go by NCCL on CUDA:0\n", told)
    told_of(2, r"process \d: 1 by NCCL", told)
    told = fine(mpirun(2, PROGRAM, "engine", GROUP_ENGINE="MPI", **cuda), "MPI on request")
    told_of(2, "explains: a collective by MPI, through host memory\n", told)
    told_of(2, r"process \d: 0 by NCCL", told)
    told = fine(mpirun(3, PROGRAM, "differ", **cuda), "processes that differ, by NCCL")
    told_of(3, "other processes run another", told)


def nccl_is_missing(cuda):
    """All processes go by MPI and say why, also where one alone lacks NCCL."""
    for fault, text in FAULTS:
        told = fine(mpirun(1, PROGRAM, "engine", **cuda, **fault), text)
        told_of(1, BY_MPI + text, told)
        told_of(1, "0: 0 by NCCL", told)
    for name, value in (("TENON_NCCL", "/none"), ("TENON_DEVICE", "CPU"), ("GROUP_ENGINE", "MPI"),
                        ("STAND_IN_NCCL", "ncclCommInitRankConfig:5")):
        told = one_of_two(name, value, GROUP_TIMEOUT="3", **cuda)
        told_of(1, r"process 0 " + BY_MPI + "(another process|the other processes did not come)", told)
        told_of(2, r"process \d: 0 by NCCL", told)
    for fault, text in ((FAULTS[0][0], "NCCL is missing"), ({"TENON_DEVICE": "CPU"}, "not CPU:0")):
        done = mpirun(1, PROGRAM, "engine", **{**cuda, "GROUP_ENGINE": "NCCL", **fault})
        assert done.returncode and "the engine NCCL cannot be used: " in done.stderr, done.stderr
        assert text in done.stderr, done.stderr


def nccl_fails(cuda):
    """A failure names the result and the step; a process that does not come costs a time limit."""
    for fault, text in (("ncclAllReduce:3", "start a collective on CUDA:0: ncclInternalError"),
                        ("later:6", "go on with a collective on CUDA:0: ncclRemoteError")):
        told = mpirun(1, PROGRAM, "engine", STAND_IN_NCCL=fault, **cuda).stdout
        told_of(1, f"fails: .*all_reduce of f32, process 0 of 1: NCCL cannot {text}", told)
    told = one_of_two("STAND_IN_NCCL", "skip:1", GROUP_TIMEOUT="3", **cuda)
    told_of(1, "process 0 fails: .*the other processes did not come to it within 3 s", told)


def main():
    skip_without_mpi()
    if not (CUDA / "libnccl.so.2").exists():
        print("skipped: this build has no stand-ins for CUDA")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as cache:
        cuda = {"LD_LIBRARY_PATH": str(CUDA), "TENON_DEVICE": "CUDA", "TENON_NVRTC": "",
                "TENON_CACHE": cache}
        nccl_is_used({**cuda, "TENON_NCCL": ""})
        nccl_is_missing(cuda)
        nccl_fails(cuda)


main()
