"""Elementwise operations against NumPy, in every type that they take."""

import math

import numpy as np

from binding import (BINARY, FLOATS, INTEGERS, SIGNED, UNARY, UNSIGNED, DTYPES, Cases, dtype)

c = Cases()
tn = c.tn
np.seterr(all="ignore")

ERF = np.vectorize(math.erf, otypes=[np.float64])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.logaddexp(x, 0)


def relu6(x):
    return np.minimum(np.maximum(x, 0), 6)


# ---- One operand. References take f64, or integers. ----

ROUNDING = ("floor", "ceil", "round", "trunc")
UNARY_OF = {
    "neg": np.negative, "abs": np.abs, "sign": np.sign, "square": np.square,
    "floor": np.floor, "ceil": np.ceil, "round": np.round, "trunc": np.trunc,
    "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "reciprocal": lambda x: 1 / x,
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2,
    "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin,
    "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "erf": ERF,
    "relu": lambda x: np.maximum(x, 0), "relu6": relu6, "sigmoid": sigmoid,
    "silu": lambda x: x * sigmoid(x), "gelu": lambda x: x * (1 + ERF(x / np.sqrt(2))) / 2,
    "gelu_tanh": lambda x: x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2,
    "softplus": softplus, "softsign": lambda x: x / (1 + np.abs(x)),
    "mish": lambda x: x * np.tanh(softplus(x)), "hardsigmoid": lambda x: relu6(x + 3) / 6,
    "hardswish": lambda x: x * relu6(x + 3) / 6,
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite,
    "logical_not": np.logical_not, "bitwise_not": np.bitwise_not,
}
DOMAIN = {"sqrt": (0, 50), "rsqrt": (0.01, 50), "log": (1e-4, 1e4), "log2": (1e-4, 1e4),
          "log1p": (-0.99, 50), "asin": (-1, 1), "acos": (-1, 1), "atanh": (-0.99, 0.99),
          "acosh": (1, 100), "reciprocal": (0.1, 20), "tan": (-1.5, 1.5), "sinh": (-8, 8),
          "cosh": (-8, 8), "exp": (-8, 8), "exp2": (-8, 8), "expm1": (-8, 8)}
SPECIAL = np.array([0.0, -0.0, 1, -1, 0.5, -0.5, 2.5, 3.5, -2.5, np.inf, -np.inf, np.nan, 100, -100])
# At an infinity these are 0 · ∞ or ∞ − ∞ in one way of writing them and not in another.
NO_INFINITY = ("gelu", "gelu_tanh", "mish", "silu", "hardswish")


def unary_inputs(name, kind):
    low, high = DOMAIN.get(name, (-6, 6))
    special = SPECIAL[np.isfinite(SPECIAL)] if name in NO_INFINITY else SPECIAL
    return np.concatenate([c.rng.uniform(low, high, 27), special]).astype(dtype(kind))


def floating(kind):
    return kind if kind in FLOATS else "f32"


def unary(name, rule, kind):
    of = UNARY_OF[name]
    if kind in FLOATS:
        x = unary_inputs(name, kind)
        e = of(x.astype(np.float64))
    else:
        x = c.some((5, 4), kind) if rule == "FLOAT" or kind == "bool" else c.integers((5, 4), kind)
        wide = x.astype(np.float64) if rule == "FLOAT" else x
        e = x if name in ROUNDING else of(wide)
    result = {"TEST": "bool", "FLOAT": floating(kind)}.get(rule, kind)
    c.check(f"{name} {kind}", getattr(tn, name)(tn.of(x)), e.astype(dtype(result)))


TAKES = {"NUMBER": FLOATS + INTEGERS, "FLOAT": list(DTYPES), "TEST": list(DTYPES),
         "BITS": ["bool"] + INTEGERS, "ANY": list(DTYPES), "SHIFT": INTEGERS}


