#!/usr/bin/env python3
"""Tests models whose graph depends on the elements of inputs: a shape to reshape to, axes, a number
of repeats. Each run has the results of a model that states the values; plans are kept by value.

    test_values.py BUILD
"""

import sys
import tempfile
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper
except ImportError as missing:
    print(f"skipped: {missing} (scripts/setup.sh --tests installs it)")
    sys.exit(77)
from checks import Checks
from tenon import OUTPUT, Library, Refused

F32, I64 = TensorProto.FLOAT, TensorProto.INT64
KEPT = 8


def model(nodes, inputs, outputs, opset=18):
    graph = helper.make_graph(nodes, "values",
                              [helper.make_tensor_value_info(n, t, d) for n, t, d in inputs],
                              [helper.make_tensor_value_info(n, t, d) for n, t, d in outputs])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)],
                             ir_version=9).SerializeToString()


def reshaping():
    """y = relu(reshape(x, shape)), where the length of `shape` is open too."""
    return model([helper.make_node("Reshape", ["x", "shape"], ["t"], name="r"),
                  helper.make_node("Relu", ["t"], ["y"])],
                 [("x", F32, ["n", 6]), ("shape", I64, ["rank"])], [("y", F32, None)])


def shapes(*numbers):
    return np.array(numbers, np.int64)


