"""Workloads: kinds of work on arrays, networks, ONNX files, and the list of all. Work on arrays is
written as `tenon bench` takes it ("matmul:512x512x512"; work of order and places is known here
only), with operands that are no constants; the same work is defined here as ONNX nodes and in
NumPy."""
import math
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper
from onnx import helper

import peers
from zoo import files
from zoo.catalogue import NETWORKS
from zoo.families import find as find_network

OPSET, IR_VERSION = 20, 9
EXPORTER = Path(__file__).resolve().parent / "export.py"
EXPORT_SECONDS = 1200


class Unknown(Exception):
    """Raised for a workload that does not exist, with the reason."""


class Unavailable(Exception):
    """Raised for a network that cannot be made here, with the reason."""


# Kinds of work on arrays. Functions take the numbers of a workload.

@dataclass(frozen=True)
class Kind:
    form: str          # format of the numbers
    inputs: Callable   # shapes of the operands
    output: Callable   # the result's shape
    nodes: Callable    # [(operator, inputs, output, attributes)] from x0, x1, … to y
    reference: Callable  # the result, from arrays (first parameter: the numbers)
    operations: Callable = lambda *_: 0  # a multiply-add counts as two; 0: only moves memory
    constants: Callable = lambda *_: {}  # {name: NumPy array} that the nodes use
    draw: Callable = None  # operands, from a generator and the numbers; None: normal f32
    types: tuple = (np.float32,)  # of results; the first is y, the second z, …


def one(operator, **attributes):
    """Returns the nodes of one operator that takes all operands and whose attributes are
    functions."""
    def nodes(*numbers):
        return [(operator, None, "y", {k: f(*numbers) for k, f in attributes.items()})]
    return nodes


def window(numbers, x, w):
    n, c, h, width, k, r, stride, pad = numbers
    padded = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (r, r), axis=(2, 3))
    return np.einsum("nchwij,kcij->nkhw", windows[:, :, ::stride, ::stride], w, optimize=True)


