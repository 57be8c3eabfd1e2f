"""Runs the cases of the onnx package's backend tests: node tests with the functions that ONNX
expands, and the collections of models. A case is run in a process of its own, with a limit on its
time. It passes if the shape, type and values of each output are those expected, by the tolerances
of the case; integers, bools and strings have to be equal. Then the expectations are corrupted, and
the comparison has to notice that."""

import multiprocessing.connection
import functools
import os
import pickle
import random
import re
import signal
import time
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnx.backend.test.case.model
import onnx.backend.test.loader as loader
from onnx import numpy_helper
from onnx.backend.test.runner import Runner

from tenon import NUMBER, Library, Refused, is_strings

PASSED, FAILED, NOT_COMPARABLE, SKIPPED = OUTCOMES = ["passed", "failed", "not comparable", "skipped"]
COLLECTIONS = ["node", "simple", "pytorch-converted", "pytorch-operator", "light"]
F32 = np.float32
SECONDS, SECONDS_OF_NETWORKS = 120, 600
BF16_RTOL = 2.0**-6  # two units in the last place

# Cases whose expected values are draws of NumPy's generator.
RANDOM = re.compile(r"test_bernoulli|test_training_dropout(?!_zero_ratio)")


@dataclass
class Case:
    name: str
    collection: str
    operator: str    # of a node test; "" in other collections
    domain: str
    source: object   # TestCase of the package


@dataclass
class Result:
    outcome: str
    reason: str = ""
    controls: int = 0   # corrupted expectations that the comparison refused
    seconds: float = 0.0


# ---- Cases ----

def node_cases():
    """Returns the node tests; an expanded one belongs to the operator whose function it is."""
    cases, first = [], {}
    warnings.simplefilter("ignore", RuntimeWarning)   # of arithmetic in the package
    for t in loader.load_node_model_tests():
        node = t.model.graph.node[0]
        own, expanded = t.name, t.name.find("_expanded")
        if expanded >= 0 and t.name[:expanded] in first:
            node = first[t.name[:expanded]]
        first.setdefault(own, node)
        cases.append(Case(t.name, "node", node.op_type, node.domain, t))
    return cases


def all_cases():
    cases = node_cases()
    on_disk = {t.name for t in loader.load_model_tests(kind="simple")}
    made = onnx.backend.test.case.model.collect_testcases()
    cases += [Case(t.name, "simple", "", "", t) for t in loader.load_model_tests(kind="simple")]
    cases += [Case(t.name, "simple", "", "", t) for t in made
              if t.name not in on_disk and t.kind == "simple"]
    for kind in COLLECTIONS[2:4]:
        cases += [Case(t.name, kind, "", "", t) for t in loader.load_model_tests(kind=kind)]
    cases += [Case(t.name, "light", "", "", t) for t in loader.load_model_tests(kind="real")]
    assert len({(c.collection, c.name) for c in cases}) == len(cases)
    return sorted(cases, key=lambda c: (COLLECTIONS.index(c.collection), c.name))


def sample(cases, share, seed):
    """Returns one case in `share`, drawn by a seed."""
    return sorted(random.Random(seed).sample(cases, len(cases) // share),
                  key=lambda c: (COLLECTIONS.index(c.collection), c.name))


def array_of(item):
    """Returns an array, a list of arrays, or None for an absent optional value."""
    if isinstance(item, onnx.TensorProto):
        return numpy_helper.to_array(item)
    if isinstance(item, (list, tuple)):
        return [array_of(x) for x in item]
    return None if item is None else np.asarray(item)


def read_value(path, declared):
    """Returns the value of a .pb file: an array, a list of arrays or None."""
    kind, data = declared.type.WhichOneof("value"), path.read_bytes()
    if kind == "optional_type":
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    if kind == "sequence_type":
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))


def read_folder(folder, model):
    sets = []
    for at in sorted(folder.glob("test_data_set_*")):
        sets.append([[read_value(at / f"{kind}_{i}.pb", v) for i, v in enumerate(values)]
                     for kind, values in (("input", model.graph.input[:len(list(at.glob("input_*.pb")))]),
                                          ("output", model.graph.output))])
    return sets


def read_light(source):
    """Returns the model and data of a network that the package holds without its weights."""
    path = Path(onnx.__file__).parent.parent / source.url
    model = onnx.load(path)
    weights = {t.name for t in model.graph.initializer}
    inputs = [Runner.generate_dummy_data(v) for v in model.graph.input if v.name not in weights]
    outputs = [numpy_helper.to_array(onnx.TensorProto.FromString(
        path.with_name(f"{path.stem}_output_{i}.pb").read_bytes()))
        for i in range(len(model.graph.output))]
    return model, [(inputs, outputs)]


def read_case(case):
    """Returns the model as bytes, the names of its inputs and outputs, and pairs of arrays."""
    source = case.source
    if case.collection == "light":
        model, sets = read_light(source)
    elif source.model is not None:
        model = source.model
        sets = [([array_of(x) for x in ins], [array_of(x) for x in outs])
                for ins, outs in source.data_sets]
    else:
        model = onnx.load(Path(source.model_dir) / "model.onnx")
        sets = read_folder(Path(source.model_dir), model)
    weights = {t.name for t in model.graph.initializer}
    inputs = [v.name for v in model.graph.input if v.name not in weights]
    return model.SerializeToString(), inputs, [v.name for v in model.graph.output], sets


