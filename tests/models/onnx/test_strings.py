#!/usr/bin/env python3
"""Tests models of strings: their table, results of the interpreter, and refusals.

    test_strings.py BUILD
"""

import ctypes
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
try:
    import numpy as np
    from onnx import TensorProto, helper
except ImportError as missing:
    print(f"skipped: {missing} (scripts/setup.sh --tests installs it)")
    sys.exit(77)
import tenon
from checks import Checks
from tenon import INPUT, Library, Refused

STRING, F32, I64, BOOL = TensorProto.STRING, TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def model(nodes, inputs, outputs):
    ports = [[helper.make_tensor_value_info(n, t, d) for n, (t, d) in values.items()]
             for values in (inputs, outputs)]
    return helper.make_model(helper.make_graph(nodes, "strings", *ports),
                             opset_imports=[helper.make_opsetid("", 20)], ir_version=9).SerializeToString()


def words():
    return model([helper.make_node("StringSplit", ["x"], ["y", "n"], delimiter=" ")],
                 {"x": (STRING, ["k"])}, {"y": (STRING, None), "n": (I64, ["k"])})


def loop(node, output, carried=False):
    """A loop whose body has the node, which reads x; `carried`: and the state s, which its output is."""
    state = [helper.make_tensor_value_info("s", STRING, [2])] if carried else []
    body = helper.make_graph([node, helper.make_node("Identity", ["holds"], ["goes_on"])], "body",
                             [helper.make_tensor_value_info("i", I64, []),
                              helper.make_tensor_value_info("holds", BOOL, []), *state],
                             [helper.make_tensor_value_info("goes_on", BOOL, []), output])
    return model([helper.make_node("Constant", [], ["three"], value_int=3),
                  helper.make_node("Loop", ["three", "", *["x"] * carried], ["y"], body=body)],
                 {"x": (STRING, [2])}, {"y": (STRING, None)})


