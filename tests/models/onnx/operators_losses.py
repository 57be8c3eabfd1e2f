"""Test cases of ONNX losses and of activations and norms that few networks have:
{name: cases(version, rng)}."""

import itertools

import numpy as np

from cases import In, one
from operators import F16, F32, F64, some

I32, I64 = np.dtype("i4"), np.dtype("i8")
SHAPES = ((3, 5), (3, 5, 2), (2, 4, 3, 2))
WAYS = ({}, {"reduction": "none"}, {"reduction": "sum"}, {"reduction": "mean"})


def targets(rng, shape, classes, kind=I64):
    return rng.integers(0, classes, shape).astype(kind)


def outputs(case, *names):
    (op, ins, _, attributes), = case.nodes
    case.nodes, case.outputs = [(op, ins, list(names), attributes)], list(names)
    return case


def losses(op, results):
    def cases(version, rng):
        def made(*inputs, **attributes):
            return outputs(one(op, *inputs, terms=30, **attributes), *results)
        for shape, way in itertools.product(SHAPES, WAYS):
            t = targets(rng, (shape[0], *shape[2:]), shape[1])
            weight = np.abs(some(rng, (shape[1],), F32)) + F32.type(0.5)
            ignored = t.copy()
            ignored.reshape(-1)[::3] = -1
            yield made(some(rng, shape, F32), t, **way)
            yield made(some(rng, shape, F32), t, weight, **way)
            yield made(some(rng, shape, F32), ignored, weight, ignore_index=-1, **way)
            yield made(some(rng, shape, F32), ignored, ignore_index=-1, **way)
            yield made(some(rng, shape, F32), t, weight, ignore_index=int(t.reshape(-1)[0]), **way)
        for kind in (F64,):
            yield made(some(rng, (4, 3), kind), targets(rng, 4, 3, I32), **WAYS[1])
        x = In(some(rng, (3, 5), F32), ["n", 5])
        yield outputs(one(op, x, In(targets(rng, 3, 5), ["n"]), terms=30, more=[
            {"x0": some(rng, (7, 5), F32), "x1": targets(rng, 7, 5)}]), *results)
    return cases


def shrink(version, rng):
    for options in ({}, {"lambd": 0.3, "bias": 0.1}, {"lambd": 0.2}):
        for t in (F32, F16):
            yield one("Shrink", some(rng, (3, 4), t), **options)
    yield one("Shrink", np.array([-3, 0, 2, 5, -1], I32), lambd=1.5, bias=1.0)
    yield one("Shrink", np.array([np.nan, np.inf, -np.inf, 0.5, -0.5], F32), label="of special values")


def swish(version, rng):
    for options in ({}, {"alpha": 0.3}, {"alpha": -2.0}):
        for t in (F32, F64, F16):
            yield one("Swish", some(rng, (3, 4), t), **options)


def swiglu(version, rng):
    for options in ({}, {"alpha": 0.3}):
        for t in (F32, F64, F16):
            yield one("SwiGLU", some(rng, (3, 4), t), some(rng, (3, 4), t), **options)


def lp_normalization(version, rng):
    x = some(rng, (3, 4, 2), F32)
    x[1] = 0
    for p, axis in itertools.product((1, 2), (0, 1, -1)):
        yield one("LpNormalization", x, p=p, axis=axis)
    yield one("LpNormalization", some(rng, (3, 4), F32))
    yield one("LpNormalization", some(rng, (3, 4), F64), p=1)


def mean_variance(version, rng):
    x = some(rng, (3, 2, 4, 5), F32)
    yield one("MeanVarianceNormalization", x)
    for axes in ([0, 2, 3], [2, 3], [1]):
        yield one("MeanVarianceNormalization", x, axes=axes)


def linear_attention(version, rng):
    b, t, heads, dk, dv = 2, 5, 2, 4, 3
    for rule, group, past in itertools.product(("linear", "gated", "delta", "gated_delta"), (1, 3), (0, 1)):
        def of(*shape):
            return (some(rng, shape, F32) * 0.3).astype(F32)
        state = of(b, heads, dk, dv) if past else None
        decay = -np.abs(of(b, t, heads * (dk if past else 1))) if rule.startswith("gated") else None
        beta = np.abs(of(b, t, heads if past else 1)) if "delta" in rule else None
        given = [of(b, t, heads * group * dk), of(b, t, heads * dk), of(b, t, heads * dv), state, decay,
                 beta]
        while given[-1] is None:
            given.pop()
        yield outputs(one("LinearAttention", *given, terms=20, update_rule=rule, kv_num_heads=heads,
                          q_num_heads=heads * group), "y", "state")


OPERATORS = {
    "LinearAttention": linear_attention,
    "NegativeLogLikelihoodLoss": losses("NegativeLogLikelihoodLoss", ["y"]),
    "SoftmaxCrossEntropyLoss": losses("SoftmaxCrossEntropyLoss", ["y", "z"]),
    "Shrink": shrink, "Swish": swish, "SwiGLU": swiglu, "LpNormalization": lp_normalization,
    "MeanVarianceNormalization": mean_variance,
}
