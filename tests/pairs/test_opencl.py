#!/usr/bin/env python3
"""Runs the operator suite on OPENCL:0, which is PoCL where tests run, by both of its pairs, in threads
and in teams, and compares it with the CPU's pair of C: results are those that the suite expects, and
have the same bits but for sums, products and what is made of them, whose terms are added in an order
of their own: a team's, or that of other vectors.

    test_opencl.py BUILD_FOLDER

Skipped without an OpenCL device; records.py says how many cases are run.

Defects of drivers that were found, and what the library does about them:

  PoCL 3.1 with LLVM 14   float z = -0.0f; y[i] = 0.0f < x[i] ? z : x[i];   gives -0 for x[i] = +0.
                          render/c/dialect_opencl.c keeps the constant from the compiler.
  PoCL 3.1, POCL_DEVICES  clEnqueueBarrierWithWaitList(q, 1, &user_event, NULL), a marker, clFlush,
  of "basic"              clSetUserEventStatus(user_event, CL_COMPLETE): the last call never returns.
                          So a stream there cannot wait for another device; tests use "pthread".
"""

import sys
import tempfile

import records

PAIRS = ("opencl/driver", "opencl-teams/driver")

# Suites in which some results are sums, whose terms have another order.
SUMS = ("test_contract", "test_reduce")
MOST_SUMS = 0.2


def main():
    if why := records.reason_to_skip(TENON_DEVICE="OPENCL"):
        print(f"SKIPPED: no OpenCL device to test (on Debian: apt install pocl-opencl-icd "
              f"ocl-icd-libopencl1): {why}")
        sys.exit(77)
    compared = 0
    with tempfile.TemporaryDirectory() as folder:
        for suite in records.SUITES:
            expected = records.record(suite, folder, "CPU", TENON_DEVICE="CPU", TENON_PAIR="c/cc")
            for pair in PAIRS:
                made = records.record(suite, folder, "OPENCL", TENON_DEVICE="OPENCL", TENON_PAIR=pair)
                differ = records.different(suite, made, expected)
                if len(differ) > (MOST_SUMS * len(made) + 2 if suite.stem in SUMS else 0):
                    sys.exit(f"{suite.name} by {pair}: {len(differ)} of {len(made)} cases differ, as "
                             f"{differ[:5]}")
                compared += len(made) - len(differ)
                print(f"{suite.stem} by {pair}: {len(made)} results, {len(differ)} sums with other bits")
    print(f"{compared} results have the same bits")
    sys.exit(compared < 100)


main()
