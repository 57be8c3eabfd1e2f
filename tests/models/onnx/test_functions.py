#!/usr/bin/env python3
"""Tests models with functions of their own against ONNX Runtime: attributes that refer to those of
a call and their defaults, inputs that a call leaves out, calls in calls and in bodies of loops,
operator sets and overloads; what of them is refused, and an expansion that would not end.

    test_functions.py BUILD
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import AttributeProto, TensorProto, helper
except ImportError as missing:
    print(f"skipped: {missing} (scripts/setup.sh --tests installs it)")
    sys.exit(77)
from checks import Checks
from tenon import Library, Refused

check = Checks()
DOMAIN = "com.example"


def refer(node, name, to, kind=AttributeProto.FLOAT):
    """Gives the node an attribute that refers to one of the function."""
    node.attribute.append(AttributeProto(name=name, ref_attr_name=to, type=kind))
    return node


def node(op, inputs, outputs, domain="", overload="", **attributes):
    made = helper.make_node(op, inputs.split(), outputs.split(), domain=domain, **attributes)
    made.input[:] = ["" if i == "-" else i for i in made.input]
    if overload:
        made.overload = overload
    return made


def function(name, inputs, outputs, nodes, attributes=(), defaults=None, opset=17, overload=""):
    f = helper.make_function(DOMAIN, name, inputs.split(), outputs.split(), nodes,
                             [helper.make_opsetid("", opset), helper.make_opsetid(DOMAIN, 1)],
                             list(attributes))
    for key, value in (defaults or {}).items():
        f.attribute_proto.append(helper.make_attribute(key, value))
    if overload:
        f.overload = overload
    return f


def model(nodes, functions, shape=(2, 3), outputs=("y",), opset=17):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, list(shape))
    graph = helper.make_graph(nodes, "functions", [x], [onnx.ValueInfoProto(name=n) for n in outputs])
    imports = [helper.make_opsetid("", opset), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=imports, functions=functions, ir_version=10)


LEAKY = function("Leaky", "x", "y", [refer(node("LeakyRelu", "x", "y"), "alpha", "slope")], ["slope"])
OR_TENTH = function("OrTenth", "x", "y", [refer(node("LeakyRelu", "x", "y"), "alpha", "slope")],
                    defaults={"slope": 0.1})
TWICE = function("Twice", "x", "y", [
    refer(node("Leaky", "x", "t", DOMAIN), "slope", "both"), node("Neg", "t", "u"),
    refer(node("Leaky", "u", "y", DOMAIN), "slope", "both")], ["both"])
CLIP = function("Bounded", "x low high", "y", [node("Clip", "x low high", "y")])
PARTS = function("Parts", "x", "y z", [node("Relu", "x", "y"), node("Sub", "x y", "z")])
OLD = function("Old", "x", "y", [node("ReduceSum", "x", "y", axes=[1])], opset=11)


def body():
    """A body of a loop that calls a function."""
    names = ("i", TensorProto.INT64, []), ("c", TensorProto.BOOL, []), ("s", TensorProto.FLOAT, [2, 3])
    outs = ("c1", TensorProto.BOOL, []), ("t", TensorProto.FLOAT, [2, 3])
    return helper.make_graph([node("Identity", "c", "c1"), node("Leaky", "s", "l", DOMAIN, slope=0.5),
                              node("Neg", "l", "t")], "body",
                             [helper.make_tensor_value_info(*n) for n in names],
                             [helper.make_tensor_value_info(*n) for n in outs])


def constant(name, value):
    return helper.make_node("Constant", [], [name],
                            value=onnx.numpy_helper.from_array(np.array(value)))


MODELS = {
    "an attribute of a call": model([node("Leaky", "x", "y", DOMAIN, slope=0.25)], [LEAKY]),
    "an attribute that the call leaves out": model([node("Leaky", "x", "y", DOMAIN)], [LEAKY]),
    "a default": model([node("OrTenth", "x", "y", DOMAIN)], [OR_TENTH]),
    "a default that the call overrides":
        model([node("OrTenth", "x", "y", DOMAIN, slope=0.75)], [OR_TENTH]),
    "calls in calls": model([node("Twice", "x", "y", DOMAIN, both=0.5)], [LEAKY, TWICE]),
    "one function twice": model([node("Leaky", "x", "u", DOMAIN, slope=0.5), node("Neg", "u", "v"),
                                 node("Leaky", "v", "y", DOMAIN, slope=0.125)], [LEAKY]),
    "an input that is left out": model([constant("high", np.float32(0.5)),
                                        node("Bounded", "x - high", "y", DOMAIN)], [CLIP]),
    "inputs that are left out": model([node("Bounded", "x", "y", DOMAIN)], [CLIP]),
    "several outputs": model([node("Parts", "x", "y z", DOMAIN)], [PARTS], outputs=("y", "z")),
    "a function in a loop": model([constant("n", np.int64(3)), constant("on", True),
                                   node("Loop", "n on x", "y", body=body())], [LEAKY]),
}


def compare(library, label, m):
    x = np.random.default_rng(5).standard_normal((2, 3)).astype(np.float32)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(m.SerializeToString(), options)
    expected = session.run(None, {"x": x})
    try:
        loaded = library.load(m.SerializeToString())
        actual = loaded.run({"x": x})
        loaded.free()
    except Refused as e:
        check(label, False, e)
        return
    for out, e in zip(session.get_outputs(), expected, strict=True):
        check(f"{label}: {out.name}", np.allclose(actual[out.name], e, 1e-6), (actual, expected))


def check_own_opset(library):
    """A function's operators are those of its own operator sets: axes are an attribute in 11."""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    loaded = library.load(model([node("Old", "x", "y", DOMAIN)], [OLD]).SerializeToString())
    check("an older operator set", np.array_equal(loaded.run({"x": x})["y"], x.sum(1, keepdims=True)))
    loaded.free()


