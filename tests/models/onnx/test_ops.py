#!/usr/bin/env python3
"""Tests every ONNX operator of src/formats/onnx/ops/onnx_operators.def, in each of its versions,
against ONNX Runtime (against ONNX's own evaluator for types that the runtime has no kernel of); and
the table's rows against the published definitions.

Runs all cases of each operator's newest version and an eighth of those of older ones; all of them
if operators are named, or TENON_LONG is set.

    test_ops.py BUILD [OPERATOR]…
"""

import functools
import os
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
try:
    import numpy as np
    import onnx
    import onnxruntime  # noqa: F401
    import ml_dtypes  # noqa: F401
except ImportError as missing:
    print(f"skipped: {missing} (scripts/setup.sh --tests installs it)")
    sys.exit(77)
import operators
import operators_contracting
import operators_elementwise
import operators_encoded
import operators_indexing
import operators_loops
import operators_losses
import operators_other_domains
import operators_quantized
import operators_random
import operators_recurrent
import operators_sampling
import operators_sequences
import operators_strings
import operators_signals
from cases import Case, In, Runner, const, domain_of, model_of, one, own_name
from operators import F32, chains, some
from tenon import Library, Refused

SOURCE = Path(__file__).resolve().parents[3] / "src" / "formats" / "onnx"
NEWEST = int(re.search(r"ONNX_OPSET_MAX = (\d+)", (SOURCE / "importer/importer.h").read_text()).group(1))
VARIADIC = 65535
DOMAINS = {None: "", "ml": "ai.onnx.ml.", "preview": "ai.onnx.preview.",
           "training": "ai.onnx.preview.training.", "microsoft": "com.microsoft."}
LANGUAGE = (operators_elementwise.OPERATORS | operators_indexing.OPERATORS |
            operators_contracting.OPERATORS | operators_recurrent.OPERATORS |
            operators_loops.OPERATORS | operators_losses.OPERATORS |
            operators_quantized.OPERATORS | operators_sampling.OPERATORS |
            operators_signals.OPERATORS | operators_random.OPERATORS |
            operators_other_domains.OPERATORS | operators_sequences.OPERATORS |
            operators_strings.OPERATORS | operators_encoded.OPERATORS)  # test_ops_language.py
OPERATORS = operators.OPERATORS | LANGUAGE


def rows():
    row = (r'^ONNX_OP(?:_OF\((\w+), |\()(\w+), "([\d ]+)", "([\w !,]*)", '
           r'(\d+), (\d+), (\d+)\)')
    for m in re.finditer(row, (SOURCE / "ops/onnx_operators.def").read_text(), re.M):
        domain, name, versions, attributes, *counts = m.groups()
        yield (DOMAINS[domain] + name, [int(v) for v in versions.split()],
               {a.partition("!")[0] for a in attributes.split()}, *map(int, counts))


@functools.cache
def all_definitions():
    """The operators of the onnx package, and those that ONNX Runtime adds in a domain of its own."""
    own = onnxruntime.capi.onnxruntime_pybind11_state.get_all_operator_schema()
    return [*onnx.defs.get_all_schemas_with_history(), *(s for s in own if s.domain == "com.microsoft")]


def definition_of(name, version):
    """The newest definition of an operator that a version of its domain has."""
    return max((s for s in all_definitions()
                if s.name == own_name(name) and s.domain == domain_of(name) and
                s.since_version <= version), key=lambda s: s.since_version)


def check_rows(r):
    """Checks that rows agree with the definitions from their first version on."""
    r.check("newest opset", NEWEST == onnx.defs.onnx_opset_version(),
            f"{NEWEST}, the package has {onnx.defs.onnx_opset_version()}")
    for name, versions, attributes, least, most, outputs in rows():
        all_of = [s for s in all_definitions()
                  if s.name == own_name(name) and s.domain == domain_of(name) and
                  versions[0] <= s.since_version]
        defined = sorted(s.since_version for s in all_of)
        r.check(f"{name}: versions", versions == defined, f"{versions}, defined are {defined}")
        published = set().union(*[set(s.attributes) for s in all_of])
        r.check(f"{name}: attributes", attributes == published,
                f"{sorted(attributes)}, defined are {sorted(published)}")
        counts = (min(s.min_input for s in all_of),
                  min(max(s.max_input for s in all_of), VARIADIC),
                  min(max(s.max_output for s in all_of), VARIADIC))
        r.check(f"{name}: inputs and outputs", (least, most, outputs) == counts,
                f"{(least, most, outputs)}, defined are {counts}")