# ---- Comparing ----

def is_inexact(kind):
    return np.issubdtype(kind, np.floating) or kind.name.startswith(("bfloat", "float"))


def difference(actual, expected, case):
    """Returns how an output differs from what is expected; "" if it does not."""
    if not isinstance(expected, np.ndarray):
        return difference_of_lists(actual, expected, case)
    if not isinstance(actual, np.ndarray):
        return "it is no tensor"
    if actual.shape != expected.shape:
        return f"the shape is {list(actual.shape)}, not {list(expected.shape)}"
    if is_strings(expected):
        return difference_of_strings(actual, expected)
    if actual.dtype != expected.dtype:
        return f"the type is {actual.dtype}, not {expected.dtype}"
    if not is_inexact(expected.dtype):
        wrong = np.count_nonzero(actual != expected)
        return f"{wrong} of {expected.size} values are wrong" if wrong else ""
    rtol = max(case.source.rtol, BF16_RTOL) if expected.dtype.name == "bfloat16" else case.source.rtol
    with np.errstate(all="ignore"):
        wide = [x.astype(np.float64) for x in (actual, expected)]
        fits = np.isclose(*wide, rtol=rtol, atol=case.source.atol, equal_nan=True)
    wrong = np.count_nonzero(~fits)
    return f"{wrong} of {expected.size} values are wrong" if wrong else ""


def difference_of_strings(actual, expected):
    if not is_strings(actual):
        return f"the type is {actual.dtype}, not strings"
    wrong = sum(a != (e.decode() if isinstance(e, bytes) else e)
                for a, e in zip(actual.flat, expected.flat))
    return f"{wrong} of {expected.size} strings are wrong" if wrong else ""


def difference_of_lists(actual, expected, case):
    if actual is None or expected is None:
        return "" if actual is expected else "one is absent"
    if not isinstance(actual, list) or len(actual) != len(expected):
        return f"it is not a sequence of {len(expected)} tensors"
    found = [difference(a, e, case) for a, e in zip(actual, expected)]
    return next((f"tensor {i}: {text}" for i, text in enumerate(found) if text), "")


def corrupted(expected):
    """Yields what an output must not be equal to: another shape, another type, and one other
    value; of a sequence, another length and corrupted tensors."""
    if not isinstance(expected, np.ndarray):
        yield np.zeros(3, np.int16)
        yield [np.zeros(2, F32)] if expected is None else expected + [np.zeros(2, F32)]
        for i, x in enumerate(expected or []):
            yield from (expected[:i] + [y] + expected[i + 1:] for y in corrupted(x))
        return
    yield expected[None]
    if is_strings(expected):
        yield np.zeros(expected.shape, np.int64)
    else:
        yield expected.astype(np.int16 if expected.dtype == np.int8 else np.int8)
    if not expected.size:
        return
    other = np.array(expected, copy=True).reshape(-1)
    at = other.size // 2
    if is_strings(expected):
        other = other.astype(object)
        other[at] = "another"
    elif other.dtype == np.bool_:
        other[at] = not other[at]
    elif is_inexact(other.dtype):
        v = float(other[at])
        other[at] = v + 1 + abs(v) / 8 if np.isfinite(v) else 0
    else:
        other[at] ^= 1
    yield other.reshape(expected.shape)


# ---- Running ----

def is_tensor(value):
    return value.type.WhichOneof("value") in ("tensor_type", None)


def computes_lists(model):
    """Says whether a value of the graph is a list, as far as types can be inferred."""
    inferred = onnx.shape_inference.infer_shapes(model).graph
    return not all(map(is_tensor, [*inferred.value_info, *inferred.output]))


def settled(graph, given, has_lists):
    """Returns the values and lists by which a model is loaded for a set: its lists, and where an
    output is one, inputs of integers and bools, which may decide on its length."""
    lists = {n: x for n, x in given.items() if not isinstance(x, np.ndarray)}
    if not has_lists:
        return {}, lists
    plain = {v.name for v in graph.input if is_tensor(v)}
    return {n: x for n, x in given.items() if n in plain and x.dtype.kind in "iub"}, lists


def ports_of(given):
    """Returns the inputs by port: those of a list are its tensors."""
    for name, x in given.items():
        if isinstance(x, np.ndarray):
            yield name, x
        else:
            yield from ((f"{name}[{i}]", y) for i, y in enumerate(x or []))


def result(loaded, found, name):
    """Returns an output: an array, a list of arrays or None."""
    if name in found:
        return found[name]
    n = loaded.length(name)
    return None if n < 0 else [found[f"{name}[{i}]"] for i in range(n)]


def values_of(model, outputs):
    """Returns the model's outputs, and all other values that its nodes compute."""
    graph = onnx.ModelProto.FromString(model).graph
    return outputs + [v for n in graph.node for v in n.output if v and v not in outputs]


