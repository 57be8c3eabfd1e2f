"""Driver of Tenon, through its C interface: workloads on arrays as expressions, networks as ONNX
files."""
import ctypes
import json
import subprocess
import sys
from pathlib import Path

from sides import native
from worker import Work

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "models" / "onnx"), str(ROOT / "tests" / "ops")]
from binding import Tensor, conv_desc  # noqa: E402
from tenon import NUMBER, NUMPY, Library, Refused, as_shape  # noqa: E402

ADD = 1  # TN_SCATTER_ADD


def conv(tn, numbers, x, w):
    stride, pad = numbers[6:]
    desc = conv_desc(stride=[stride] * 2, pad_low=[pad] * 2, pad_high=[pad] * 2)
    return tn.conv(x, w, None, desc)


def attention(tn, numbers, q, k, v):
    scores = tn.mul(tn.matmul(q, tn.swapaxes(k, -2, -1)), tn.num(numbers[2] ** -0.5))
    return tn.matmul(tn.softmax(scores, -1), v)


def topk(tn, numbers, x):
    out = (ctypes.c_void_p * 2)()
    tn.topk(x, numbers[1], 0, True, ctypes.addressof(out))
    return [Tensor(tn, address) for address in out]


EXPRESSIONS = {
    "matmul": lambda tn, _, a, b: tn.matmul(a, b),
    "conv": conv,
    "attention": attention,
    "softmax": lambda tn, _, x: tn.softmax(x, -1),
    "layernorm": lambda tn, _, x, weight, bias: tn.layer_norm(x, weight, bias, -1, 1e-5),
    "gelu": lambda tn, _, x: tn.gelu(x),
    "add": lambda tn, _, a, b: tn.add(a, b),
    "copy": lambda tn, _, x: x,
    "cumsum": lambda tn, _, x: tn.cumsum(x, 0),
    "sort": lambda tn, _, x: [tn.sort(x, 0, False), tn.argsort(x, 0, False)],
    "topk": topk,
    "scatter": lambda tn, _, x, index, updates: tn.scatter_nd(x, index, updates, ADD),
    "nonzero": lambda tn, _, x: tn.nonzero(x),
}


class Side:
    def __init__(self, settings):
        self.settings = settings
        self.tn, self.binding, self.model = Library(settings["build"]), None, None
        p, text = ctypes.c_void_p, ctypes.c_char_p
        self.tn.declare("input", [p, text, type(as_shape([])), ctypes.c_int], p)
        self.tn.declare("plan_compile", [p, p, ctypes.c_size_t, p, p])
        self.tn.declare("plan_bind", [p, p])

    def command(self, *args):
        command = [str(Path(self.settings["build"]) / "tenon"), *args]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def version(self):
        return self.command("version").split()[1]

    def peak(self):
        """Returns GFLOP/s of in-register multiply-adds on all threads, with the vectors allowed."""
        said = self.command("bench", "matmul:16x16x16", "--json", "--repeat", "1", "--threads",
                            str(self.settings["threads"]))
        return json.loads(said)["peak_gflops"]

    def check(self, status):
        if status:
            raise Refused(status, self.tn.message())

    def compile(self, task, inputs):
        """Compiles expressions of the inputs; returns a binding and its outputs' names."""
        operands = [Tensor(self.tn, self.tn.lib.tn_input(self.tn.context, name.encode(),
                                                         as_shape(x.shape),
                                                         NUMBER[x.dtype]))
                    for name, x in inputs.items()]
        made = EXPRESSIONS[task["kind"]](self.tn, task["numbers"], *operands)
        outputs = made if isinstance(made, list) else [made]
        plan, binding = ctypes.c_void_p(), ctypes.c_void_p()
        self.check(self.tn.lib.tn_plan_compile(self.tn.context, self.tn.many(outputs), len(outputs),
                                               None, ctypes.byref(plan)))
        self.check(self.tn.lib.tn_plan_bind(plan, ctypes.byref(binding)))
        return binding, [str(i) for i in range(len(outputs))]

    def load(self, task):
        """Loads a model; returns a binding and the names of the outputs."""
        self.model = self.tn.load(task["model"], list(task["bounds"].items()))
        bound = self.model.bind()
        return bound.handle, bound.outputs

    def free(self):
        """Frees the binding and the model before."""
        self.tn.lib.tn_binding_free(self.binding)
        if self.model:
            self.model.free()
        self.binding, self.model = None, None

    def prepare(self, task, inputs):
        lib = self.tn.lib
        self.free()
        is_model = task["kind"] in ("model", "network")
        binding, outputs = self.load(task) if is_model else self.compile(task, inputs)
        self.binding = binding

        def check(status):
            if status:
                raise Refused(status, lib.tn_binding_message(binding).decode(errors="replace"))

        for name, x in inputs.items():
            check(lib.tn_binding_input(binding, name.encode(), as_shape(x.shape), NUMBER[x.dtype],
                                       x.ctypes.data, x.nbytes))

        def read(output):
            type_of = lib.tn_binding_type(binding, output.encode())
            out = native.empty(tuple(type_of.shape.size[:type_of.shape.rank]),
                               NUMPY[type_of.dtype])
            check(lib.tn_binding_read(binding, output.encode(), type_of.dtype, out.ctypes.data,
                                      out.nbytes))
            return out

        def results(held=inputs):
            return [read(output) for output in outputs]

        return Work(lambda: check(lib.tn_binding_run(binding)), results,
                    native.function_times(self.settings["build"], lib.tn_binding_run, binding))