def check_missing(r):
    """Checks nodes without an attribute that their operator requires."""
    for name, versions, *_ in rows():
        for version in versions:
            schema = definition_of(name, version)
            required = {k for k, a in schema.attributes.items() if a.required}
            for attribute in required - {"consumed_inputs"}:  # of BatchNormalization 1, without effect
                case, *_ = OPERATORS[name](version, np.random.default_rng(5))
                model = model_of([case], version)
                node = next(n for n in model.graph.node if n.op_type == own_name(name))
                kept = [a for a in node.attribute if a.name != attribute]
                r.check(f"{name} {version}: {attribute} is there", len(kept) < len(node.attribute))
                del node.attribute[:]
                node.attribute.extend(kept)
                check_refused(r, f"{name} {version} without {attribute}", model,
                              f"attribute '{attribute}' is missing")


def check_inputs(r):
    """Checks nodes with a wrong number of inputs."""
    for op, n, attributes, says in (("Add", 1, {}, "expected 2 inputs, got 1"),
                                    ("Clip", 4, {}, "expected 1 to 3 inputs, got 4"),
                                    ("Concat", 0, {"axis": 0}, "expected 1 or more inputs, got 0")):
        case = Case(op, [(op, ["x"] * n, ["y"], attributes)],
                    {"x": In(some(np.random.default_rng(6), (2, 3), F32))}, ["y"])
        check_refused(r, f"{op} of {n}", model_of([case], 13), says)


def check_support_vectors(r):
    """Checks that the entries of support vectors are not counted modulo 2^64."""
    x = some(np.random.default_rng(6), (2, 4), F32)
    case = operators_other_domains.ml("SVMRegressor", x, n_supports=2**62, coefficients=[1.0], rho=[0.0])
    check_refused(r, "many support vectors", model_of([case], 4),
                  f"support_vectors has 0 entries for {2**62} vectors")


def check_refused(r, what, model, says):
    try:
        r.library.load(model.SerializeToString()).free()
        r.check(what, False, "was loaded")
    except Refused as e:
        r.check(what, e.status == "ERR_FORMAT" and says in e.message, e)


def share_of_older():
    """Returns n such that every n-th case of older versions runs."""
    return 1 if os.environ.get("TENON_LONG") else 8


def check_operator(r, name, versions, older):
    for version in versions:
        parts = 1 if version == versions[-1] else older
        cases = list(OPERATORS[name](version, np.random.default_rng(version)))
        r.run(cases[version % parts::parts] or cases[:1], version)
    if not domain_of(name):
        r.run(cases[::7] or cases, NEWEST, ir_version=14)


def check_leaves(r):
    """Checks initializers of every storage and type, and unused inputs."""
    rng = np.random.default_rng(3)
    x = some(rng, (2, 3), F32)
    with_default = one("Add", x, In(some(rng, (3,), F32), kind="both"), label="with a default")
    r.run([with_default], 7, ir_version=3)
    r.run([with_default, one("Add", x, const(1.5, F32)), one("Mul", const([2, 3]), const(5)),
           Case("an input that nothing reads", [("Exp", ["x"], ["y"], {})],
                {"x": In(x), "idle": In(x)}, ["y"]),
           Case("one value as two outputs", [("Exp", ["x"], ["y"], {}), ("Tanh", ["y"], ["z"], {})],
                {"x": In(x)}, ["y", "z"]),
           Case("an input as an output", [("Exp", ["x"], ["y"], {})], {"x": In(x)}, ["y", "x"]),
           Case("a constant as an output", [("Exp", ["x"], ["y"], {})],
                {"x": In(x), "w": const([1.0, 2], F32)}, ["y", "w"])], 13)


def check_zeros_of_rows(r):
    """Checks a zero point per row of the first matrix, which neither reference supports."""
    rng = np.random.default_rng(4)
    x, y = some(rng, (3, 4), np.uint8, 0, 200), some(rng, (4, 5), np.uint8, 0, 200)
    zeros = np.array([5, 0, 190], np.uint8)
    model = model_of([one("MatMulInteger", x, y, const(zeros, np.uint8))], 10)
    loaded = r.library.load(model.SerializeToString())
    actual = loaded.run({"c0.x0": x, "c0.x1": y})["c0.y"]
    expected = (x.astype(np.int32) - zeros[:, None]) @ y.astype(np.int32)
    r.check("MatMulInteger: a zero point a row", np.array_equal(actual, expected), actual)
    loaded.free()


