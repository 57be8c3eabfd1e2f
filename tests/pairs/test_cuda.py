#!/usr/bin/env python3
"""Runs the operator suite on CUDA:0 of the stand-in driver, whose kernels are CUDA C compiled for the
processor (tests/cuda), and compares it with the CPU's pair of C: results are those that the suite
expects, and have the same bits but for sums, products and what is made of them, whose terms a team
adds in an order of its own.

    test_cuda.py BUILD_FOLDER

records.py says how many cases are run.
"""

import os
import sys
import tempfile

import records

# Suites in which some results are sums of a team's terms.
SUMS = ("test_contract", "test_reduce")
MOST_SUMS = 0.2
CUDA = {"TENON_DEVICE": "CUDA", "TENON_NVRTC": "",
        "LD_LIBRARY_PATH": f"{records.BUILD}/tests/cuda:{os.environ.get('LD_LIBRARY_PATH', '')}"}


def main():
    if why := records.reason_to_skip(**CUDA):
        if os.environ.get("TENON_SANITIZE"):
            print(f"SKIPPED: {why}")
            sys.exit(77)
        sys.exit(f"the stand-in driver does not run: {why}")
    compared = 0
    with tempfile.TemporaryDirectory() as folder:
        for suite in records.SUITES:
            first = records.record(suite, folder, "CUDA", **CUDA)
            second = records.record(suite, folder, "CPU", TENON_DEVICE="CPU", TENON_PAIR="c/cc")
            differ = records.different(suite, first, second)
            if len(differ) > (MOST_SUMS * len(first) + 2 if suite.stem in SUMS else 0):
                sys.exit(f"{suite.name}: {len(differ)} of {len(first)} cases differ, as {differ[:5]}")
            compared += len(first) - len(differ)
            print(f"{suite.stem}: {len(first)} results, {len(differ)} sums with other bits", flush=True)
    print(f"{compared} results have the same bits")
    sys.exit(compared < 100)


main()
