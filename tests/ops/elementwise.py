"""Helpers of the tests of elementwise operators: special values, types to try, result types,
tolerances."""

import numpy as np

from binding import DTYPES, FLOATS, INTEGERS

SPECIAL = np.array([0.0, -0.0, 1, -1, 0.5, -0.5, 2.5, 3.5, -2.5, np.inf, -np.inf, np.nan, 100,
                    -100])
TAKES = {"NUMBER": FLOATS + INTEGERS, "FLOAT": list(DTYPES), "TEST": list(DTYPES),
         "BITS": ["bool"] + INTEGERS, "ANY": list(DTYPES), "SHIFT": INTEGERS}


def types_to_try(rule, i):
    """Returns all types that a rule of ops.h takes; for floating functions and tests, which convert
    first, three floats and one other type in turn."""
    others = [t for t in TAKES[rule] if t not in FLOATS]
    floats = [t for t in TAKES[rule] if t in FLOATS]
    if rule in ("FLOAT", "TEST"):
        floats = ["f32", "f64", ("f16", "bf16")[i % 2]]
        others = [others[i % len(others)]]
    return floats + others


def floating(kind):
    """Returns the type of a floating function's result."""
    return kind if kind in FLOATS else "f32"


def result_type(rule, kind):
    return {"TEST": "bool", "FLOAT": floating(kind)}.get(rule, kind)


# Error bounds in units in the last place: those of transcendental.rules, and those that follow for
# functions made of these. Functions that are not listed are exact.
ULPS = {"rsqrt": 1, "exp": 1, "exp2": 1, "expm1": 2, "log": 1, "log2": 1, "log1p": 2, "sin": 2,
        "cos": 2, "tan": 4, "asin": 2, "acos": 2, "atan": 3, "sinh": 2, "cosh": 2, "tanh": 2,
        "asinh": 3, "acosh": 3, "atanh": 3, "erf": 2, "sigmoid": 2, "silu": 3, "gelu": 3,
        "gelu_tanh": 3, "softplus": 3, "softsign": 2, "mish": 4, "hardsigmoid": 2, "hardswish": 3,
        "selu": 3, "elu": 3, "celu": 3, "leaky_relu": 1, "pow": 1, "atan2": 4, "floordiv": 1}


def ulps_of(name, kind):
    """Returns the error bound; NumPy's own f64 functions are inexact too."""
    own = 1 if name in ULPS and kind == "f64" else 0
    return own + (16 if (name, kind) == ("pow", "f64") else ULPS.get(name, 0))