def conv_output(n, c, h, w, k, r, stride, pad):
    return (n, k, (h + 2 * pad - r) // stride + 1, (w + 2 * pad - r) // stride + 1)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layer_norm(_, x, weight, bias):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred ** 2).mean(-1, keepdims=True) + 1e-5) * weight + bias


def gelu(_, x):
    erf = np.fromiter(map(math.erf, (x / math.sqrt(2)).ravel()), np.float64, x.size)
    return x * (1 + erf.reshape(x.shape)) / 2


def scatter_add(_, x, index, updates):
    y = x.copy()
    np.add.at(y, index[:, 0].astype(np.int64), updates)
    return y


def draw_scatter(rng, rows, columns, places):
    return [rng.standard_normal((places, columns), np.float32),
            rng.integers(0, places, (rows, 1)), rng.standard_normal((rows, columns), np.float32)]


def draw_mask(rng, n, chosen):
    mask = np.zeros(n, bool)
    mask[rng.choice(n, chosen, replace=False)] = True
    return [mask]


def in_order(numbers, x):
    """Returns the elements in order and their places: of (n) all, the least first; of (n, k) the k
    greatest."""
    places = np.argsort(x if len(numbers) == 1 else -x, kind="stable")[:numbers[-1]]
    return [x[places], places]


def table(*operands):
    return dict(form="RxC", output=lambda r, c: (r, c),
                inputs=lambda r, c: [{"table": (r, c), "row": (c,)}[o] for o in operands])


KINDS = {
    "matmul": Kind(
        "MxNxK", lambda m, n, k: [(m, k), (k, n)], lambda m, n, k: (m, n), one("MatMul"),
        lambda _, a, b: a @ b, lambda m, n, k: 2 * m * n * k),
    "conv": Kind(
        "N,C,H,W,K,R,stride,pad",
        lambda n, c, h, w, k, r, stride, pad: [(n, c, h, w), (k, c, r, r)], conv_output,
        one("Conv", strides=lambda *s: [s[6]] * 2, pads=lambda *s: [s[7]] * 4), window,
        lambda *s: 2 * math.prod(conv_output(*s)) * s[1] * s[5] ** 2),
    "attention": Kind(
        "HxSxD", lambda h, s, d: [(h, s, d)] * 3, lambda h, s, d: (h, s, d),
        lambda h, s, d: [("Transpose", ["x1"], "keys", {"perm": [0, 2, 1]}),
                         ("MatMul", ["x0", "keys"], "products", {}),
                         ("Mul", ["products", "scale"], "scaled", {}),
                         ("Softmax", ["scaled"], "weights", {"axis": -1}),
                         ("MatMul", ["weights", "x2"], "y", {})],
        lambda s, q, k, v: softmax(q @ k.swapaxes(-2, -1) * s[2] ** -0.5) @ v,
        lambda h, s, d: 4 * h * s * s * d, lambda h, s, d: {"scale": np.float32(d ** -0.5)}),
    "softmax": Kind(**table("table"), nodes=one("Softmax", axis=lambda *_: -1),
                    reference=lambda _, x: softmax(x)),
    "layernorm": Kind(**table("table", "row", "row"), nodes=one("LayerNormalization"),
                      reference=layer_norm),
    "gelu": Kind(**table("table"), nodes=one("Gelu"), reference=gelu),
    "add": Kind(**table("table", "table"), nodes=one("Add"), reference=lambda _, a, b: a + b),
    "cumsum": Kind("N", lambda n: [(n,)], lambda n: (n,),
                   lambda n: [("CumSum", ["x0", "axis"], "y", {})], lambda _, x: np.cumsum(x),
                   constants=lambda n: {"axis": np.int64(0)}),
    "sort": Kind("N", lambda n: [(n,)], lambda n: (n,),
                 lambda n: [("TopK", ["x0", "k"], "y z", {"largest": 0})], in_order,
                 constants=lambda n: {"k": np.array([n])}, types=(np.float32, np.int64)),
    "topk": Kind("NxK", lambda n, k: [(n,)], lambda n, k: (k,),
                 lambda n, k: [("TopK", ["x0", "k"], "y z", {})], in_order,
                 constants=lambda n, k: {"k": np.array([k])}, types=(np.float32, np.int64)),
    "scatter": Kind("ROWSxCOLUMNSxPLACES", lambda r, c, n: [(n, c), (r, 1), (r, c)],
                    lambda r, c, n: (n, c), one("ScatterND", reduction=lambda *_: "add"),
                    scatter_add, draw=draw_scatter),
    "nonzero": Kind("NxCHOSEN", lambda n, chosen: [(n,)], lambda n, chosen: (chosen, 1),
                    lambda n, chosen: [("NonZero", ["x0"], "columns", {}),
                                       ("Transpose", ["columns"], "y", {})],
                    lambda _, x: np.argwhere(x), draw=draw_mask, types=(np.int64,)),
    "copy": Kind("BYTES", lambda n: [(n // 4,)], lambda n: (n // 4,), one("Identity"),
                 lambda _, x: x),
}


# Workloads.

@dataclass(frozen=True)
class Bar:
    """A goal for Tenon: against "peak" or "copy" (the better of the copies) at least this share of
    the rate; against a peer at most so many times its time."""
    against: str
    bound: float
    threads: int | None = None  # None: any number

    @property
    def is_share(self):
        return self.against in ("peak", "copy")

    def met(self, value):
        return value >= self.bound if self.is_share else value <= self.bound


@dataclass(frozen=True)
class Workload:
    """Work on arrays, a network of zoo or an ONNX file, identified by its key; a network has a
    batch and known or open sizes too."""
    key: str
    title: str = ""
    bars: tuple = field(default=())
    batch: int | None = None
    sizes: str | None = None  # "known" or "open"

    @property
    def kind(self):
        """Returns a key of KINDS, "network" or "model"."""
        name = self.key.partition(":")[0]
        return name if name in KINDS else "network" if find_network(self.key) else "model"

    @property
    def numbers(self):
        return tuple(int(n) for n in re.findall(r"\d+", self.key.partition(":")[2]))

    @property
    def output(self):
        return KINDS[self.kind].output(*self.numbers) if self.kind in KINDS else None

    @property
    def operations(self):
        return KINDS[self.kind].operations(*self.numbers) if self.kind in KINDS else 0

    @property
    def bytes(self):
        """Returns the bytes read and written if the workload only moves memory; else 0."""
        if self.kind not in peers.MOVING:
            return 0
        return 4 * sum(map(math.prod, [*KINDS[self.kind].inputs(*self.numbers), self.output]))

    @property
    def bounds(self):
        """Returns {name: (least, most)} of open sizes of a network that is not defined for all."""
        is_open = self.kind == "network" and self.sizes == files.OPEN
        return find_network(self.key).bounds if is_open else {}

    @property
    def tolerance(self):
        """Returns the largest allowed difference of results, in standard deviations of the expected
        one."""
        return 1e-4 if self.kind in KINDS else 1e-3

    def make(self, folder):
        """Returns its ONNX file, written to a folder if need be, and {input: array}."""
        rng = np.random.default_rng(0)
        if self.kind == "model":
            return Path(self.key), random_inputs(onnx.load(self.key, load_external_data=False), rng)
        if self.kind == "network":
            return self.export(), find_network(self.key).inputs({"batch": self.batch})
        inputs = {f"x{i}": x for i, x in enumerate(self.draw(rng))}
        path = Path(folder) / f"{self.kind}.onnx"
        onnx.save(self.make_model(inputs), path)
        return path, inputs

    def draw(self, rng):
        """Returns the operands of work on arrays."""
        kind = KINDS[self.kind]
        if kind.draw:
            return kind.draw(rng, *self.numbers)
        return [rng.standard_normal(shape, np.float32) for shape in kind.inputs(*self.numbers)]

    def export(self):
        """Returns a network's file, which another process writes if it is not there."""
        path = files.path_of(find_network(self.key), {"batch": self.batch}, self.sizes)
        if not path.exists():
            command = [sys.executable, EXPORTER, self.key, "--batch", str(self.batch),
                       "--sizes", self.sizes]
            try:
                done = subprocess.run(command, capture_output=True, text=True,
                                      timeout=EXPORT_SECONDS)
            except subprocess.TimeoutExpired:
                raise Unavailable(f"its export took more than {EXPORT_SECONDS} s") from None
            if done.returncode or not path.exists():
                said = (done.stdout + done.stderr).strip().splitlines() or ["nothing was said"]
                raise Unavailable(f"it cannot be exported: {said[0]}"[:600])
        return path

    def make_model(self, inputs):
        kind, n = KINDS[self.kind], self.numbers
        ports = [port(name, x.dtype, x.shape) for name, x in inputs.items()]
        nodes = [helper.make_node(operator, taken or [*inputs], output.split(), **more)
                 for operator, taken, output, more in kind.nodes(*n)]
        constants = [onnx.numpy_helper.from_array(np.asarray(v), name)
                     for name, v in kind.constants(*n).items()]
        results = [port(name, np.dtype(t), self.output) for name, t in zip("yz", kind.types)]
        graph = helper.make_graph(nodes, self.kind, ports, results, constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)],
                                 ir_version=IR_VERSION)

    def reference(self, inputs):
        """Returns a list of the results, floats in f64; None if there is no NumPy reference."""
        if self.kind not in KINDS:
            return None
        operands = [x.astype(np.float64) for x in inputs.values()]
        made = KINDS[self.kind].reference(self.numbers, *operands)
        return made if isinstance(made, list) else [made]


def port(name, dtype, shape):
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), shape)