class Tests:
    def __init__(self, folder):
        self.library, self.check = Library(folder), Checks()

    def refused(self, what, status, needed, call):
        try:
            call()
        except Refused as e:
            missing = [w for w in needed if w not in e.message]
            self.check(what, e.status == status and not missing, f"{e}; missing: {missing}")
        else:
            self.check(what, False, "it is not refused")

    def table(self):
        """Equal strings have one number, and bytes of any kind come back."""
        m = self.library.load(words())
        given = np.array([b"", b"a", b"a\0b", "ä".encode(), b"\xff\xfe", b"a"], object)
        numbers = m.numbers_of(given)
        self.check("numbers", numbers[0] == 0 and numbers[1] == numbers[5] and len(set(numbers)) == 5, numbers)
        n = ctypes.c_size_t()
        for number, text in zip(numbers, given):
            at = m.lib.tn_model_string(m.handle, int(number), ctypes.byref(n))
            self.check(f"string {text}", ctypes.string_at(at, n.value) == text)
        for number in (-1, 10**6):
            self.check(f"no string {number}", not m.lib.tn_model_string(m.handle, number, None))
        number = ctypes.c_int64()
        for args in ((None, b"a", 1, ctypes.byref(number)), (m.handle, None, 1, ctypes.byref(number)),
                     (m.handle, b"a", 1, None)):
            self.check("NULL", m.lib.tn_model_string_number(*args) != 0)
        self.check("a port of strings", m.string_ports(INPUT) == {"x"})
        binding = m.bind()
        self.refused("a number of no string", "ERR_ARGUMENT", ["StringSplit", "1000000"],
                     lambda: binding.run({"x": np.array([0, 10**6])}))
        self.check("the next run", binding.run({"x": np.array(["a b"], object)})["n"][0] == 2)
        binding.free()
        m.free()

    def interpreted(self):
        """The interpreter's results are those of compiled runs."""
        x, found = np.array(["a b", "", "c  d e"], object), []
        for is_interpreted in (False, True):
            desc = tenon.ModelDesc(ctypes.sizeof(tenon.ModelDesc), interpreted=is_interpreted)
            handle, source = ctypes.c_void_p(), words()
            s = self.library.lib.tn_model_load_bytes(self.library.context, source, len(source),
                                                     ctypes.byref(desc), ctypes.byref(handle))
            self.check("loaded", s == 0, self.library.message())
            m = tenon.Model(self.library, handle)
            found.append(m.run({"x": x}))
            m.free()
        self.check("parts", found[0]["y"].tolist() == [["a", "b", "", ""], [""] * 4, ["c", "", "d", "e"]],
                   found[0]["y"])
        for name in ("y", "n"):
            self.check(f"interpreted {name}", found[0][name].tolist() == found[1][name].tolist(), found[1])

    def numbers_of_strings(self):
        """Strings that are no number of the type fail the run."""
        def to(kind):
            return self.library.load(model([helper.make_node("Cast", ["x"], ["y"], to=kind)],
                                           {"x": (STRING, [1])}, {"y": (kind, [1])}))
        for kind, name, texts in ((F32, "f32", ["", "a", "1.5x", "0x10", "1,5", "infinity", "nan(1)", "1 2", "."]),
                                  (I64, "i64", ["", "a", "9223372036854775808", "1e19", "NaN", "INF", "--1",
                                                "9223372036854775808.0", "-9223372036854775809.0", ".", "-.", "-", "1.2.3", "+-1", "1e"]),
                                  (TensorProto.UINT8, "u8", ["256", "-1", "1e3"]),
                                  (TensorProto.INT8, "i8", ["128", "-129"]),
                                  (TensorProto.UINT64, "u64", ["-1", "-1.5", "18446744073709551616", "18446744073709551616.0"])):
            m = to(kind)
            for text in texts:
                self.refused(f"{text!r} as {name}", "ERR_ARGUMENT", ["Cast", f"'{text}'", f"type {name}"],
                             lambda: m.run({"x": np.array([text], object)}))
            m.free()

    def exact_numbers(self):
        """Integers are exact whatever fraction follows them, and large floats are infinite."""
        low, high, top = -2**63, 2**63 - 1, 2**64 - 1
        for kind, read in ((I64, {"9007199254740993.0": 2**53 + 1, f"{high}.0": high, f"{low}.9": low, f"{high}.": high,
                                  "-0.9": 0, ".5": 0, "-.5": 0, "+7.9": 7, "-7.9": -7, "1.5e3": 1500, "007": 7}),
                           (TensorProto.UINT64, {f"{top}.5": top, "9007199254740993.0": 2**53 + 1, "-0.9": 0, "-0": 0,
                                                 "+3.0": 3, "1e3": 1000}),
                           (F32, {"1e400": np.inf, "-1e39": -np.inf, "1e-400": 0}),
                           (TensorProto.DOUBLE, {"1e400": np.inf, "1e39": 1e39})):
            m = self.library.load(model([helper.make_node("Cast", ["x"], ["y"], to=kind)],
                                        {"x": (STRING, [len(read)])}, {"y": (kind, [len(read)])}))
            found = m.run({"x": np.array(list(read), object)})["y"].tolist()
            for (text, wanted), v in zip(read.items(), found):
                self.check(f"{text!r} as type {kind}", v == wanted, v)
            m.free()

    def fewest_digits(self):
        """Floats have the fewest digits that give them back, numbers below the normal ones too."""
        for kind, dtype, texts in (
                (F32, np.float32, ["0", "-0", "0.1", "1.5", "123456", "0.3333333", "16777216", "1e-45", "1.1754942e-38",
                                   "3.4028235e+38", "-1e+20", "0.0001", "1.0000001e-05"]),
                (TensorProto.DOUBLE, np.float64, ["0", "0.1", "0.30000000000000004", "5e-324", "1.7976931348623157e+308",
                                                  "2.225073858507201e-308", "123456789012345", "9007199254740992",
                                                  "1e-05", "-1e+17", "1e+23"])):
            m = self.library.load(model([helper.make_node("Cast", ["x"], ["y"], to=STRING)],
                                        {"x": (kind, [len(texts)])}, {"y": (STRING, [len(texts)])}))
            found = m.run({"x": np.array(texts, dtype)})["y"].tolist()
            self.check(f"strings of type {kind}", found == texts, found)
            m.free()

    def steps(self):
        """Strings that the steps of a loop make, and that they carry."""
        twice, x = helper.make_node("StringConcat", ["x", "x"], ["t"]), np.array(["ab", "é"], object)
        text = helper.make_tensor_value_info("t", STRING, [2])
        m = self.library.load(loop(twice, text))
        found = m.run({"x": x})["y"].tolist()
        self.check("strings of steps", found == 3 * [["abab", "éé"]], found)
        m.free()
        made = loop(helper.make_node("StringConcat", ["s", "x"], ["t"]), text, carried=True)
        m = self.library.load(made)
        found = m.run({"x": x})["y"].tolist()
        self.check("strings that steps carry", found == ["ab" * 4, "é" * 4], found)
        m.free()

    def refusals(self):
        load = self.library.load
        for what, status, needed, source in (
                ("arithmetic", "ERR_UNSUPPORTED", ["Add", "'x'", "strings"],
                 model([helper.make_node("Add", ["x", "x"], ["y"])], {"x": (STRING, [2])}, {"y": (STRING, [2])})),
                ("integers for strings", "ERR_DTYPE", ["StringConcat", "'x'"],
                 model([helper.make_node("StringConcat", ["x", "x"], ["y"])], {"x": (I64, [2])}, {"y": (STRING, [2])})),
                ("strings with integers", "ERR_DTYPE", ["Concat", "'k'"],
                 model([helper.make_node("Concat", ["x", "k"], ["y"], axis=0)],
                       {"x": (STRING, [2]), "k": (I64, [2])}, {"y": (STRING, [4])})),
                ("combined strings", "ERR_UNSUPPORTED", ["ScatterElements", "combined"],
                 model([helper.make_node("ScatterElements", ["x", "i", "x"], ["y"], reduction="add")],
                       {"x": (STRING, [2]), "i": (I64, [2])}, {"y": (STRING, [2])})),
                ("filled with a string", "ERR_DTYPE", ["ConstantOfShape", "'value'", "strings"],
                 model([helper.make_node("Shape", ["x"], ["n"]),
                        helper.make_node("ConstantOfShape", ["n"], ["y"],
                                         value=helper.make_tensor("v", STRING, [1], [b"a"]))],
                       {"x": (STRING, [2])}, {"y": (STRING, [2])})),
                ("a pattern that is none", "ERR_FORMAT", ["RegexFullMatch", "(a"],
                 model([helper.make_node("RegexFullMatch", ["x"], ["y"], pattern="(a")],
                       {"x": (STRING, [2])}, {"y": (BOOL, [2])}))):
            self.refused(what, status, needed, lambda: load(source))


def main():
    t = Tests(sys.argv[1])
    t.table()
    t.interpreted()
    t.numbers_of_strings()
    t.exact_numbers()
    t.fewest_digits()
    t.steps()
    t.refusals()
    t.check("tn_close", t.library.close() == 0)
    return t.check.end(40)


if __name__ == "__main__":
    sys.exit(main())
