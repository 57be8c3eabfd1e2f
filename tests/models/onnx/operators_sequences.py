"""Test cases of ONNX operators on sequences and optional values: {name: cases(version, rng)}."""

import numpy as np
from onnx import TensorProto, helper

from cases import Case, In, const
from operators_networks import F32, F64, some, varying


def three(rng, dtype=F32):
    return {f"x{i}": In(some(rng, (2, 3), dtype)) for i in range(3)}


MADE = ("SequenceConstruct", ["x0", "x1", "x2"], ["s"], {})


def at(place, sequence="s", output="y"):
    return ("SequenceAt", [sequence, place], [output], {})


def of_all(label, nodes, inputs, **places):
    return Case(label, nodes, {**inputs, **{n: const(v) for n, v in places.items()}}, ["y"])


def construct(version, rng):
    for place in (0, 2, -1, -3):
        yield of_all(f"place {place}", [MADE, at("p")], three(rng), p=place)
    yield of_all("doubles", [MADE, at("p")], three(rng, F64), p=1)


def empty(version, rng):
    yield of_all("empty", [("SequenceEmpty", [], ["s"], {"dtype": TensorProto.FLOAT}),
                           ("SequenceInsert", ["s", "x0"], ["t"], {}), at("p", "t")],
                 {"x0": In(some(rng, (2, 3)))}, p=0)


def insert(version, rng):
    new = {"new": In(some(rng, (4,)))}
    for place in (None, 0, 1, 3, -1):
        for p in (0, 1, 2, 3):
            inputs = ["s", "new"] + ([] if place is None else ["q"])
            more = {} if place is None else {"q": place}
            yield of_all(f"inserted at {place}, read at {p}", [
                MADE, ("SequenceInsert", inputs, ["t"], {}), at("p", "t")], {**three(rng), **new},
                p=p, **more)


def erase(version, rng):
    for place in (None, 0, 2, -3):
        for p in (0, 1):
            inputs = ["s"] + ([] if place is None else ["q"])
            more = {} if place is None else {"q": place}
            yield of_all(f"erased at {place}, read at {p}", [
                MADE, ("SequenceErase", inputs, ["t"], {}), at("p", "t")], three(rng), p=p, **more)


def length(version, rng):
    yield of_all("length", [MADE, ("SequenceLength", ["s"], ["y"], {})], three(rng))


def split(version, rng):
    x = In(some(rng, (5, 4)))
    for parts, axis, keepdims in ((None, 0, 1), (None, 1, 0), (2, 0, 1), (3, 1, 1), ([1, 3, 1], 0, 1),
                                  ([4], -1, 1)):
        inputs = ["x"] + ([] if parts is None else ["parts"])
        given = {"x": x} if parts is None else {"x": x, "parts": const(parts)}
        made = ("SplitToSequence", inputs, ["s"], {"axis": axis, "keepdims": keepdims})
        yield of_all(f"{parts} of {axis}, {keepdims}", [made, at("p")], given, p=-1)
        yield of_all(f"{parts} of {axis}, {keepdims}: length", [
            made, ("SequenceLength", ["s"], ["y"], {})], given)
    yield Case("parts longer than the axis", [
        ("SplitToSequence", ["x", "parts"], ["s"], {}), ("SequenceLength", ["s"], ["y"], {})],
        {"x": x, "parts": const(np.iinfo(np.int64).max)}, ["y"], expected={"y": np.array(1)})
    n, more = varying(rng, (2, 6), (5, 6))
    yield Case("of rows of any number", [
        ("SplitToSequence", ["x0"], ["s"], {"axis": 1}), at("p")], {"x0": n, "p": const(2)}, ["y"],
        0, more)


def concat(version, rng):
    for axis, new in ((0, 0), (1, 0), (-1, 0), (0, 1), (2, 1), (-1, 1)):
        yield of_all(f"axis {axis}, {new}", [
            MADE, ("ConcatFromSequence", ["s"], ["y"], {"axis": axis, "new_axis": new})], three(rng))


def mapped(version, rng):
    def body(op, inputs, outputs):
        value = helper.make_tensor_value_info
        return helper.make_graph([helper.make_node(op, inputs, outputs)], "body",
                                 [value(n, TensorProto.FLOAT, None) for n in inputs],
                                 [value(n, TensorProto.FLOAT, None) for n in outputs])
    last = ("ConcatFromSequence", ["t"], ["y"], {"axis": 0})
    yield of_all("mapped", [MADE, ("SequenceMap", ["s"], ["t"], {"body": body("Neg", ["a"], ["b"])}),
                            last], three(rng))
    yield of_all("mapped with a tensor", [
        MADE, ("SequenceMap", ["s", "x0"], ["t"], {"body": body("Mul", ["a", "b"], ["c"])}), last],
        three(rng))
    yield of_all("mapped with a sequence", [
        MADE, ("SequenceConstruct", ["x2", "x1", "x0"], ["u"], {}),
        ("SequenceMap", ["s", "u"], ["t"], {"body": body("Sub", ["a", "b"], ["c"])}), last],
        three(rng))


def optional(version, rng):
    x = {"x": In(some(rng, (2, 3)))}
    kind = helper.make_tensor_type_proto(TensorProto.FLOAT, [2, 3])
    yield of_all("of a tensor", [("Optional", ["x"], ["o"], {}),
                                 ("OptionalGetElement", ["o"], ["y"], {})], x)
    yield of_all("present", [("Optional", ["x"], ["o"], {}),
                             ("OptionalHasElement", ["o"], ["y"], {})], x)
    yield of_all("absent", [("Optional", [], ["o"], {"type": kind}),
                            ("OptionalHasElement", ["o"], ["y"], {})], x)
    yield of_all("of a sequence", [
        MADE, ("Optional", ["s"], ["o"], {}), ("OptionalGetElement", ["o"], ["t"], {}), at("p", "t")],
        three(rng), p=1)


OPERATORS = {"SequenceConstruct": construct, "SequenceAt": construct, "SequenceEmpty": empty,
             "SequenceInsert": insert, "SequenceErase": erase, "SequenceLength": length,
             "SplitToSequence": split, "ConcatFromSequence": concat, "SequenceMap": mapped,
             "Optional": optional, "OptionalHasElement": optional, "OptionalGetElement": optional}
