"""Test cases of elementwise ONNX operators besides those of operators.py: {name: cases(version,
rng)}."""

import itertools

import numpy as np

from cases import BF16, ONNX_TYPE, In, const, one
from operators import (BOOL, F16, F32, F64, INTS, PAIRS, WIDE, cast, floats_of, nonzero, some,
                       with_batch)

SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, -0.5, 1e-30], F32)
SIGNED = [t for t in INTS if t.kind == "i"]


def function(op, make=lambda x: x, special=SPECIAL, ints=(), with_bf16=13, f64=True):
    """Cases of a function of floats, and of integers if supported; `f64`: the reference computes in
    f64."""
    def cases(version, rng):
        for t in floats_of(version, with_bf16):
            if t == F64 and not f64:
                continue
            yield one(op, make(some(rng, (3, 5), t)))
        for t in ints if version >= 6 else ():
            yield one(op, make(some(rng, (2, 3), t)))
        for shape in ((), (0, 2), (2, 3, 4)):
            yield one(op, make(some(rng, shape, F32)))
        yield one(op, special, label="of special values")
        yield one(op, with_batch(make(some(rng, (2, 3), F32)), "n"),
                  more=[{"x0": make(some(rng, (6, 3), F32))}])
    return cases


def unit(x):
    """Maps values into (-1, 1)."""
    return np.asarray(np.tanh(x.astype(F64)) * 0.95).astype(x.dtype)


def above_one(x):
    return np.asarray(np.abs(x) + np.array(1.0625, x.dtype)).astype(x.dtype)


def positive(x):
    return np.asarray(np.abs(x) + np.array(0.25, x.dtype)).astype(x.dtype)


def compared(op, types_of):
    def cases(version, rng):
        if version < 7:   # operands are alike unless broadcasting is asked for
            yield one(op, some(rng, (3, 4), F32, -2, 2), some(rng, (3, 4), F32, -2, 2))
            return
        for a, b in PAIRS[:5]:
            yield one(op, some(rng, a, F32, -2, 2), some(rng, b, F32, -2, 2))
        for t in types_of(version):
            yield one(op, some(rng, (4, 5), t, -2, 2), some(rng, (5,), t, -2, 2))
        if F32 in types_of(version):
            yield one(op, SPECIAL, SPECIAL[::-1].copy())
            yield one(op, SPECIAL, SPECIAL)
    return cases


def of_types(op, types, *pairs, **attributes):
    def cases(version, rng):
        for t in types:
            yield one(op, some(rng, (4, 5), t, -9, 100), some(rng, (5,), t, -9, 100), **attributes)
        for a, b in pairs or PAIRS[1:5]:
            yield one(op, some(rng, a, types[0]), some(rng, b, types[0]), **attributes)
    return cases


def power(version, rng):
    if version < 7:
        yield one("Pow", np.abs(some(rng, (2, 3), F32)), some(rng, (2, 3), F32))
        return
    for a, b in PAIRS[:5]:
        yield one("Pow", np.abs(some(rng, a, F32)), some(rng, b, F32))
    yield one("Pow", some(rng, (3, 4), F32), const(2.0, F32), label="squared")
    yield one("Pow", np.abs(some(rng, (3, 4), F32)), const(0.5, F32), label="square root")
    yield one("Pow", some(rng, (3, 4), F64), np.full((4,), 3.0))
    a = np.array([2, -2, 0, 1, np.inf, -np.inf, np.nan, 4], F32)
    yield one("Pow", np.repeat(a, 8), np.tile(a, 8), label="of special values")
    if version >= 12:
        whole = np.array([0, 1, 2, 3, 5], np.int64)
        for t in (np.dtype("i4"), np.dtype("i8")):
            yield one("Pow", some(rng, (4, 5), t), whole.astype(t))
            yield one("Pow", some(rng, (4, 5), t), whole.astype(F32), label="of floats")
        for t in (np.dtype("i4"), np.dtype("i8")):
            yield one("Pow", some(rng, (4, 5), F32), whole.astype(t))
        yield one("Pow", some(rng, (4, 5), np.dtype("i4")), whole)
        yield one("Pow", some(rng, (3, 4), F32), const(2), label="squared by an integer")


def mod(version, rng):
    for t in INTS:
        x, y = some(rng, (4, 6), t, -90, 90), nonzero(some(rng, (6,), t, -9, 9))
        yield one("Mod", x, y)
        yield one("Mod", x, y, fmod=1)
    for t in (F32, F64, F16):
        x, y = some(rng, (4, 6), t), nonzero(some(rng, (6,), t))
        yield one("Mod", x, y, fmod=1)
        if version >= 28:
            yield one("Mod", x, y, fmod=0)
    a = np.array([5, -5, 0, np.inf, -np.inf, np.nan], F32)
    yield one("Mod", np.repeat(a, 6), np.tile(a, 6), fmod=1)


def smaller(version, rng):
    types = floats_of(version, 13) if version >= 8 else [F32, F64]
    types += WIDE if version >= 12 else []
    for t in types:
        yield one("Min", some(rng, (3, 4), t), some(rng, (3, 4), t))
    yield one("Min", some(rng, (3, 4), F32))
    yield one("Min", *[some(rng, (2, 2), F32) for _ in range(5)])
    if version >= 8:
        yield one("Min", some(rng, (3, 1), F32), some(rng, (4,), F32), some(rng, (), F32))
        yield one("Min", SPECIAL, SPECIAL[::-1].copy(), label="of special values")


