"""Test cases of ONNX operators that draw random numbers: what holds for every draw, by which the
reference's draws are like Tenon's: {name: cases(version, rng)}."""

import numpy as np
from onnx import TensorProto

from cases import Case, In, const
from operators_networks import F32, F64, some

COUNT = 4000


def drawn(op, inputs, attributes, expected, tolerance, label=""):
    """A case whose outputs are the shape, and whether mean and deviation are near those expected."""
    near = [("Cast", ["y"], ["f"], {"to": TensorProto.FLOAT}),
            ("ReduceMean", ["f"], ["mean"], {"keepdims": 0}),
            ("Sub", ["f", "mean"], ["apart"], {}), ("Mul", ["apart", "apart"], ["square"], {}),
            ("ReduceMean", ["square"], ["variance"], {"keepdims": 0}),
            ("Sqrt", ["variance"], ["deviation"], {})]
    for name in ("mean", "deviation"):
        near += [("Sub", [name, f"{name}0"], [f"{name}1"], {}), ("Abs", [f"{name}1"], [f"{name}2"], {}),
                 ("Less", [f"{name}2", "tolerance"], [f"{name}_is_near"], {})]
    given = {**inputs, "mean0": const(expected[0], F32), "deviation0": const(expected[1], F32),
             "tolerance": const(tolerance, F32)}
    nodes = [(op, list(inputs), ["y"], attributes), ("Shape", ["y"], ["shape"], {}), *near]
    return Case(f"{op} {attributes} {label}", nodes, given,
                ["shape", "mean_is_near", "deviation_is_near"])


def only_shape(version, cases):
    """Cases of the first opsets, whose arithmetic does not broadcast, give the shape alone."""
    for case in cases:
        yield case if version >= 13 else Case(case.label, case.nodes[:2], {
            n: x for n, x in case.inputs.items() if n == "x"}, ["shape"])


def shortened(cases_of):
    return lambda version, rng: only_shape(version, cases_of(version, rng))


def uniform(version, rng):
    yield drawn("RandomUniform", {}, {"shape": [COUNT]}, (0.5, 12**-0.5), 0.05)
    yield drawn("RandomUniform", {}, {"shape": [40, COUNT // 40], "low": -3.0, "high": 5.0,
                                      "seed": 3.0, "dtype": TensorProto.DOUBLE},
                (1, 8 * 12**-0.5), 0.4)


def normal(version, rng):
    yield drawn("RandomNormal", {}, {"shape": [COUNT]}, (0, 1), 0.15)
    yield drawn("RandomNormal", {}, {"shape": [2, COUNT], "mean": 5.0, "scale": 2.0}, (5, 2), 0.3)


def uniform_like(version, rng):
    yield drawn("RandomUniformLike", {"x": In(some(rng, (COUNT,)))}, {}, (0.5, 12**-0.5), 0.05)
    yield drawn("RandomUniformLike", {"x": In(some(rng, (3, COUNT), F64))},
                {"low": 2.0, "high": 4.0, "dtype": TensorProto.FLOAT}, (3, 2 * 12**-0.5), 0.1)


def normal_like(version, rng):
    yield drawn("RandomNormalLike", {"x": In(some(rng, (COUNT,)))}, {"seed": 1.0}, (0, 1), 0.15)
    yield drawn("RandomNormalLike", {"x": In(some(rng, (2, COUNT), F64))},
                {"mean": -1.0, "dtype": TensorProto.FLOAT}, (-1, 1), 0.15)


def bernoulli(version, rng):
    for p in (0.25, 0.9) if version > 15 else (0.5,):   # the runtime of 15 draws with 1 - p
        yield drawn("Bernoulli", {"x": In(np.full(COUNT, p, F32))}, {}, (p, (p * (1 - p))**0.5), 0.06)
    if version > 15:
        yield drawn("Bernoulli", {"x": In(np.full(COUNT, 1, F32))}, {"dtype": TensorProto.INT32},
                    (1, 0), 1e-6)


def multinomial(version, rng):
    p = np.array([[0.1, 0.2, 0.7]], F32)
    mean, square = p[0] @ [0, 1, 2], p[0] @ [0, 1, 4]
    for dtype in (TensorProto.INT32, TensorProto.INT64):
        yield drawn("Multinomial", {"x": In(np.log(p) + 3)}, {"sample_size": COUNT, "dtype": dtype},
                    (mean, (square - mean**2)**0.5), 0.08)
    yield drawn("Multinomial", {"x": In(np.tile(np.array([-100, 0], F32), (5, 1)))},
                {"sample_size": 7}, (1, 0), 1e-6)


OPERATORS = {"RandomUniform": shortened(uniform), "RandomNormal": shortened(normal),
             "RandomUniformLike": shortened(uniform_like),
             "RandomNormalLike": shortened(normal_like), "Bernoulli": shortened(bernoulli),
             "Multinomial": shortened(multinomial)}