def types_to_try(rule, i):
    """All floats; of the other types all for a few operations, one in turn for the rest."""
    others = [t for t in TAKES[rule] if t not in FLOATS]
    floats = [t for t in TAKES[rule] if t in FLOATS]
    if rule in ("FLOAT", "TEST"):
        floats = ["f32", "f64", ("f16", "bf16")[i % 2]]
        others = [others[i % len(others)]]
    return floats + others


for i, (name, rule) in enumerate(UNARY):
    for kind in types_to_try(rule, i):
        unary(name, rule, kind)

SELDOM = {"bool": "NUMBER", "f32": "BITS"}
for name, rule in UNARY:
    for kind, refuses in SELDOM.items():
        if rule == refuses:
            c.refuse(f"{name} {kind}", getattr(tn, name)(tn.of(c.some(3, kind))), "ERR_DTYPE", name,
                     kind)

for name, args, of in [
        ("elu", (1.3,), lambda x: np.where(x > 0, x, 1.3 * np.expm1(x))),
        ("celu", (0.7,), lambda x: np.where(x > 0, x, 0.7 * np.expm1(x / 0.7))),
        ("leaky_relu", (0.01,), lambda x: np.where(x > 0, x, 0.01 * x))]:
    for kind in FLOATS + ["i32"]:
        x = unary_inputs(name, kind) if kind in FLOATS else c.some(9, kind)
        e = of(x.astype(np.float64)).astype(dtype(floating(kind)))
        c.check(f"{name} {kind}", getattr(tn, name)(tn.of(x), *args), e)
c.refuse("celu by 0", tn.celu(tn.of(c.floats(3)), 0.0), "ERR_ARGUMENT", "celu", "alpha")

# ---- Two operands ----


def trunc_remainder(x, y):
    return np.fmod(x, y)


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
    "mod": np.mod, "fmod": trunc_remainder,
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
    result = {"TEST": "bool", "FLOAT": floating(kind)}.get(rule, kind)
    c.check(f"{name} {kind}", getattr(tn, name)(tn.of(x), tn.of(y)), e.astype(dtype(result)))


for i, (name, rule) in enumerate(BINARY):
    for kind in types_to_try(rule, i):
        binary(name, rule, kind)
for name, rule in BINARY:
    kind = {"NUMBER": "bool", "BITS": "f32", "SHIFT": "f64"}.get(rule)
    if kind:
        x = tn.of(c.some(3, kind))
        c.refuse(f"{name} {kind}", getattr(tn, name)(x, x), "ERR_DTYPE", name, kind)

# Remainders of large quotients are exact.
for kind in ("f32", "f64"):
    largest = 1e38 if kind == "f32" else 1e250
    x = np.array([largest, -largest, 1e20, 7.25, largest], dtype(kind))
    y = np.array([3.3, 0.7, -1.1e-20, 1e-30, 1e-38], dtype(kind))
    for name in ("fmod", "mod"):
        c.check(f"{name} large {kind}", getattr(tn, name)(tn.of(x), tn.of(y)),
                BINARY_OF[name](x, y), rtol=0)

for power in (0, 1, 2, 5, 13):
    x = c.integers(20, "i32")
    c.check(f"pow by {power}", tn.pow(tn.of(x), tn.int(power)),
            integer_power(x, np.full_like(x, power)))
c.check("pow by -1", tn.pow(tn.of(np.array([1, -1, 2, 0], np.int8)), tn.int(-1)),
        np.array([1, -1, 0, 0], np.int8))

# ---- Broadcasting, and operands that are views ----

for a, b in [((3, 1, 5), (4, 1)), ((), (2, 3)), ((1,), (0,)), ((2, 0, 3), (1, 3)), ((7,), (7,)),
             ((1, 1), (5, 6))]:
    x, y = c.floats(a), c.floats(b)
    c.check(f"add {a} {b}", tn.add(tn.of(x), tn.of(y)), x + y)