def random_inputs(model, rng):
    """Makes a file's inputs: normal floats, small integers; variable sizes are 1."""
    given, made = {w.name for w in model.graph.initializer}, {}
    for port in model.graph.input:
        if port.name in given:
            continue
        tensor = port.type.tensor_type
        dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        shape = [d.dim_value or 1 for d in tensor.shape.dim]
        made[port.name] = (rng.standard_normal(shape).astype(dtype)
                           if np.issubdtype(dtype, np.floating)
                           else rng.integers(0, 2 if dtype == bool else 100, shape).astype(dtype))
    return made


def find(key):
    """Returns the workload of a key: from the list, another one of the same kinds, a network, or an
    ONNX file."""
    for w in LIST:
        if w.key == key:
            return w
    name, _, numbers = key.partition(":")
    network = find_network(key)
    if network:
        return next((w for w in LIST if w.key == network.name),
                    Workload(network.name, network.title))
    if name not in KINDS:
        if Path(key).is_file():
            return Workload(key, "/".join(Path(key).parts[-2:]))
        raise Unknown(f'there is no workload, no network and no file "{key}"')
    form = re.sub("[A-Z]+|stride", r"[1-9]\\d{0,10}", KINDS[name].form).replace("pad", r"\d{1,6}")
    w = Workload(key, key)
    if not re.fullmatch(form, numbers) or min(w.output) < 1:
        raise Unknown(f'"{key}" is not written as {name}:{KINDS[name].form}, with a result of '
                      "one element or more")
    return w