class Tests:
    def __init__(self, folder):
        self.library, self.check = Library(folder), Checks()
        self.rng = np.random.default_rng(3)

    def refused(self, what, status, words, call):
        try:
            call()
        except Refused as e:
            missing = [w for w in words if w not in e.message]
            self.check(what, e.status == status and not missing, f"{e}; missing: {missing}")
        else:
            self.check(what, False, "it is not refused")

    def run_reshape(self, binding, n, shape, kind=np.int64):
        x = self.rng.standard_normal((n, 6)).astype(np.float32)
        y = binding.run({"x": x, "shape": np.array(shape, kind)})["y"]
        return np.array_equal(y, np.maximum(x.reshape(shape), 0))

    def variant(self, binding):
        return self.library.lib.tn_binding_variant(binding.handle)

    def changing(self):
        """Values and sizes that change, with plans found again by their values."""
        loaded = self.library.load(reshaping())
        binding, seen = loaded.bind(), {}
        for n, shape in [(2, [3, 4]), (2, [4, 3]), (2, [3, 4]), (4, [2, 3, 4]), (4, [3, -1]),
                         (2, [12]), (6, [6, 6]), (2, [3, 4])]:
            self.check(f"reshape {n} to {shape}", self.run_reshape(binding, n, shape))
            number = self.variant(binding)
            self.check(f"variant of {n}, {shape}", seen.setdefault((n, *shape), number) == number)
        self.check("numbers of variants differ", len(set(seen.values())) == len(seen), f"{seen}")
        self.check("a shape of other integers", self.run_reshape(binding, 2, [2, 6], np.int32))
        for i in range(KEPT + 3):   # more than are kept
            self.check(f"shape {i}", self.run_reshape(binding, 2 * (i + 1), [i + 1, 12]))
        self.check("a shape whose plan was dropped", self.run_reshape(binding, 2, [3, 4]))
        loaded.free()
        self.check("after the model is freed", self.run_reshape(binding, 2, [1, 3, 4]))
        binding.free()

    def refusals(self):
        """Wrong values fail with the node's name, and leave the binding fit for the next run."""
        loaded = self.library.load(reshaping())
        self.check("the rank of an output", loaded.ports(OUTPUT) == [("y", np.dtype("f4"), [])])
        declared = self.library.load(model(
            [helper.make_node("Reshape", ["x", "s"], ["y"])], [("x", F32, [6]), ("s", I64, [3])],
            [("y", F32, ["a", None, 3])]))
        self.check("sizes of an output", declared.ports(OUTPUT)[0][2] == ["a", "y:1", "3"],
                   f"{declared.ports(OUTPUT)}")
        declared.free()
        binding = loaded.bind()
        self.refused("a wrong shape", "ERR_SHAPE", ["Reshape node 'r'"],
                     lambda: self.run_reshape(binding, 2, [5, 5]))
        self.check("a right one after it", self.run_reshape(binding, 2, [2, 6]))
        self.refused("many elements", "ERR_UNSUPPORTED", ["shape", "257"],
                     lambda: binding.run({"x": np.zeros((2, 6), "f4"), "shape": np.ones(257, "i8")}))
        self.check("few after them", self.run_reshape(binding, 2, [6, 2]))
        binding.free()
        loaded.free()
        large = model([helper.make_node("Reshape", ["x", "s"], ["y"])],
                      [("x", F32, [6]), ("s", I64, [300])], [("y", F32, None)])
        self.refused("an input that is too large", "ERR_UNSUPPORTED", ["'s'", "when the model runs"],
                     lambda: self.library.load(large))

    def learnt(self):
        """Inputs that are found to be needed one after the other, floats and bools among them."""
        nodes = [helper.make_node("ReduceSum", ["x", "axes"], ["s"], keepdims=0),
                 helper.make_node("Expand", ["s", "to"], ["e"]),
                 helper.make_node("Resize", ["e", "", "scales"], ["y"], mode="nearest")]
        loaded = self.library.load(model(
            nodes, [("x", F32, [2, 3, 4]), ("axes", I64, [1]), ("to", I64, ["k"]),
                    ("scales", F32, ["k"])], [("y", F32, None)]))
        x = self.rng.standard_normal((2, 3, 4)).astype(np.float32)
        for axis, to in [(0, [3, 4]), (1, [5, 2, 4]), (-1, [2, 3])]:
            scales = np.ones(len(to), np.float32)
            scales[-1] = 2
            y = loaded.run({"x": x, "axes": shapes(axis), "to": shapes(*to), "scales": scales})["y"]
            expected = np.repeat(np.broadcast_to(x.sum(axis), to), 2, -1)
            self.check(f"sum of axis {axis}", y.shape == expected.shape and
                       np.allclose(y, expected, 1e-5))
        loaded.free()

    def sums(self):
        """Sums of a fixed number of elements decide, also where another axis is open."""
        nodes = [helper.make_node("Constant", [], ["one"], value_ints=[1]),
                 helper.make_node("Constant", [], ["w"], value=helper.make_tensor("", I64, [1, 2], [1, 2])),
                 helper.make_node("Unsqueeze", ["s", "one"], ["u"]),
                 helper.make_node("Mul", ["u", "w"], ["p"]),
                 helper.make_node("ReduceSum", ["p", "one"], ["t"], keepdims=0),
                 helper.make_node("Reshape", ["x", "t"], ["y"])]
        loaded = self.library.load(model(nodes, [("x", F32, ["n"]), ("s", I64, ["rank"])],
                                         [("y", F32, None)]))
        for shape in ([1, 2], [2, 1, 1], [4]):
            x = self.rng.standard_normal(3 ** len(shape) * int(np.prod(shape))).astype(np.float32)
            y = loaded.run({"x": x, "s": shapes(*shape)})["y"]
            self.check(f"three times {shape}", np.array_equal(y, x.reshape([3 * k for k in shape])))
        loaded.free()

    def lists(self):
        """Constants that are lists of a node: what is computed of them outlives the import."""
        nodes = [helper.make_node("Constant", [], ["w"], value_floats=np.arange(12.0)),
                 helper.make_node("Constant", [], ["k"], value_ints=range(12)),
                 helper.make_node("Cast", ["k"], ["f"], to=F32),
                 helper.make_node("Mul", ["w", "f"], ["p"]), helper.make_node("Sin", ["p"], ["s"]),
                 helper.make_node("Add", ["x", "s"], ["t"]),
                 helper.make_node("Reshape", ["t", "shape"], ["y"])]
        loaded = self.library.load(model(nodes, [("x", F32, [12]), ("shape", I64, ["rank"])],
                                         [("y", F32, None)]))
        expected = np.sin(np.arange(12.0) ** 2)
        for shape in ([3, 4], [12], [2, 3, 2]):
            y = loaded.run({"x": np.ones(12, np.float32), "shape": shapes(*shape)})["y"]
            self.check(f"lists, shape {shape}", y.shape == tuple(shape) and
                       np.allclose(y.reshape(-1), 1 + expected, 1e-5, 1e-5))
        loaded.free()

    def carried(self):
        """A shape that is the output of the run before."""
        nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"]),
                 helper.make_node("Constant", [], ["two"], value_ints=[2]),
                 helper.make_node("Constant", [], ["zero"], value_ints=[0]),
                 helper.make_node("Slice", ["shape", "zero", "two"], ["t"]),
                 helper.make_node("Gather", ["t", "order"], ["next"])]
        loaded = self.library.load(model(
            nodes, [("x", F32, [6]), ("shape", I64, [2]), ("order", I64, [2])],
            [("y", F32, None), ("next", F32, None)]))   # another type and rank than it has
        binding = loaded.bind()
        binding.check(self.library.lib.tn_binding_carry(binding.handle, b"next", b"shape"))
        x = np.arange(6, dtype=np.float32)
        found = [binding.run({"x": x, "shape": shapes(2, 3), "order": shapes(1, 0)})["y"].shape]
        found += [binding.run({})["y"].shape for _ in range(2)]
        self.check("a carried shape", found == [(2, 3), (3, 2), (2, 3)], f"{found}")
        binding.check(self.library.lib.tn_binding_carry(binding.handle, b"next", b"order"))
        self.refused("another rank", "ERR_SHAPE", ["output y has rank", "input x has rank 1"],
                     lambda: binding.check(self.library.lib.tn_binding_carry(
                         binding.handle, b"y", b"x")))
        binding.free()
        binding = loaded.bind()
        binding.check(self.library.lib.tn_binding_carry(binding.handle, b"y", b"x"))
        self.refused("another rank in a run", "ERR_SHAPE", ["output y has rank 2", "input x has", "the shapes are 2x3 and "],
                     lambda: binding.run({"x": x, "shape": shapes(2, 3), "order": shapes(1, 0)}))
        binding.free()
        loaded.free()

    def prepared(self):
        """A plan for other values leaves the results of the last run as they were."""
        loaded = self.library.load(reshaping())
        binding, x = loaded.bind(), np.arange(12, dtype=np.float32).reshape(2, 6)
        binding.run({"x": x, "shape": shapes(12)})
        binding.check(binding.give("shape", shapes(3, 4)))
        binding.check(self.library.lib.tn_binding_prepare(binding.handle))
        y = binding.read("y")
        self.check("results after preparing", np.array_equal(y, x.reshape(-1)), f"{y}")
        y = binding.run({})["y"]
        self.check("the prepared run", np.array_equal(y, x.reshape(3, 4)), f"{y}")
        binding.free()
        loaded.free()

    def dropped(self):
        """A binding in use keeps a plan that others have pushed out, until it takes another."""
        loaded = self.library.load(reshaping())
        binding, other = loaded.bind(), loaded.bind()
        self.check("the first", self.run_reshape(binding, 2, [3, 4]))
        for i in range(KEPT):
            self.check(f"other {i}", self.run_reshape(other, 2 * (i + 1), [i + 1, 12]))
        self.check("another than that dropped", self.run_reshape(binding, 2, [2, 2, 3]))
        other.free()
        binding.free()
        loaded.free()

    def copied(self):
        """The file may change once the model was loaded as a copy."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "m.onnx"
            path.write_bytes(reshaping())
            loaded = self.library.load(path, copy=True)
            path.write_bytes(b"")
            binding = loaded.bind()
            self.check("a copied model", self.run_reshape(binding, 2, [3, 4]))
            self.check("again", self.run_reshape(binding, 2, [4, 3]))
            binding.free()
            loaded.free()

    def threads(self):
        """Bindings of one model on several threads."""
        loaded, failures = self.library.load(reshaping()), []

        def work(seed):
            rng, binding = np.random.default_rng(seed), loaded.bind()
            for _ in range(12):
                rows, x = int(rng.integers(1, 5)), rng.standard_normal((4, 6)).astype(np.float32)
                y = binding.run({"x": x, "shape": shapes(rows, 24 // rows)})["y"]
                if not np.array_equal(y, np.maximum(x.reshape(rows, -1), 0)):
                    failures.append(rows)
            binding.free()

        all_of = [threading.Thread(target=work, args=(i,)) for i in range(3)]
        for t in all_of:
            t.start()
        for t in all_of:
            t.join()
        self.check("threads", not failures, f"{failures}")
        loaded.free()


def main():
    t = Tests(sys.argv[1])
    t.changing()
    t.refusals()
    t.learnt()
    t.sums()
    t.lists()
    t.carried()
    t.prepared()
    t.dropped()
    t.copied()
    t.threads()
    t.check("tn_close", t.library.close() == 0)
    return t.check.end(60)


if __name__ == "__main__":
    sys.exit(main())
