#!/usr/bin/env python3
"""Compares the pairs of the CPU: each case of the operator suite has the same bits by LLVM as by C.

    test_pairs.py BUILD_FOLDER

Skipped without the LLVM module; records.py says how many cases are run.
"""

import sys
import tempfile

import records

PAIRS = ("c/cc", "llvm/llvm")


def main():
    if why := records.reason_to_skip(TENON_PAIR="llvm/llvm"):
        print(f"skipped: no LLVM module to compare: {why}")
        sys.exit(77)
    compared = 0
    with tempfile.TemporaryDirectory() as folder:
        for suite in records.SUITES:
            first, second = (records.record(suite, folder, pair, TENON_PAIR=pair) for pair in PAIRS)
            if differ := records.different(suite, first, second):
                sys.exit(f"{suite.name}: {len(differ)} cases differ, as {differ[:5]}")
            compared += len(first)
    print(f"{compared} results have the same bits")
    sys.exit(compared < 100)


main()
