#!/usr/bin/env python3
"""Runs a tenth of the onnx package's backend tests, all of them if TENON_LONG is set, and checks
that just those fail of which docs/onnx-operators.md says so. TENON_TEST_SEED draws another tenth.

    test_conformance.py BUILD
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
try:
    import numpy  # noqa: F401
    import onnx  # noqa: F401
    import ml_dtypes  # noqa: F401
except ImportError as missing:
    print(f"skipped: {missing} (scripts/setup.sh --tests installs it)")
    sys.exit(77)
import conformance
import conformance_page
from checks import Checks
from conformance import NOT_COMPARABLE, PASSED

SHARE = 10


def main():
    if os.environ.get("TENON_SANITIZE"):
        print("skipped: a library with sanitizers does not load into Python")
        return 77
    os.environ["TENON_THREADS"] = "1"
    is_long = bool(os.environ.get("TENON_LONG"))
    seed = os.environ.get("TENON_TEST_SEED", "1")
    cases = conformance.all_cases()
    if not is_long:
        cases = conformance.sample(cases, SHARE, seed)
    known = conformance_page.read_outcomes()
    results = conformance.run_all(cases, sys.argv[1], 2)
    check, controls = Checks(), 0
    for case, result in zip(cases, results):
        expected = known.get(case.name, PASSED)
        controls += result.controls
        check(f"{case.collection} {case.name}", result.outcome == expected,
              f"{result.outcome} ({result.reason}), but docs/onnx-operators.md says {expected}; "
              "scripts/onnx-conformance.py writes the page")
    fine = sum(r.outcome in (PASSED, NOT_COMPARABLE) for r in results)
    check("corrupted expectations are noticed", controls >= 2 * fine, f"{controls} of {fine} cases")
    return check.end(len(cases))


if __name__ == "__main__":
    sys.exit(main())
