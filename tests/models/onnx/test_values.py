#!/usr/bin/env python3
"""Tests models whose graph depends on the elements of inputs: a shape to reshape to, axes, a number
of repeats. Each run has the results of a model that states the values; plans are kept by value.

    test_values.py BUILD
"""

import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, parser
except ImportError as missing:
    print(f"skipped: {missing} (scripts/setup.sh --tests installs it)")
    sys.exit(77)
from checks import Checks
from tenon import OUTPUT, Library, Refused

F32, I64 = TensorProto.FLOAT, TensorProto.INT64
KEPT = 8
HEAD = '<ir_version: 8, opset_import: ["": 18]> g'


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
        unsigned = self.library.load(model(
            [helper.make_node("Cast", ["s"], ["t"], to=I64), helper.make_node("Reshape", ["x", "t"], ["y"])],
            [("x", F32, [6]), ("s", TensorProto.UINT64, ["k"])], [("y", F32, None)]))
        self.refused("a shape beyond 63 bits", "ERR_SHAPE", ["'s' = [9223372036854775813, 3]"],
                     lambda: unsigned.run({"x": np.zeros(6, "f4"), "s": np.array([2**63 + 5, 3], "u8")}))
        unsigned.free()
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

    def threads_of_varying(self):
        """Bindings of one model on several threads, of which some find that a value varies."""
        loaded = self.library.load(model(
            [helper.make_node("TopK", ["x", "k"], ["y", "i"])], [("x", F32, [4, 6]), ("k", I64, [1])],
            [("y", F32, None), ("i", I64, None)]))
        failures = []

        def work(seed):
            rng, binding = np.random.default_rng(seed), loaded.bind()
            for _ in range(20):
                k, x = int(rng.integers(0, 7)), rng.standard_normal((4, 6)).astype(np.float32)
                y = binding.run({"x": x, "k": shapes(k)})["y"]
                if not np.array_equal(y, -np.sort(-x, 1)[:, :k]):
                    failures.append(k)
            binding.free()

        all_of = [threading.Thread(target=work, args=(i,)) for i in range(3)]
        for t in all_of:
            t.start()
        for t in all_of:
            t.join()
        self.check("threads of varying values", not failures, f"{failures}")
        loaded.free()


    def compare(self, label, source, runs, variants=None, kind=0):
        """Compares runs of a model in ONNX's text with ONNX Runtime, compiled and interpreted; those
        that this refuses are refused. `variants`: how many the compiled ones have."""
        m = parser.parse_model(f"{HEAD} {source}").SerializeToString()
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(m, options)
        for way in ("compiled", "interpreted"):
            loaded = self.library.load(m, variants=kind, interpreted=way == "interpreted")
            binding, seen = loaded.bind(), []
            for i, given in enumerate(runs):
                what = f"{label}, {way}, run {i}"
                try:
                    expected = session.run(None, given)
                except Exception:   # of one of several classes of ONNX Runtime
                    self.refused(what, "ERR_SHAPE", [], lambda: binding.run(given))
                    continue
                try:
                    found = list(binding.run(given).values())
                except Refused as e:
                    self.check(what, False, f"{e}")
                    continue
                same = [a.shape == b.shape and np.allclose(a, b, 1e-5, 1e-5)
                        for a, b in zip(found, expected)]
                self.check(what, all(same), f"{[a.shape for a in found]}, {[b.shape for b in expected]}")
                seen.append(self.variant(binding))
            if way == "compiled" and variants:
                self.check(f"{label}: variants", len(set(seen)) == variants, f"{seen}")
            binding.free()
            loaded.free()

    def varying(self):
        """Values that differ in each run: the third is computed with, as are all after it."""
        x = self.rng.standard_normal((6, 4)).astype(np.float32)
        one = lambda name, *numbers: [{"x": x, name: np.array(n, np.int64)} for n in numbers]
        body = "(int64 i, bool c, float[4] s) => (bool d, float[4] t, float[4] row) {"
        step = "r = Gather(x, i)  t = Add(s, r)  row = Relu(t)"
        head = "(float[6, 4] x, int64 n) => (float[4] last, float[k, 4] rows) {"
        start = "z = Constant<value = float[4] {0, 0, 0, 0}>()  yes = Constant<value = bool {1}>()"
        self.compare("trips", f"{head} {start} last, rows = Loop(n, yes, z) <body = b {body} {step} "
                     "d = Identity(c) }> }", one("n", 2, 3, 5, 0, 6, 1, -4, 3), 3)
        self.compare("trips until", f"{head} {start} last, rows = Loop(n, yes, z) <body = b {body} {step} "
                     "lim = Constant<value = int64 {2}>()  d = Less(i, lim) }> }",
                     one("n", 1, 2, 4, 0, 6, -1, 3, 2**62, 5), 4)
        self.compare("the first", "(float[6, 4] x, int64[1] k) => (float[6, m] y, int64[6, m] i) "
                     "{ y, i = TopK(x, k) }", one("k", [1], [2], [3], [4], [0], [5], [2]), 3)
        self.compare("a part", "(float[6, 4] x, int64[1] a, int64[1] b) => (float[m, 4] y) "
                     "{ y = Slice(x, a, b) }",
                     [{"x": x, "a": shapes(a), "b": shapes(b)} for a, b in
                      [(0, 2), (1, 3), (2, 5), (-3, -1), (4, 2), (0, 100), (2, 2**63 - 1), (-9, 4)]])
        self.compare("a range", "(float[6, 4] x, int64 n) => (float[m] y) "
                     "{ zero = Constant<value = int64 {0}>()  step = Constant<value = int64 {2}>() "
                     "r = Range(zero, n, step)  y = Cast<to = 1>(r) }", one("n", 3, 7, 9, 0, -5, 20), 3)
        self.compare("repeats", "(float[6, 4] x, int64[2] n) => (float[a, b] y) { y = Tile(x, n) }",
                     one("n", [1, 2], [2, 1], [3, 2], [0, 1], [1, 1], [2, 3]), 3)
        self.compare("expanded", "(float[6, 4] x, int64[3] n) => (float[a, b, c] y) { y = Expand(x, n) }",
                     one("n", [1, 6, 4], [2, 6, 4], [3, 6, 4], [2, 1, 1], [0, 6, 4], [5, 1, 4], [2, 3, 4]))
        self.compare("constants", "(float[6, 4] x, int64[2] n) => (float[a, b] y) "
                     "{ y = ConstantOfShape<value = float[1] {7}>(n) }",
                     one("n", [1, 2], [2, 1], [3, 2], [0, 4], [2, 3]), 3)
        self.compare("pads", "(float[6, 4] x, int64[4] n) => (float[a, b] y) { y = Pad(x, n) }",
                     one("n", [1, 0, 0, 0], [0, 1, 0, 2], [3, 0, 1, 0], [-1, 0, 0, 0], [0, 0, 0, 0],
                         [0, 2, 1, 1]))
        self.compare("a condition", "(float[6, 4] x, int64 n) => (float[a, b] y) "
                     "{ three = Constant<value = int64 {3}>()  some = Less(n, three)"
                     "  first = Constant<value = int64[1] {0}>()  second = Constant<value = int64[1] {2}>()"
                     "  y = If(some) <then_branch = t () => (float[a, b] u) { u = Neg(x) },"
                     " else_branch = e () => (float[a, b] v) { v = Slice(x, first, second) }> }",
                     one("n", 1, 2, 5, 3, 9, -7, 0), 3)
        self.compare("values that keep plans", "(float[6, 4] x, int64[1] k) => (float[6, m] y, int64[6, m] i) "
                     "{ y, i = TopK(x, k) }", one("k", [1], [2], [3], [4]), 4, kind=2)

    def refused_request(self):
        """A run that no plan fits leaves values that vary in one plan."""
        made = parser.parse_model(f"{HEAD} (float[6, 4] x, int64[1] k, int64[1] axes) => (float[a, b] y) "
                                  "{ t, i = TopK<axis = 0>(x, k)  y = ReduceSum<keepdims = 1>(t, axes) }")
        loaded = self.library.load(made.SerializeToString())
        binding, x, seen = loaded.bind(), self.rng.standard_normal((6, 4)).astype(np.float32), {}
        for k, axis in ((1, 0), (2, 0), (3, 0), (4, 7), (5, 1), (4, 1)):
            given = {"x": x, "k": shapes(k), "axes": shapes(axis)}
            if axis == 7:
                self.refused("an axis that is not there", "ERR_SHAPE", ["axis"], lambda: binding.run(given))
                continue
            y, expected = binding.run(given)["y"], np.sort(x, 0)[::-1][:k].sum(axis, keepdims=True)
            self.check(f"the {k} first, summed", np.allclose(y, expected, atol=1e-5), f"{y}, {expected}")
            seen[k] = self.variant(binding)
        self.check("one plan after a refused request", seen[4] == seen[5] != seen[3], f"{seen}")
        binding.free()
        loaded.free()

    def kernels_of_single_values(self):
        """Without a compiler, a third value runs with the kernels that were compiled for it alone."""
        code = ("import sys; sys.path.insert(0, sys.argv[1])\nimport numpy as np\nfrom tenon import Library\n"
                "loaded = Library(sys.argv[2]).load(open(sys.argv[3], 'rb').read()); binding = loaded.bind()\n"
                "x = np.arange(24, dtype=np.float32).reshape(6, 4)\n"
                "for k in map(int, sys.argv[4:]):\n"
                "    y = binding.run({'x': x, 'k': np.array([k])})['y']\n"
                "    assert np.array_equal(y, x[::-1][:k] * 2), y\n")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "m.onnx")
            path.write_bytes(parser.parse_model(
                f"{HEAD} (float[6, 4] x, int64[1] k) => (float[a, b] y) "
                "{ t, i = TopK<axis = 0>(x, k)  y = Add(t, t) }").SerializeToString())

            def run(values, **environment):
                return subprocess.run([sys.executable, "-c", code, Path(__file__).parent, sys.argv[1], path, *values],
                                      env={**os.environ, "TENON_CACHE": f"{folder}/cache", **environment},
                                      capture_output=True, text=True)
            alone = [run([k], TENON_PAIR="c/cc") for k in "123"]
            self.check("values alone", not any(r.returncode for r in alone), f"{[r.stderr for r in alone]}")
            none = {"PATH": "/nowhere", "TENON_PAIR": "c/cc"}
            all_of_them = run("123", **none)
            self.check("all of them, without a compiler", all_of_them.returncode == 0, all_of_them.stderr)

    def varying_beside_others(self):
        """One of two inputs varies; a value is for a node that computes with it and one that cannot."""
        x = self.rng.standard_normal((6, 4)).astype(np.float32)
        source = ("(float[6, 4] x, int64[1] k, int64[2] s) => (float[a, b] y) "
                  "{ t, i = TopK<axis = 0>(x, k)  r = Transpose<perm = [1, 0]>(t)  p = Relu(r)"
                  "  q = Reshape(x, s)  m = ReduceMax<keepdims = 1>(q)  y = Add(p, m) }")
        runs = [([1], [4, 6]), ([2], [4, 6]), ([3], [4, 6]), ([4], [4, 6]), ([4], [8, 3]),
                ([5], [-1, 3]), ([1], [-1, 3])]
        self.compare("k beside a shape", source,
                     [{"x": x, "k": shapes(*k), "s": shapes(*s)} for k, s in runs])
        both = ("(float[6, 2, 2] x, int64[1] k) => (float[a, b, c] y, float[d, e, f] z) "
                "{ y, i = TopK<axis = 0>(x, k)  z = ReduceSum<keepdims = 1>(x, k) }")
        self.compare("axes that are k", both, [{"x": x.reshape(6, 2, 2), "k": shapes(k)}
                                               for k in (0, 1, 2, 0, 1, 2)], 3)
        offsets = ("(float[n, 4] x, int64[b] at) => (float[b, 4] y) "
                   "{ yes = Constant<value = bool {1}>()  i0 = Constant<value = int64 {0}>()"
                   "  size = Shape(at)  trips = Squeeze(size)"
                   "  y = Loop(trips, yes) <body = g (int64 i, bool c) => (bool d, float[4] e) "
                   "{ zero = Constant<value = int64[1] {0}>()  end = Gather(at, i)"
                   "  ends = Unsqueeze(end, zero)  part = Slice(x, zero, ends)"
                   "  e = ReduceSum<keepdims = 0>(part, zero)  d = Identity(c) }> }")
        self.compare("places that steps read", offsets,
                     [{"x": x, "at": shapes(*a)} for a in ([1, 2], [3, 1], [6, 0], [2, 2])], 1)


def main():
    t = Tests(sys.argv[1])
    t.varying()
    t.varying_beside_others()
    t.refused_request()
    t.kernels_of_single_values()
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
    t.threads_of_varying()
    t.check("tn_close", t.library.close() == 0)
    return t.check.end(60)


if __name__ == "__main__":
    sys.exit(main())
