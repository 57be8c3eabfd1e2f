#!/usr/bin/env python3
"""Tests models whose inputs and outputs are sequences or optional values, and inputs whose values are
given when the model is loaded.

    test_lists.py BUILD
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
try:
    import numpy as np
    from onnx import TensorProto, helper
except ImportError as missing:
    print(f"skipped: {missing} (scripts/setup.sh --tests installs it)")
    sys.exit(77)
from checks import Checks
from tenon import INPUT, OUTPUT, InputList, Library, Refused

F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def tensor(kind, dims=None):
    return helper.make_tensor_type_proto(kind, dims)


def sequence(kind, dims=None):
    return helper.make_sequence_type_proto(tensor(kind, dims))


def model(nodes, inputs, outputs):
    ports = [[helper.make_value_info(n, t) for n, t in values.items()] for values in (inputs, outputs)]
    return helper.make_model(helper.make_graph(nodes, "lists", *ports),
                             opset_imports=[helper.make_opsetid("", 18)], ir_version=9).SerializeToString()


def joined(dims=None):
    """y = the tensors of s, concatenated; n, how many there are."""
    return model([helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=0),
                  helper.make_node("SequenceLength", ["s"], ["n"])],
                 {"s": sequence(F32, dims)}, {"y": tensor(F32), "n": tensor(I64, [])})


def split():
    return model([helper.make_node("SplitToSequence", ["x", "parts"], ["s"], axis=0)],
                 {"x": tensor(F32, [6, "k"]), "parts": tensor(I64, ["n"])}, {"s": sequence(F32)})


def maybe(kind):
    """y = x, or 7 where x is absent."""
    branches = {"then_branch": [helper.make_node("OptionalGetElement", ["x"], ["t"])],
                "else_branch": [helper.make_node("Constant", [], ["t"], value=helper.make_tensor(
                    "seven", F32, [1], [7.0]))]}
    graphs = {n: helper.make_graph(nodes, n, [], [helper.make_value_info("t", tensor(F32))])
              for n, nodes in branches.items()}
    return model([helper.make_node("OptionalHasElement", ["x"], ["has"]),
                  helper.make_node("If", ["has"], ["y"], **graphs)],
                 {"x": helper.make_optional_type_proto(kind)}, {"y": tensor(F32)})


def growing():
    """s, the first rows of x, one more each; e, the sums of each."""
    body = helper.make_graph(
        [helper.make_node("Constant", [], ["one"], value_ints=[1]),
         helper.make_node("Constant", [], ["zero"], value_ints=[0]),
         helper.make_node("Add", ["i", "one"], ["to"]),
         helper.make_node("Slice", ["x", "zero", "to"], ["part"]),
         helper.make_node("SequenceInsert", ["before", "part"], ["after"]),
         helper.make_node("ReduceSum", ["part"], ["sum"], keepdims=0),
         helper.make_node("Identity", ["holds"], ["goes_on"])],
        "body", [helper.make_value_info("i", tensor(I64, [])), helper.make_value_info("holds", tensor(BOOL, [])),
                 helper.make_value_info("before", sequence(F32))],
        [helper.make_value_info("goes_on", tensor(BOOL, [])), helper.make_value_info("after", sequence(F32)),
         helper.make_value_info("sum", tensor(F32, []))])
    return model([helper.make_node("Loop", ["steps", "", "start"], ["s", "e"], body=body)],
                 {"x": tensor(F32, [4, 2]), "steps": tensor(I64, []), "start": sequence(F32)},
                 {"s": sequence(F32), "e": tensor(F32)})


class Tests:
    def __init__(self, folder):
        self.library, self.check = Library(folder), Checks()
        self.x = np.arange(12, dtype=np.float32).reshape(6, 2)

    def refused(self, what, status, words, call):
        try:
            call()
        except Refused as e:
            missing = [w for w in words if w not in e.message]
            self.check(what, e.status == status and not missing, f"{e}; missing: {missing}")
        else:
            self.check(what, False, "it is not refused")

    def equal(self, what, actual, expected):
        self.check(what, actual.shape == expected.shape and np.array_equal(actual, expected), f"{actual}")

    def inputs(self):
        """Sequences as inputs: of known types, of declared ones, of none."""
        parts = [self.x[:1], self.x[1:4], self.x[4:]]
        for name, source, given in (("given", joined(), parts), ("declared", joined(["n", 2]), None)):
            lists = {"s": given} if given else {}
            loaded = self.library.load(source, lists=lists) if given else self.load_counted(source, 3)
            names = [f"s[{i}]" for i in range(3)]
            self.check(f"ports, {name}", [p[0] for p in loaded.ports(INPUT)] == names, loaded.ports(INPUT))
            run = parts if given else [self.x[:2]] * 3
            found = loaded.run(dict(zip(names, run)))
            self.equal(f"joined, {name}", found["y"], np.concatenate(run))
            self.equal(f"length, {name}", found["n"], np.array(3))
            loaded.free()

    def load_counted(self, source, n):
        """Loads a model with a list of declared types."""
        import tenon
        made, tenon.input_list = tenon.input_list, lambda name, count: InputList(name.encode(), count, None)
        try:
            return self.library.load(source, lists={"s": n})
        finally:
            tenon.input_list = made

    def outputs(self):
        """Sequences as outputs, the length of which values decide on."""
        for parts in ([6], [1, 2, 3], [0, 6]):
            loaded = self.library.load(split(), values={"parts": np.array(parts)})
            self.check(f"{parts}: inputs", [p[0] for p in loaded.ports(INPUT)] == ["x"])
            self.check(f"{parts}: length", loaded.length("s") == len(parts) and loaded.length("x") == -1)
            self.check(f"{parts}: outputs",
                       [p[0] for p in loaded.ports(OUTPUT)] == [f"s[{i}]" for i in range(len(parts))])
            found = loaded.run({"x": self.x})
            for i, e in enumerate(np.split(self.x, np.cumsum(parts)[:-1])):
                self.equal(f"{parts}: {i}", found[f"s[{i}]"], e)
            loaded.free()
        self.refused("values that are not given", "ERR_UNSUPPORTED", ["'s'", "'parts'", "values"],
                     lambda: self.library.load(split()))

    def optional(self):
        loaded = self.library.load(maybe(tensor(F32, ["n"])))
        self.equal("a present tensor", loaded.run({"x": self.x[0]})["y"], self.x[0])
        self.check("is one", loaded.length("y") == 1)
        loaded.free()
        loaded = self.library.load(maybe(tensor(F32, ["n"])), lists={"x": None})
        self.check("an absent one is no port", not loaded.ports(INPUT))
        self.equal("an absent tensor", loaded.run({})["y"], np.array([7], np.float32))
        loaded.free()

    def loops(self):
        """Loops whose states grow, by steps; of none only the sequence is left."""
        x = self.x[:4]
        for steps, start in ((3, []), (2, [x[2:]])):
            loaded = self.library.load(growing(), values={"steps": np.array(steps)}, lists={"start": start})
            found = loaded.run({"x": x, **{f"start[{i}]": s for i, s in enumerate(start)}})
            expected = start + [x[:i + 1] for i in range(steps)]
            self.check(f"{steps} steps", loaded.length("s") == len(expected))
            for i, e in enumerate(expected):
                self.equal(f"{steps} steps: {i}", found[f"s[{i}]"], e)
            self.equal(f"{steps} steps: sums", found["e"], np.array([x[:i + 1].sum() for i in range(steps)]))
            loaded.free()
        self.refused("no steps", "ERR_UNSUPPORTED", ["no step", "'e'"], lambda: self.library.load(
            growing(), values={"steps": np.array(0)}, lists={"start": []}))

    def refusals(self):
        load, parts = self.library.load, np.array([6])
        for what, status, words, call in (
                ("a list that is not given", "ERR_UNSUPPORTED", ["'s'", "lists"], lambda: load(joined())),
                ("a list of a tensor", "ERR_ARGUMENT", ["'x'"], lambda: load(split(), lists={"x": [self.x]})),
                ("a list of no input", "ERR_ARGUMENT", ["'q'"], lambda: load(split(), lists={"q": []})),
                ("an absent sequence", "ERR_ARGUMENT", ["'s'"], lambda: load(joined(), lists={"s": None})),
                ("elements of another type", "ERR_DTYPE", ["'s'", "f64"],
                 lambda: load(joined(), lists={"s": [self.x.astype(np.float64)]})),
                ("a value of no input", "ERR_ARGUMENT", ["'q'"], lambda: load(split(), values={"q": parts})),
                ("a value of a list", "ERR_ARGUMENT", ["'s'"], lambda: load(joined(), values={"s": self.x})),
                ("a value of another type", "ERR_DTYPE", ["'parts'", "i32"],
                 lambda: load(split(), values={"parts": parts.astype(np.int32)})),
                ("a value of another shape", "ERR_SHAPE", ["'x'"],
                 lambda: load(split(), values={"x": self.x[:5], "parts": parts}))):
            self.refused(what, status, words, call)


def main():
    t = Tests(sys.argv[1])
    t.inputs()
    t.outputs()
    t.optional()
    t.loops()
    t.refusals()
    t.check("tn_close", t.library.close() == 0)
    return t.check.end(40)


if __name__ == "__main__":
    sys.exit(main())