x, y = c.floats((6, 5)), c.floats((6, 5))
c.check("sub permuted", tn.sub(tn.permuted(x), tn.of(y)), x - y)
c.check("sub sliced", tn.sub(tn.sliced(x), tn.permuted(y)), x - y)
c.check("sub expanded", tn.sub(tn.expanded(x[0], 6), tn.sliced(y)), x[:1] - y)
c.check("exp sliced", tn.exp(tn.sliced(x)), np.exp(x))
c.check("sqrt of nothing", tn.sqrt(tn.of(c.floats((0, 3)))), np.zeros((0, 3), np.float32))

# ---- Types that meet ----

RANK = ["bool", *UNSIGNED, *SIGNED, "f16", "bf16", "f32", "f64"]


def promoted(a, b):
    if a == b:
        return a
    halves = {"f16", "bf16"}
    kinds = [0 if t == "bool" else 2 if t in FLOATS else 1 for t in (a, b)]
    if kinds[0] != kinds[1]:
        return a if kinds[0] > kinds[1] else b
    if {a, b} == halves:
        return "f32"
    if kinds[0] == 2:
        return max(a, b, key=lambda t: (dtype(t).itemsize, t))
    return np.promote_types(dtype(a), dtype(b)).name.replace("uint", "u").replace(
        "int", "i").replace("float", "f")


scalars = {t: tn.of(c.some((), t)) for t in RANK}
for a in RANK:
    for b in RANK:
        got = tn.add(scalars[a], scalars[b]).type[0]
        c.true(f"{a} meets {b}", got == dtype(promoted(a, b)), f"in {got}")
for a, b in [("u8", "i8"), ("u64", "i64"), ("i32", "f16"), ("f16", "bf16"), ("bool", "i16"),
             ("u32", "i8"), ("bool", "f64")]:
    x, y = c.some((4, 3), a), c.some(3, b)
    t = dtype(promoted(a, b))
    c.check(f"mul {a} {b}", tn.mul(tn.of(x), tn.of(y)), x.astype(t) * y.astype(t))
    c.check(f"lt {a} {b}", tn.lt(tn.of(x), tn.of(y)), x.astype(t) < y.astype(t))

for t in RANK:
    kind = 0 if t == "bool" else 2 if t in FLOATS else 1
    with_int, with_num = ("i64", t, t)[kind], ("f32", "f32", t)[kind]
    c.true(f"int with {t}", tn.add(scalars[t], tn.int(3)).type[0] == dtype(with_int))
    c.true(f"num with {t}", tn.mul(tn.num(0.5), scalars[t]).type[0] == dtype(with_num))
x = c.floats(5, "f64")
c.check("num keeps its digits", tn.mul(tn.of(x), tn.num(0.1)), x * 0.1, rtol=1e-15)
c.check("weak sqrt", tn.mul(tn.of(x), tn.sqrt(tn.num(2))), x * np.sqrt(2.0), rtol=1e-15)
c.check("weak sum", tn.add(tn.of(np.array([250], np.uint8)), tn.add(tn.int(2), tn.int(3))),
        np.array([255], np.uint8))
c.check("num alone", tn.num(0.1), np.float32(0.1))
c.check("int alone", tn.int(-7), np.int64(-7))
c.check("weak where", tn.where(tn.of(np.array([True, False])), tn.int(1), tn.num(0.5)),
        np.array([1, 0.5], np.float32))
c.refuse("300 in u8", tn.add(tn.of(np.array([1], np.uint8)), tn.int(300)), "ERR_DTYPE", "300", "u8")
c.refuse("-1 in u64", tn.add(tn.of(np.array([1], np.uint64)), tn.neg(tn.int(1))), "ERR_DTYPE", "-1")

# ---- Three operands ----

for kind in ("f32", "i8", "bool", "bf16", "u64"):
    x, y, k = c.some((4, 5), kind), c.some((5,), kind), c.some((4, 1), "bool")
    c.check(f"where {kind}", tn.where(tn.of(k), tn.of(x), tn.of(y)), np.where(k, x, y))
