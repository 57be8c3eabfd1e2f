"""Compares one-node ONNX models, and small chains of nodes, with ONNX Runtime or ONNX's own
evaluator. Merges many cases into one file, which Tenon and the reference load once; each case is
compared by itself."""

from dataclasses import dataclass, field

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from tenon import DTYPES, NUMPY, Refused, is_strings

BF16 = np.dtype(ml_dtypes.bfloat16)
ONNX_TYPE = {np.dtype(t): n for n, t in DTYPES.values()} | {np.dtype(object): TensorProto.STRING}
RTOL = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-12, np.dtype(np.float16): 1e-2,
        BF16: 1e-2}
RUNTIME_OPSET = 26  # newest opset of this ONNX Runtime


@dataclass
class In:
    """An input of a case: an array, and the model's declaration of its sizes (a name, a number, or
    "" for none); `kind` is "input", "const" (an initializer) or "both". A map is a dict."""
    array: np.ndarray
    dims: list = None
    kind: str = "input"


def const(values, dtype=np.int64):
    return In(np.array(values, dtype), kind="const")


@dataclass
class Case:
    label: str
    nodes: list  # (operator, [inputs], [outputs], {attributes})
    inputs: dict  # name: In
    outputs: list
    terms: int = 0  # products per element of a sum
    more: list = field(default_factory=list)  # further {name: array}, of other sizes
    expected: dict = None  # {name: array}: in place of a reference, which does not know the operator


def one(op, *inputs, terms=0, label="", more=(), **attributes):
    """Makes a case of one node. Inputs that are None are left out."""
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    given = {n: x if isinstance(x, In) else In(np.asarray(x)) for n, x in zip(names, inputs) if n}
    shapes = ", ".join("-" if x is None else
                       f"{(x.array if isinstance(x, In) else x).dtype}"
                       f"{list((x.array if isinstance(x, In) else x).shape)}" for x in inputs)
    shown = {k: v for k, v in attributes.items()}
    return Case(f"{op}({shapes}) {shown or ''} {label}".strip(), [(op, names, ["y"], attributes)],
                given, ["y"], terms, [dict(m) for m in more])


def stated(case, y):
    """Returns the case, whose one output has to be y."""
    case.expected = {case.outputs[0]: np.asarray(y)}
    return case


def tensor_of(name, array):
    if array.dtype == BF16:
        return helper.make_tensor(name, TensorProto.BFLOAT16, array.shape, array.tobytes(),
                                  raw=True)
    return numpy_helper.from_array(array, name)


OTHER_OPSET = 21  # of ONNX's own operators in models of operators of another domain


def domain_of(op):
    """Returns the domain of an operator, which stands before its name."""
    return op.rpartition(".")[0]


def own_name(op):
    return op.rpartition(".")[2]


def model_of(cases, opset, ir_version=8):
    """Makes a model with all cases side by side; names of case i begin with "ci", i a number. The
    opset is that of the domain of the first case's nodes, ONNX's own aside."""
    inputs, initialisers, nodes, outputs = [], [], [], []
    domain = max(domain_of(op) for op, *_ in cases[0].nodes)
    for i, case in enumerate(cases):
        def own(name):
            return f"c{i}.{name}" if name else ""
        for name, x in case.inputs.items():
            if x.kind != "input":
                initialisers.append(tensor_of(own(name), x.array))
            if isinstance(x.array, dict):
                inputs.append(helper.make_value_info(own(name), type_of_map(x.array)))
            elif x.kind != "const":
                dims = x.dims if x.dims is not None else list(x.array.shape)
                dims = [(own(d) or None) if isinstance(d, str) else d for d in dims]
                inputs.append(helper.make_tensor_value_info(own(name), ONNX_TYPE[x.array.dtype],
                                                            dims))
        for k, (op, ins, outs, attributes) in enumerate(case.nodes):
            if own_name(op) == "Gradient":   # whose attributes name tensors
                attributes = {k: own(v) if isinstance(v, str) else [own(n) for n in v]
                              for k, v in attributes.items()}
            nodes.append(helper.make_node(own_name(op), [own(n) for n in ins], [own(n) for n in outs],
                                          name=own(f"node{k}"), domain=domain_of(op), **attributes))
        outputs += [onnx.ValueInfoProto(name=own(n)) for n in case.outputs]
    graph = helper.make_graph(nodes, "cases", inputs, outputs, initialisers)
    sets = [helper.make_opsetid(domain, opset)]
    if domain:
        sets.insert(0, helper.make_opsetid("", OTHER_OPSET))
    return helper.make_model(graph, opset_imports=sets, ir_version=ir_version)


