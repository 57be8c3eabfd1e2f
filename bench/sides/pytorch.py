"""Driver of PyTorch, called for speed: without gradients, and with results written to an existing
array where the operation allows it."""
import onnx
import torch
import torch.nn.functional as F
from onnx import helper, numpy_helper

from worker import Work

aten = torch.ops.aten


def with_out(function):
    """Makes a call of function(numbers, out, operands…), which writes into `out`."""
    def make(numbers, out, *operands):
        return lambda: function(numbers, out, *operands)
    return make


def norm(_, out, x, weight, bias):
    rest = [torch.empty((x.shape[0], 1)) for _ in range(2)]
    return lambda: aten.native_layer_norm.out(x, weight.shape, weight, bias, 1e-5, out0=out,
                                              out1=rest[0], out2=rest[1])


def attention(_, out, *operands):
    q, k, v = (x.unsqueeze(0) for x in operands)
    return lambda: F.scaled_dot_product_attention(q, k, v)


OPERATIONS = {
    "matmul": with_out(lambda _, out, a, b: torch.matmul(a, b, out=out)),
    "conv": with_out(lambda n, out, x, w: F.conv2d(x, w, stride=n[6], padding=n[7])),
    "attention": attention,
    "softmax": with_out(lambda _, out, x: torch.softmax(x, -1, out=out)),
    "layernorm": norm,
    "gelu": with_out(lambda _, out, x: aten.gelu.out(x, out=out)),
    "add": with_out(lambda _, out, a, b: torch.add(a, b, out=out)),
    "copy": with_out(lambda _, out, x: out.copy_(x)),
}


# Convolutional networks: the nodes of the file as a module, traced and frozen. Transformers are
# left out, as their nodes are not how one would write them in PyTorch.

NODES = {
    "Add": lambda _, a, b: a + b,
    "BatchNormalization": lambda a, x, weight, bias, mean, var: F.batch_norm(
        x, mean, var, weight, bias, eps=a["epsilon"]),
    "Clip": lambda _, x, low, high: F.hardtanh(x, low.item(), high.item()),
    "Conv": lambda a, x, w, b=None: F.conv2d(x, w, b, a["strides"], a["pads"][:2],
                                             groups=a["group"]),
    "Flatten": lambda a, x: x.flatten(a["axis"]),
    "Gemm": lambda _, x, w, b: F.linear(x, w, b),
    "GlobalAveragePool": lambda _, x: F.adaptive_avg_pool2d(x, 1),
    "Identity": lambda _, x: x,
    "MaxPool": lambda a, x: F.max_pool2d(x, a["kernel_shape"], a["strides"], a["pads"][:2]),
    "Relu": lambda _, x: F.relu(x),
}


class Network(torch.nn.Module):
    """A model of networks.py."""

    def __init__(self, model):
        super().__init__()
        self.weights = {w.name: torch.from_numpy(numpy_helper.to_array(w).copy())
                        for w in model.graph.initializer}
        self.inputs = [p.name for p in model.graph.input]
        self.nodes = [(NODES[n.op_type], n.input, n.output[0],
                       {a.name: helper.get_attribute_value(a) for a in n.attribute})
                      for n in model.graph.node]

    def forward(self, *inputs):
        values = self.weights | dict(zip(self.inputs, inputs))
        for function, operands, result, attributes in self.nodes:
            values[result] = function(attributes, *(values[name] for name in operands))
        return values[result]


def frozen(path, operands):
    model = onnx.load(path)
    missing = {n.op_type for n in model.graph.node} - NODES.keys()
    if missing:
        raise NotImplementedError(f"not written for {', '.join(sorted(missing))}")
    traced = torch.jit.trace(Network(model).eval(), tuple(operands), check_trace=False)
    return torch.jit.optimize_for_inference(torch.jit.freeze(traced))


class Side:
    def __init__(self, settings):
        torch.set_num_threads(settings["threads"])
        torch.set_grad_enabled(False)

    def version(self):
        return torch.__version__

    def prepare(self, task, inputs):
        operands = [torch.from_numpy(x) for x in inputs.values()]
        if task["kind"] == "network":
            network = frozen(task["model"], operands)
            return Work(lambda: network(*operands), lambda: network(*operands).numpy())
        run = OPERATIONS[task["kind"]](task["numbers"], torch.empty(task["output"]), *operands)
        return Work(run, lambda: run().reshape(task["output"]).numpy()
                    if task["kind"] != "layernorm" else run()[0].numpy())