def check_legacy_axes(r):
    """Checks broadcasting as before version 7, which the references do not know."""
    rng = np.random.default_rng(8)
    x = some(rng, (2, 3, 4), F32)
    for shape, axis in (((3,), 1), ((2, 3), 0), ((4,), None), ((3, 4), -2), ((1,), 0)):
        y = some(rng, shape, F32)
        given = {} if axis is None else {"axis": axis}
        model = model_of([one("Sub", x, y, broadcast=1, **given)], 6)
        loaded = r.library.load(model.SerializeToString())
        actual = loaded.run({"c0.x0": x, "c0.x1": y})["c0.y"]
        first = 3 - len(shape) if axis is None else axis % 3
        expected = x - y.reshape(shape + (1,) * (3 - first - len(shape)))
        r.check(f"Sub 6: {shape} at axis {axis}", np.array_equal(actual, expected), actual)
        loaded.free()
    case = one("Sub", x, some(rng, (4,), F32))
    try:
        r.library.load(model_of([case], 6).SerializeToString()).free()
        r.check("Sub 6: without broadcast", False, "was loaded")
    except Refused as e:
        r.check("Sub 6: without broadcast", "broadcast is not set" in e.message, e)


FAR = (("i1", -128, 127, 1), ("i1", 127, -128, -100), ("i2", -30000, 30000, 10000),
       ("i4", -2 * 10**9, 2 * 10**9, 10**9), ("i4", 2**31 - 1, -2**31, -2**31),
       ("i8", -9 * 10**18, 9 * 10**18, 4 * 10**18), ("i8", 9 * 10**18, -9 * 10**18, -4 * 10**18),
       ("i8", 2**63 - 1, -2**63, -2**63), ("i8", -2**63, 2**63 - 1, 2**63 - 1),
       ("i8", 2**63 - 1, -2**63, 1), ("u1", 0, 255, 50), ("u1", 5, 0, 1), ("u1", 5, 5, 255),
       ("u2", 1, 2**16 - 1, 2**15), ("u4", 5, 2**32 - 1, 2**30), ("u8", 5, 2**64 - 1, 2**62),
       ("u8", 2**63 - 1, 2**63 + 5, 2), ("u8", 2**64 - 1, 1, 2**63))


def check_far_ranges(r):
    """Checks ranges whose length exceeds their type, which the runtime miscounts, and ranges from a
    computed number."""
    for t, *parts in FAR:
        values = [const(v, np.dtype(t)) for v in parts]
        loaded = r.library.load(model_of([one("Range", *values)], 11).SerializeToString())
        actual, expected = loaded.run({})["c0.y"], np.array(range(*parts), t)
        r.check(f"Range {t} {parts}", np.array_equal(actual, expected), actual)
        loaded.free()
    for t, more, step in (("i4", 5, 2), ("i8", 5, 1), ("i8", -5, -3), ("i2", 300, 100)):
        case = Case("from data", [("Add", ["s", "more"], ["e"], {}),
                                  ("Range", ["s", "e", "step"], ["y"], {})],
                    {"s": In(np.array(7, t)), "more": const(more, t), "step": const(step, t)}, ["y"])
        loaded = r.library.load(model_of([case], 11).SerializeToString())
        actual = loaded.run({"c0.s": np.array(7, t)})["c0.y"]
        r.check(f"Range of {more} from data", np.array_equal(actual, np.arange(7, 7 + more, step)),
                actual)
        loaded.free()


def main(folder, wanted, named=False):
    r = Runner(Library(folder))
    older = 1 if named else share_of_older()
    if not wanted:
        check_rows(r)
        check_missing(r)
        check_inputs(r)
        check_support_vectors(r)
        check_leaves(r)
        check_zeros_of_rows(r)
        check_legacy_axes(r)
        check_far_ranges(r)
        for opset in (13, 18, NEWEST):
            r.run(list(chains(np.random.default_rng(opset))), opset)
            r.run(list(operators_indexing.chains(np.random.default_rng(opset))), max(opset, 18))
    names = {row[0]: row[1] for row in rows()}
    r.check("every row has cases", set(names) == set(OPERATORS),
            f"{set(names) ^ set(OPERATORS)}")
    for name in wanted or operators.OPERATORS:
        check_operator(r, name, names[name], older)
    r.check("tn_close", r.library.close() == 0)
    for f in r.failures:
        print("FAILED", f)
    print(f"{r.passed} passed, {len(r.failures)} failed; compared with ONNX Runtime "
          f"{r.by['runtime']}, with ONNX's evaluator {r.by['evaluator']}")
    least = 1 if wanted else 1500 // older
    sys.exit(bool(r.failures) or r.passed < least)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:], named=bool(sys.argv[2:]))