def parts_of_map(given):
    """Returns the keys and the values of a map as arrays; floats that are not NumPy's are f32."""
    values = list(given.values())
    kinds = {str: object, float: np.float32, int: np.int64}
    return (np.array(list(given), object if isinstance(next(iter(given)), str) else np.int64),
            np.array(values, kinds.get(type(values[0]), type(values[0]))))


def type_of_map(given):
    keys, values = parts_of_map(given)
    return helper.make_map_type_proto(ONNX_TYPE[keys.dtype],
                                      helper.make_tensor_type_proto(ONNX_TYPE[values.dtype], []))


def apart(given):
    """Returns inputs as Tenon takes them: a map as its keys and its values."""
    inputs = {}
    for name, x in given.items():
        if isinstance(x, dict):
            inputs[f"{name}.keys"], inputs[f"{name}.values"] = parts_of_map(x)
        else:
            inputs[name] = x
    return inputs


def feeds(cases, which=0):
    """Returns the inputs of all cases; `which` > 0: those of other sizes, if a case has them."""
    given = {}
    for i, case in enumerate(cases):
        other = case.more[which - 1] if 0 < which <= len(case.more) else {}
        for name, x in case.inputs.items():
            if x.kind == "input":
                given[f"c{i}.{name}"] = other.get(name, x.array)
    return given


class NoReference(Exception):
    pass


RECURRENT = {"RNN", "GRU", "LSTM"}   # whose lengths of sequences ONNX's evaluator leaves out


def drop_attributes(model, name):
    for node in model.graph.node:
        for a in [a for a in node.attribute if a.name == name]:
            node.attribute.remove(a)


class Reference:
    """The reference: ONNX Runtime if it runs the model, else ONNX's own evaluator. If neither
    supports the model's opset, another opset with the same definition is used: 6 or 7 for the first
    opsets, 21 for new ones, 9 for removed operators."""

    def __init__(self, model, inputs):
        model = onnx.ModelProto.FromString(model.SerializeToString())
        opset = model.opset_import[0].version
        drop_attributes(model, "consumed_inputs")   # without a meaning
        failures = []
        is_old_layer = opset < 7 and any(n.op_type in RECURRENT for n in model.graph.node)
        ways = (self.runtime,) if is_old_layer else (self.runtime, self.evaluator)
        others = (6, 7) if opset < 7 else [v for v in (21, 9) if v < opset]
        for version in [opset, *[v for v in others if v != opset]]:
            if version == 7:
                drop_attributes(model, "is_test")   # the behaviour of later versions
                drop_attributes(model, "output_sequence")   # without a meaning since
            for by in ways:
                try:
                    self.session = by(model, min(version, RUNTIME_OPSET))
                    self.by = by.__name__
                    self.run(inputs)
                    return
                except Exception as e:
                    failures.append(e)
        raise NoReference(f"neither ONNX Runtime nor ONNX's evaluator runs it: {failures}")

    @staticmethod
    def evaluator(model, opset):
        from onnx.reference import ReferenceEvaluator
        if opset != RUNTIME_OPSET:
            model = onnx.ModelProto.FromString(model.SerializeToString())
            model.opset_import[0].version = opset
        return ReferenceEvaluator(model)

    @staticmethod
    def runtime(model, opset):
        copy = onnx.ModelProto.FromString(model.SerializeToString())
        copy.opset_import[0].version = opset
        copy.ir_version = min(copy.ir_version, 13)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        return onnxruntime.InferenceSession(copy.SerializeToString(), options)

    def run(self, inputs):
        if self.by == "runtime":
            names = [o.name for o in self.session.get_outputs()]
            return dict(zip(names, self.session.run(None, inputs)))
        results = self.session.run(None, inputs)
        return dict(zip(self.session.output_names, [np.asarray(r) for r in results]))