def conv(numbers):
    n, c, h, w, k, r, stride, pad = numbers
    return Workload("conv:" + ",".join(map(str, numbers)),
                    f"convolution {r} × {r}" + (f" by {stride}" if stride > 1 else "")
                    + f", {c} → {k}, {h} × {w}")


def matmul(n, *bars):
    return Workload(f"matmul:{n}x{n}x{n}", f"matmul {n}", bars)


def network(name, *bars):
    return Workload(name, NETWORKS[name].title, bars)


PEAK = (Bar("peak", 0.70, threads=1), Bar("peak", 0.65, threads=2))

LIST = [
    matmul(64), matmul(128), matmul(256), matmul(512, *PEAK), matmul(1024, *PEAK),
    conv((1, 3, 224, 224, 64, 7, 2, 3)),
    conv((1, 64, 56, 56, 64, 3, 1, 1)),
    conv((1, 256, 14, 14, 256, 1, 1, 0)),
    Workload("attention:12x512x64", "attention 12 × 512 × 64", (Bar("pytorch", 1.0),)),
    Workload("softmax:4096x1024", "softmax 4096 × 1024", (Bar("pytorch", 1.0),)),
    Workload("layernorm:4096x1024", "layer norm 4096 × 1024", (Bar("pytorch", 1.0),)),
    Workload("gelu:4096x1024", "GELU 4096 × 1024", (Bar("pytorch", 1.0),)),
    Workload("add:4096x1024", "add 4096 × 1024"),
    Workload("add:8192x8192", "add 8192 × 8192", (Bar("copy", 0.90),)),
    Workload("copy:67108864", "copy 64 MiB"),
    Workload("cumsum:10000000", "cumulative sum of 10⁷", (Bar("pytorch", 1.0),)),
    Workload("sort:10000000", "sort 10⁷ with their places", (Bar("pytorch", 1.0),)),
    Workload("topk:1000000x100", "100 greatest of 10⁶", (Bar("pytorch", 1.0),)),
    Workload("scatter:1000000x64x100000", "add 10⁶ rows of 64 into 10⁵", (Bar("pytorch", 1.0),)),
    Workload("nonzero:10000000x5000000", "places of 5 · 10⁶ of 10⁷", (Bar("pytorch", 1.0),)),
    Workload("nonzero:10000000x100000", "places of 10⁵ of 10⁷", (Bar("pytorch", 1.0),)),
    network("resnet50", Bar("onnxruntime", 1.6, threads=2)),
    network("mobilenet_v2", Bar("onnxruntime", 2.0, threads=2)),
    network("bert6_128", Bar("onnxruntime", 1.6, threads=2)),
]


def all_networks():
    return [find(name) for name in NETWORKS]


def cases(chosen, batches, sizes):
    """Returns the workloads, networks once for each batch and for known and open sizes. Bars hold
    for one image or text of known sizes."""
    made = []
    for w in chosen:
        if w.kind != "network":
            made.append(w)
            continue
        for how in sizes:
            for batch in batches:
                bars = w.bars if (batch, how) == (1, files.KNOWN) else ()
                made.append(replace(w, batch=batch, sizes=how, bars=bars))
    return made