x, y = c.floats((4, 5)), c.floats((4, 5), "f64")
k = np.array([0, np.nan, -0.0, 2, 1], np.float32)
c.check("where float", tn.where(tn.of(k), tn.of(x), tn.of(y)), np.where(k != 0, x, y))
c.check("clip", tn.clip(tn.of(x), tn.num(-0.5), tn.of(np.float32(0.5))), np.clip(x, -0.5, 0.5))
c.check("clip low", tn.clip(tn.of(x), tn.of(x[:1] * 0), None), np.maximum(x, 0))
i = c.integers((3, 4), "i16")
c.check("clip high", tn.clip(tn.of(i), None, tn.int(100)), np.minimum(i, 100))
c.check("clip meets", tn.clip(tn.of(i), tn.of(np.array(-5, np.int64)), tn.num(9)),
        np.clip(i.astype(np.float32), -5, 9))
for kind in ("f32", "f64", "f16"):
    x, y = c.floats((4, 5), kind), c.floats((5,), kind)
    wide = x.astype(np.float64)
    c.check(f"lerp {kind}", tn.lerp(tn.of(x), tn.of(y), tn.num(0.25)),
            (wide + 0.25 * (y.astype(np.float64) - wide)).astype(dtype(kind)))

# ---- Conversions ----


def convert(x, kind):
    """Towards zero and to the nearest value there is; NaN is 0."""
    t = dtype(kind)
    if kind == "bool":
        return x != 0
    if kind in FLOATS:
        return x.astype(t)
    if x.dtype.kind in "iub":
        return x.astype(t)
    info = np.iinfo(t)

    def one(v):
        if math.isnan(v):
            return 0
        return info.min if v <= info.min else info.max if v >= info.max else int(v)
    return np.array([one(float(v)) for v in x], t)


WIDE = np.array([0, -0.0, 0.9, -0.9, 1.5, -1.5, 127.5, 128, 255.5, 256, 32768, 65535.9, 2**31 - 1,
                 2**31, 2**32, 1e10, 2.0**62, 2.0**63, 2.0**64, 1e30, -129, -32769, -2.0**31, -1e10,
                 -1e30, np.inf, -np.inf, np.nan, 65520, 1e-8, 3.0e38])
for to in DTYPES:
    for kind in ("f32", "f64"):
        x = WIDE.astype(dtype(kind))
        c.check(f"cast {kind} to {to}", tn.cast(tn.of(x), to), convert(x, to), rtol=0)
    for kind in ("f16", "i32", "i64", "u64", "bool"):
        x = c.some(20, kind) if kind in FLOATS + ["bool"] else c.integers(20, kind)
        c.check(f"cast {kind} to {to}", tn.cast(tn.of(x), to), convert(x, to), rtol=0)
c.check("cast num", tn.cast(tn.num(0.1), "f64"), np.float64(0.1), rtol=0)
c.check("cast weak int", tn.cast(tn.int(300), "u8"), np.uint8(44))
for a, b in [("f32", "i32"), ("u64", "f64"), ("f16", "bf16"), ("bf16", "u16"), ("i8", "u8")]:
    x = c.floats(9, a) if a in FLOATS else c.integers(9, a)
    back = tn.bitcast(tn.bitcast(tn.of(x), b), a)
    c.check(f"bitcast {a} {b}", back, x, rtol=0)
c.check("bitcast f32 u32", tn.bitcast(tn.of(np.array([1, -0.0], np.float32)), "u32"),
        np.array([0x3F800000, 0x80000000], np.uint32))
c.check("bitcast u8 bool", tn.bitcast(tn.of(np.array([0, 1, 7], np.uint8)), "bool"),
        np.array([False, True, True]))
c.refuse("bitcast f32 i64", tn.bitcast(tn.of(c.floats(2)), "i64"), "ERR_DTYPE", "bitcast", "size")
c.refuse("cast to string", tn.cast(tn.of(c.floats(2)), 8), "ERR_DTYPE", "string")
c.refuse("shapes", tn.add(tn.of(c.floats((2, 3))), tn.of(c.floats((2, 4)))), "ERR_SHAPE", "add",
         "2x3", "2x4")
c.done(least=850)