def differs(actual, expected, terms):
    """Returns why two arrays differ; None if they do not."""
    if is_strings(expected):
        expected = expected.astype(object)
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        return (f"it is {actual.dtype}{list(actual.shape)}, not "
                f"{expected.dtype}{list(expected.shape)}")
    if actual.dtype in RTOL:
        rtol = RTOL[actual.dtype] * (10 * terms ** 0.5 if terms else 1)
        a, e = actual.astype(np.float64), expected.astype(np.float64)
        finite = e[np.isfinite(e)]
        close = np.isclose(a, e, rtol=rtol, atol=rtol * (finite.std() if finite.size else 0),
                           equal_nan=True)
    else:
        close = actual == expected
    if np.all(close):
        return None
    at = tuple(int(i) for i in np.argwhere(~close)[0])
    return (f"at {list(at)} of {list(expected.shape)} it is {actual[at]!r}, not "
            f"{expected[at]!r}; {np.count_nonzero(~close)} of {close.size} differ")


class Runner:
    def __init__(self, library, batch=24):
        self.library, self.batch = library, batch
        self.passed, self.failures, self.by = 0, [], {"runtime": 0, "evaluator": 0}

    def fail(self, label, why):
        self.failures.append(f"{label}: {why}")

    def check(self, label, holds, why=""):
        if holds:
            self.passed += 1
        else:
            self.fail(label, why)

    def run(self, cases, opset, ir_version=8):
        """Runs the cases whose reference is ONNX Runtime, and those without a kernel in it,
        separately."""
        groups = {"runtime": [], "evaluator": []}
        for case in cases:
            if case.expected:
                self.run_expected(case, opset, ir_version)
                continue
            try:
                reference = Reference(model_of([case], opset, ir_version), feeds([case]))
            except NoReference as e:
                self.fail(f"opset {opset}: {case.label}", str(e))
                continue
            groups[reference.by].append(case)
        for group in groups.values():
            for i in range(0, len(group), self.batch):
                self.run_some(group[i:i + self.batch], opset, ir_version)

    def run_expected(self, case, opset, ir_version):
        """Compares a case with the values that it states."""
        try:
            loaded = self.library.load(model_of([case], opset, ir_version).SerializeToString())
            actual = loaded.run(apart(feeds([case])))
            loaded.free()
        except Refused as e:
            self.fail(f"opset {opset}: {case.label}", str(e))
            return
        why = None
        for name in case.outputs:
            why = why or differs(actual[f"c0.{name}"], case.expected[name], case.terms)
        self.check(f"opset {opset}: {case.label}", why is None, why)

    def run_some(self, cases, opset, ir_version):
        model = model_of(cases, opset, ir_version)
        try:
            loaded = self.library.load(model.SerializeToString())
            binding = loaded.bind()
            self.compare_all(cases, opset, Reference(model, feeds(cases)), binding)
            binding.free()
            loaded.free()
        except Refused as e:
            if len(cases) == 1:
                self.fail(f"opset {opset}: {cases[0].label}", str(e))
                return
            for case in cases:
                self.run_some([case], opset, ir_version)

    def compare_all(self, cases, opset, reference, binding):
        for which in range(1 + max(len(c.more) for c in cases)):
            given = feeds(cases, which)
            actual, expected = binding.run(apart(given)), reference.run(given)
            for i, case in enumerate(cases):
                why = None
                for name in case.outputs:
                    full = f"c{i}.{name}"
                    why = why or differs(actual[full], np.asarray(expected[full]), case.terms)
                self.by[reference.by] += 1
                self.check(f"opset {opset}: {case.label}", why is None, why)
