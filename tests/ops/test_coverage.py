"""Checks that the tests of this folder called every function that ops.h declares, and every one of
tensor.h that makes a tensor from nothing, callbacks apart. CTest runs those tests first."""

import os
import sys
from pathlib import Path

from binding import OPS, TENSOR, calls_of

if os.environ.get("TENON_SANITIZE"):
    print("skipped: a library with sanitizers does not load into Python, so nothing was called")
    sys.exit(77)

made = {name for name, (_, parameters) in TENSOR.items()
        if parameters[:1] == ["tn_context *context"] and not name.startswith(("dim_", "wrap_"))}
made -= {"realize", "custom"}
OPS.pop("scan")  # with a body in C: tests/unit/test_scan.c
OPS.pop("cond")  # likewise: tests/unit/test_cond.c
for collective in "all_reduce", "all_gather", "reduce_scatter":
    OPS.pop(collective)  # of lists of tensors, on devices: tests/unit/test_devices.c

called = set()
for test in Path(__file__).parent.glob("test_*.py"):
    if test.name != Path(__file__).name:
        called |= set(calls_of(sys.argv[1], test).read_text().split())

missing = sorted((set(OPS) | made) - called)
print(f"{len(OPS)} operations and {len(made)} functions that make tensors; "
      f"{len(missing)} not called: {' '.join(missing)}")
sys.exit(bool(missing) or len(OPS) < 120)
