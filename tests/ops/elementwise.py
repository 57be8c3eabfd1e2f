"""What the tests of elementwise operations share."""

import numpy as np

from binding import DTYPES, FLOATS, INTEGERS

SPECIAL = np.array([0.0, -0.0, 1, -1, 0.5, -0.5, 2.5, 3.5, -2.5, np.inf, -np.inf, np.nan, 100,
                    -100])
TAKES = {"NUMBER": FLOATS + INTEGERS, "FLOAT": list(DTYPES), "TEST": list(DTYPES),
         "BITS": ["bool"] + INTEGERS, "ANY": list(DTYPES), "SHIFT": INTEGERS}


def types_to_try(rule, i):
    """All types that a rule of ops.h takes; of floating functions and tests, which convert first,
    three floats and one other type in turn."""
    others = [t for t in TAKES[rule] if t not in FLOATS]
    floats = [t for t in TAKES[rule] if t in FLOATS]
    if rule in ("FLOAT", "TEST"):
        floats = ["f32", "f64", ("f16", "bf16")[i % 2]]
        others = [others[i % len(others)]]
    return floats + others


def floating(kind):
    """The type of a floating function's result."""
    return kind if kind in FLOATS else "f32"


def result_type(rule, kind):
    return {"TEST": "bool", "FLOAT": floating(kind)}.get(rule, kind)
