"""Tests elementwise operators of one operand against NumPy, in every type that they take."""

import math

import numpy as np

from binding import FLOATS, UNARY, Cases, dtype
from elementwise import SPECIAL, floating, result_type, types_to_try, ulps_of

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


# References take f64, or integers.

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
# At an infinity these are 0 · ∞ or ∞ − ∞, depending on the formula.
NO_INFINITY = ("gelu", "gelu_tanh", "mish", "silu", "hardswish")


# 1 + erf(x) loses what is small beside 1.
BESIDE_ONE = ("gelu", "gelu_tanh")
# Computed from an e^-x that overflows before the result is 0, or times a subnormal x.
FADING = ("sigmoid", "silu", "mish")


# By default their exponential is 0 where it is below twice the least normal number.
FLUSHED = ("exp", "softplus")


def magnitudes(name, x):
    """Returns the magnitudes of a result's intermediate values, where these can be larger than
    it."""
    size = np.abs(x.astype(np.float64))
    info = np.finfo(np.float64 if x.dtype == np.float64 else np.float32)
    if name in FADING:
        return np.maximum(size, 1) * (info.tiny / info.eps)
    if name in FLUSHED:
        return np.where(x < 0, info.tiny / info.eps, 0)
    return size if name in BESIDE_ONE else 0


def unary_inputs(name, kind):
    low, high = DOMAIN.get(name, (-6, 6))
    special = SPECIAL[np.isfinite(SPECIAL)] if name in NO_INFINITY else SPECIAL
    return np.concatenate([c.rng.uniform(low, high, 27), special]).astype(dtype(kind))


def unary(name, rule, kind):
    of = UNARY_OF[name]
    if kind in FLOATS:
        x = unary_inputs(name, kind)
        e = of(x.astype(np.float64))
    else:
        x = c.some((5, 4), kind) if rule == "FLOAT" or kind == "bool" else c.integers((5, 4), kind)
        wide = x.astype(np.float64) if rule == "FLOAT" else x
        e = x if name in ROUNDING else of(wide)
    e = e.astype(dtype(result_type(rule, kind)))
    c.check(f"{name} {kind}", getattr(tn, name)(tn.of(x)), e, ulps_of(name, kind),
            magnitudes(name, x))


for i, (name, rule) in enumerate(UNARY):
    for kind in types_to_try(rule, i):
        unary(name, rule, kind)

for kind in FLOATS:
    zeros = tn.sign(tn.of(np.array([-0.0, 0.0], dtype(kind))))
    c.check(f"sign of zeros {kind}", tn.div(tn.of(np.ones(2, dtype(kind))), zeros),
            np.full(2, np.inf, dtype(kind)))

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
        c.check(f"{name} {kind}", getattr(tn, name)(tn.of(x), *args), e, ulps_of(name, kind))
c.refuse("celu by 0", tn.celu(tn.of(c.floats(3)), 0.0), "ERR_ARGUMENT", "celu", "alpha")

c.done(least=300)
