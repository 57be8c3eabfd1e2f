"""Tests elementwise operators of two operands against NumPy, in every type that they take."""

import numpy as np

from binding import BINARY, FLOATS, SIGNED, Cases, dtype
from elementwise import SPECIAL, result_type, types_to_try, ulps_of

c = Cases()
tn = c.tn
np.seterr(all="ignore")


def integer_power(x, y):
    def one(a, b):
        if b >= 0:
            return pow(int(a), int(b), 2**64)
        return {1: 1, -1: -1 if b % 2 else 1}.get(int(a), 0)
    out = [one(a, b) % 2**64 for a, b in zip(x.ravel(), y.ravel())]
    return np.array(out, np.uint64).reshape(x.shape).astype(x.dtype)


def boolean(of_bools, of_numbers):
    return lambda x, y: of_bools(x, y) if x.dtype == np.bool_ else of_numbers(x, y)


def shifted(left):
    def of(x, y):
        bits = 8 * x.dtype.itemsize
        out = []
        for a, b in zip(x.ravel(), y.ravel()):
            count = int(b) % 2**bits
            a = int(a)
            v = (a << count if count < bits else 0) if left else a >> min(count, bits)
            out.append(v % 2**64)
        return np.array(out, np.uint64).reshape(x.shape).astype(x.dtype)
    return of


BINARY_OF = {
    "add": boolean(np.logical_or, np.add), "sub": np.subtract,
    "mul": boolean(np.logical_and, np.multiply), "div": np.divide, "floordiv": np.floor_divide,
    "mod": np.mod, "fmod": np.fmod,
    "pow": lambda x, y: integer_power(x, y) if x.dtype.kind in "iu" else np.power(x, y),
    "maximum": np.maximum, "minimum": np.minimum, "atan2": np.arctan2,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "logical_and": np.logical_and, "logical_or": np.logical_or,
    "logical_xor": np.logical_xor, "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor, "left_shift": shifted(True), "right_shift": shifted(False),
}
PAIRS = np.array([(a, b) for a in SPECIAL for b in (0.0, -0.0, 1, -2.5, np.inf, -np.inf, np.nan)])


def binary_inputs(name, kind):
    if kind == "bool":
        return c.some((7, 5), kind), c.some((7, 5), kind)
    if kind in FLOATS:
        x = np.concatenate([c.floats(40, "f64", 5), PAIRS[:, 0]])
        y = np.concatenate([c.floats(40, "f64", 5), PAIRS[:, 1]])
        return x.astype(dtype(kind)), y.astype(dtype(kind))
    x, y = c.integers((7, 5), kind), c.integers((7, 5), kind, -9, 9)
    if name in ("left_shift", "right_shift"):
        y = c.integers((7, 5), kind, -2, 8 * dtype(kind).itemsize + 2)
    y[0, :2] = 0
    if kind in SIGNED:
        x[1, :3], y[1, :3] = np.iinfo(dtype(kind)).min, (-1, 1, 2)
    return x, y


def binary(name, rule, kind):
    x, y = binary_inputs(name, kind)
    exact_in = kind in FLOATS and name in ("floordiv", "mod", "fmod")
    wide = np.float64 if kind in FLOATS or rule == "FLOAT" else x.dtype
    if exact_in and kind in ("f32", "f64"):
        wide = x.dtype  # rounded where NumPy rounds
    e = BINARY_OF[name](x.astype(wide), y.astype(wide))
    e = e.astype(dtype(result_type(rule, kind)))
    c.check(f"{name} {kind}", getattr(tn, name)(tn.of(x), tn.of(y)), e,
            ulps_of(name, kind))


for i, (name, rule) in enumerate(BINARY):
    for kind in types_to_try(rule, i):
        binary(name, rule, kind)
for name, rule in BINARY:
    kind = {"NUMBER": "bool", "BITS": "f32", "SHIFT": "f64"}.get(rule)
    if kind:
        x = tn.of(c.some(3, kind))
        c.refuse(f"{name} {kind}", getattr(tn, name)(x, x), "ERR_DTYPE", name, kind)

# Remainders of large quotients are exact, of quotients beyond the type's largest number too.
for kind in ("f32", "f64"):
    largest, tiny = np.finfo(dtype(kind)).max, np.finfo(dtype(kind)).smallest_subnormal
    x = [largest, -largest, 1e20, 7.25, largest, largest, -largest, 1, 3 * tiny]
    y = [3.3, 0.7, -1.1e-20, 1e-30, 1e-38, 7 * tiny, 1e5 * tiny, 3 * tiny, 2 * tiny]
    if kind == "f64":
        x += [1e300, -1e200, 1e250, -1e308, 1e100, largest]
        y += [1e-300, 7e-120, 1e-38, -3e-308, 2e-250, 2.0**324 / 3]
    x, y = np.array(x, dtype(kind)), np.array(y, dtype(kind))
    for name in ("fmod", "mod", "floordiv"):
        c.check(f"{name} large {kind}", getattr(tn, name)(tn.of(x), tn.of(y)),
                BINARY_OF[name](x, y), ulps_of(name, kind))

for power in (0, 1, 2, 5, 13):
    x = c.integers(20, "i32")
    c.check(f"pow by {power}", tn.pow(tn.of(x), tn.int(power)),
            integer_power(x, np.full_like(x, power)))
c.check("pow by -1", tn.pow(tn.of(np.array([1, -1, 2, 0], np.int8)), tn.int(-1)),
        np.array([1, -1, 0, 0], np.int8))

c.done(least=220)