def shift(version, rng):
    for direction in ("LEFT", "RIGHT"):
        for t in INTS:
            if t.kind == "u" or version >= 28:
                x = np.array([0, 1, 2, 77, np.iinfo(t).max, np.iinfo(t).min], t)
                by = np.array([0, 1, 3, 7], t)[:, None]
                yield one("BitShift", x, by, direction=direction)
        x = some(rng, (2, 3), np.dtype("u4"))
        yield one("BitShift", x, const(2, np.uint32), direction=direction)
        wide = np.array([31, 32, 40, 63], np.uint32)
        if version >= 28:
            yield one("BitShift", np.full(4, 0xFFFFFFFF, np.uint32), wide, direction=direction)
            yield one("BitShift", np.array([-7, 7, -1, 5], np.int32),
                      np.array([-1, 32, 50, -3], np.int32), direction=direction)


def where(version, rng):
    types = [F32, F64, F16, BOOL, *INTS] + ([BF16] if version >= 16 else [])
    for t in types:
        yield one("Where", some(rng, (3, 4), BOOL), some(rng, (3, 4), t), some(rng, (4,), t))
    for c, a, b in (((3, 1), (4,), ()), ((), (2, 3), (2, 1)), ((0, 3), (3,), (1,))):
        yield one("Where", some(rng, c, BOOL), some(rng, a, F32), some(rng, b, F32))
    yield one("Where", with_batch(some(rng, (2, 3), BOOL), "n"), some(rng, (3,), F32),
              const(-1e9, F32), more=[{"x0": some(rng, (5, 3), BOOL)}])


def is_nan(version, rng):
    for t in [F32, F64, F16] + ([BF16] if version >= 13 else []):
        yield one("IsNaN", SPECIAL.astype(t))


def is_inf(version, rng):
    for t in [F32, F64] + ([F16, BF16] if version >= 20 else []):
        for up, down in itertools.product((0, 1), (0, 1)):
            yield one("IsInf", SPECIAL.astype(t), detect_positive=up, detect_negative=down)
        yield one("IsInf", SPECIAL.astype(t))


def gelu(version, rng):
    for way in ({}, {"approximate": "none"}, {"approximate": "tanh"}):
        for t in (F32, F16):  # the reference computes f64 in f32
            yield one("Gelu", some(rng, (3, 5), t), **way)
    yield one("Gelu", with_batch(some(rng, (2, 3), F32), "n"), more=[{"x0": some(rng, (7, 3), F32)}])


def cast_like(version, rng):
    for case in list(cast(max(version, 13), rng))[::5]:
        (_, names, _, attributes), = case.nodes
        to = [t for t, n in ONNX_TYPE.items() if n == attributes["to"]]
        if len(to) == 1 and list(attributes) == ["to"]:
            x = case.inputs["x0"]
            like = np.full((2,), "" if to[0] == object else 0, to[0])
            made = one("CastLike", x, like, more=case.more)
            made.expected = case.expected
            yield made


def bit_cast(version, rng):
    pairs = [("f4", "i4"), ("i4", "f4"), ("f8", "u8"), ("i8", "f8"), ("f2", "u2"), ("i2", "f2"),
             ("u1", "i1"), ("i4", "u4")]
    for a, b in pairs:
        x = some(rng, (2, 3), np.dtype(a))
        yield one("BitCast", x, to=ONNX_TYPE[np.dtype(b)])


def logical(op):
    def cases(version, rng):
        for a, b in PAIRS:
            if version >= 7 or a == b:   # before, broadcasting is asked for
                yield one(op, some(rng, a, BOOL), some(rng, b, BOOL))
    return cases


def unary_of(op, types):
    def cases(version, rng):
        for t in types:
            yield one(op, some(rng, (3, 4), t, -100, 100))
        yield one(op, some(rng, (), types[0]))
    return cases


def ordered(version):
    return [F32, F64, F16] + (INTS if version >= 9 else []) + ([BF16] if version >= 13 else [])


HALVES = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999997, 2**23 + 1, -0.0, np.nan, np.inf],
                  F32)
OPERATORS = {
    "Abs": function("Abs", ints=INTS), "Neg": function("Neg", ints=SIGNED),
    "Sign": function("Sign", ints=INTS), "Floor": function("Floor"), "Ceil": function("Ceil"),
    "Round": function("Round", special=HALVES, with_bf16=22),
    "Log": function("Log", positive), "Erf": function("Erf", f64=False),
    "Sin": function("Sin", with_bf16=22), "Cos": function("Cos", with_bf16=22),
    "Tan": function("Tan", unit, with_bf16=22), "Asin": function("Asin", unit, with_bf16=22),
    "Acos": function("Acos", unit, with_bf16=22), "Atan": function("Atan", with_bf16=22),
    "Sinh": function("Sinh", with_bf16=22), "Cosh": function("Cosh", with_bf16=22),
    "Asinh": function("Asinh", with_bf16=22),
    "Acosh": function("Acosh", above_one, with_bf16=22),
    "Atanh": function("Atanh", unit, with_bf16=22),
    "Gelu": gelu, "Pow": power, "Mod": mod, "Min": smaller,
    "Greater": compared("Greater", ordered), "Less": compared("Less", ordered),
    "GreaterOrEqual": compared("GreaterOrEqual", ordered),
    "LessOrEqual": compared("LessOrEqual", ordered),
    "Where": where, "IsNaN": is_nan, "IsInf": is_inf,
    "And": logical("And"), "Or": logical("Or"), "Xor": logical("Xor"),
    "Not": unary_of("Not", [BOOL]), "BitwiseNot": unary_of("BitwiseNot", INTS),
    "BitwiseAnd": of_types("BitwiseAnd", INTS), "BitwiseOr": of_types("BitwiseOr", INTS),
    "BitwiseXor": of_types("BitwiseXor", INTS), "BitShift": shift,
    "CastLike": cast_like, "BitCast": bit_cast,
}