def check_overloads(library):
    x = np.arange(6, dtype=np.float32).reshape(2, 3) - 2
    ways = [function("Way", "x", "y", [node(op, "x", "y")], overload=op) for op in ("Neg", "Abs")]
    m = model([node("Way", "x", "y", DOMAIN, "Abs"), node("Way", "x", "z", DOMAIN, "Neg")], ways,
              outputs=("y", "z"))
    loaded = library.load(m.SerializeToString())
    found = loaded.run({"x": x})
    check("overloads", np.array_equal(found["y"], abs(x)) and np.array_equal(found["z"], -x), found)
    loaded.free()


SELF = function("Self", "x", "y", [node("Self", "x", "y", DOMAIN)])
MISSING = function("Missing", "x", "y", [node("Wavelet", "x", "t", name="inner"),
                                         node("Nowhere", "t", "y", DOMAIN)])
OUTER = function("Outer", "x", "y", [node("Add", "x z", "y", name="reads")])
REFUSED = {
    "a function that calls itself": (
        model([node("Self", "x", "y", DOMAIN, name="first")], [SELF]), "ERR_FORMAT", "deeper than 64"),
    "what a function needs": (
        model([node("Missing", "x", "y", DOMAIN)], [MISSING]), "ERR_UNSUPPORTED",
        "Wavelet", "'inner'", "Nowhere", "no function of the name"),
    "a value of the graph that calls": (
        model([node("Neg", "x", "z"), node("Outer", "x", "y", DOMAIN, name="call")], [OUTER]),
        "ERR_FORMAT", "'call'", "'reads'", "'z'"),
    "more inputs than a function has": (
        model([node("Leaky", "x x", "y", DOMAIN)], [LEAKY]), "ERR_FORMAT", "2 inputs"),
    "an overload that is not there": (
        model([node("Neg", "x", "y", overload="other")], []), "ERR_UNSUPPORTED", "Neg:other"),
}


def check_refused(library, label, m, status, *words):
    try:
        library.load(m.SerializeToString()).free()
        check(label, False, "was loaded")
    except Refused as e:
        check(label, e.status == status and all(w in e.message for w in words), e)


def doubling(depth):
    """A call that expands to 2 ** depth nodes: each function calls the one before twice."""
    functions = [function("F0", "x", "y", [node("Neg", "x", "y")])]
    for i in range(1, depth + 1):
        before = [node(f"F{i - 1}", "x", "t", DOMAIN), node(f"F{i - 1}", "t", "y", DOMAIN)]
        functions.append(function(f"F{i}", "x", "y", before))
    return model([node(f"F{depth}", "x", "y", DOMAIN, name="first")], functions)


def check_time(folder):
    os.environ["TENON_COMPILE_SECONDS"] = "0.2"
    library = Library(folder)
    check_refused(library, "functions that expand without end", doubling(40), "ERR_TIMEOUT",
                  "'first'", "F1 node '", "longer than 0.2 s (compile_seconds")
    check("tn_close", library.close() == 0)
    del os.environ["TENON_COMPILE_SECONDS"]


def main(folder):
    library = Library(folder)
    for label, m in MODELS.items():
        compare(library, label, m)
    check_own_opset(library)
    check_overloads(library)
    for label, case in REFUSED.items():
        check_refused(library, label, *case)
    check("tn_close", library.close() == 0)
    check_time(folder)
    return check.end(17)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