def run_tenon(folder, model, inputs, outputs, sets, stored=False, **options):
    """Yields the outputs of each set; with `stored` all values of the graph are outputs. A list
    among these has as many tensors as values and sizes of inputs say when the model is loaded."""
    graph = onnx.ModelProto.FromString(model).graph
    has_lists = not all(map(is_tensor, graph.output))
    stores_lists = stored and not has_lists and computes_lists(model)
    if stored and not has_lists:
        options["outputs"] = values_of(model, outputs)
    library = Library(folder)
    loaded = None
    for given, _ in sets:
        given = dict(zip(inputs, given))
        for name, x in ports_of(given):
            if x.dtype not in NUMBER and not is_strings(x):
                raise Refused(3, f"an input of type {x.dtype}")
        values, lists = settled(graph, given, has_lists or stores_lists)
        if loaded is None or values or lists:
            sizes = [(f"{n}:{i}", size) for n, x in given.items() if n not in {**values, **lists}
                     for i, size in enumerate(x.shape)] if lists or stores_lists else []
            loaded = library.load(model, sizes, values=values, lists=lists, **options)
        found = loaded.run({n: x for n, x in ports_of(given) if n not in values})
        yield [result(loaded, found, name) for name in outputs]


def run_onnxruntime(_, model, inputs, outputs, sets):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    for given, _ in sets:
        yield session.run(outputs, dict(zip(inputs, given)))


RUNTIMES = {"tenon": run_tenon, "onnxruntime": run_onnxruntime,
            "interpreter": functools.partial(run_tenon, interpreted=True),
            "stored": functools.partial(run_tenon, stored=True)}


def check(case, runtime, folder):
    """Runs a case; returns its Result."""
    model, inputs, outputs, sets = read_case(case)
    assert sets
    controls, is_drawn = 0, bool(RANDOM.match(case.name))
    for (given, expected), found in zip(sets, RUNTIMES[runtime](folder, model, inputs, outputs, sets)):
        for name, e, a in zip(outputs, expected, found, strict=True):
            if is_drawn:
                a = a if a.shape != e.shape or a.dtype != e.dtype else e
            why = difference(a, e, case)
            if why:
                return Result(FAILED, f"output '{name}': {why}")
            for wrong in corrupted(e):
                if not difference(a, wrong, case):
                    return Result(FAILED, f"output '{name}': a corrupted expectation is not noticed")
                controls += 1
    if is_drawn:
        return Result(NOT_COMPARABLE, "the expected values are random draws", controls)
    return Result(PASSED, "", controls)


def one_line(text):
    return re.sub(r"\s+", " ", text).strip()


def result_of(case, runtime, folder):
    try:
        return check(case, runtime, folder)
    except Refused as e:
        return Result(FAILED, one_line(re.sub(r"^\w+: (the model: )?", "", str(e))))
    except Exception as e:   # of another runtime, or a mistake here
        if runtime == "tenon":
            traceback.print_exc()
        return Result(FAILED, one_line(f"{type(e).__name__}: {e}")[:300])


class Running:
    """A case in a process of its own, the leader of a group."""

    def __init__(self, case, runtime, folder):
        self.case, self.start = case, time.monotonic()
        limit = SECONDS_OF_NETWORKS if case.collection == "light" else SECONDS
        self.end = self.start + limit
        self.pipe, writer = os.pipe()
        self.pid = os.fork()
        if self.pid:
            os.close(writer)
            return
        os.setsid()
        data = pickle.dumps(result_of(case, runtime, folder))
        os.write(writer, data)
        os._exit(0)

    def fileno(self):
        return self.pipe

    def finish(self):
        """Returns the result of the process, which has ended or is out of time."""
        late = time.monotonic() >= self.end
        data = b"" if late else os.read(self.pipe, 1 << 16)
        if late:
            os.killpg(self.pid, signal.SIGKILL)
        os.close(self.pipe)
        _, status = os.waitpid(self.pid, 0)
        if data and not status:
            result = pickle.loads(data)
        elif late:
            result = Result(FAILED, f"takes more than {self.end - self.start:.0f} s")
        else:
            result = Result(FAILED, f"ends the process with signal {os.WTERMSIG(status)}")
        result.seconds = time.monotonic() - self.start
        return result


def run_all(cases, folder, jobs, runtime="tenon", progress=None):
    """Runs cases, `jobs` at a time; returns their results in order."""
    results, waiting, running = {}, list(reversed(cases)), []
    while waiting or running:
        while waiting and len(running) < jobs:
            running.append(Running(waiting.pop(), runtime, folder))
        left = min(r.end for r in running) - time.monotonic()
        ready = multiprocessing.connection.wait(running, max(left, 0))
        for r in [r for r in running if r in ready or time.monotonic() >= r.end]:
            running.remove(r)
            results[r.case.collection, r.case.name] = r.finish()
            if progress:
                progress(r.case, results[r.case.collection, r.case.name])
    return [results[c.collection, c.name] for c in cases]
