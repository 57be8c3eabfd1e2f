"""Replaces the weights of an ONNX network by seeded random ones, scaled so that activations keep
unit variance.

A network whose weights are all one number proves little: swap two of its operators, and nothing
changes. Here each layer's weights are drawn, and scaled by what comes out of it, so that whatever a
layer does is seen at the end."""

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

LAYERS = {"Conv", "Gemm"}


class Drawing:
    """Walks through a graph node by node with the values of all names."""

    def __init__(self, model, seed):
        self.opset = model.opset_import[0].version
        self.rng = np.random.default_rng(seed)
        self.values = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
        self.drawn = {n: v.shape for n, v in self.values.items() if v.dtype == np.float32}
        self.weights = {}

    def normal(self, shape, mean=0.0, deviation=1.0):
        return (mean + deviation * self.rng.standard_normal(shape)).astype(np.float32)

    def give(self, name, value):
        self.values[name] = self.weights[name] = value.astype(np.float32)

    def run(self, node):
        """Runs the node alone in ONNX Runtime."""
        names = [n for n in dict.fromkeys(node.input) if n]
        inputs = [helper.make_tensor_value_info(
            n, helper.np_dtype_to_tensor_dtype(self.values[n].dtype), self.values[n].shape)
            for n in names]
        outputs = [onnx.ValueInfoProto(name=n) for n in node.output[:1]]
        alone = onnx.NodeProto.FromString(node.SerializeToString())
        del alone.output[1:]
        graph = helper.make_graph([alone], "node", inputs, outputs)
        model = helper.make_model(graph, ir_version=8,
                                  opset_imports=[helper.make_opsetid("", self.opset)])
        session = onnxruntime.InferenceSession(model.SerializeToString(), quiet())
        return session.run(None, {n: self.values[n] for n in names})[0]

    def draw_layer(self, node):
        w, bias = node.input[1], [n for n in node.input[2:] if n]
        shape = self.drawn[w]
        terms = int(np.prod(shape[1:]))
        if node.op_type == "Gemm" and not any(a.name == "transB" and a.i for a in node.attribute):
            terms = shape[0]
        self.give(w, self.normal(shape, 0, terms ** -0.5))
        for n in bias:
            self.give(n, np.zeros(self.drawn[n]))
        deviation = float(self.run(node).std())
        self.give(w, self.values[w] / deviation)
        for n in bias:
            self.give(n, self.normal(self.drawn[n], 0, 0.1))

    def draw_norm(self, node):
        """Draws a mean and a variance near the actual ones."""
        x, (scale, bias, mean, variance) = self.values[node.input[0]], node.input[1:]
        axes = (0, *range(2, x.ndim))
        shape = self.drawn[scale]
        self.give(scale, self.normal(shape, 1, 0.1))
        self.give(bias, self.normal(shape, 0, 0.1))
        self.give(mean, x.mean(axes) + self.normal(shape, 0, 0.1))
        self.give(variance, (x.var(axes) + 0.01) * np.exp(self.normal(shape, 0, 0.1)))

    def draw_rest(self, node, readers):
        for n in node.input:
            if n in self.drawn and n not in self.weights:
                adds = any(r.op_type in ("Add", "Sum") for r in readers.get(node.output[0], []))
                self.give(n, self.normal(self.drawn[n], 0.0 if adds else 1.0, 0.1))

    def walk(self, nodes):
        readers = {}
        for node in nodes:
            for n in node.input:
                readers.setdefault(n, []).append(node)
        for node in nodes:
            if node.op_type in LAYERS:
                self.draw_layer(node)
            elif node.op_type == "BatchNormalization":
                self.draw_norm(node)
            self.draw_rest(node, readers)
            self.values[node.output[0]] = self.run(node)
            for n in node.input:   # the last reader frees it
                readers[n].remove(node)
                if not readers[n] and n not in self.weights:
                    self.values.pop(n, None)


def quiet():
    """Returns options of ONNX Runtime: no log output, one thread."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return options


def seeded(model, inputs, seed, keep=()):
    """Returns the model with drawn weights in place of its floats (constants that are computed from
    a shape included), except those to keep, and without its final softmax. `inputs` {name: array}
    is the data that variances are measured with."""
    drawing = Drawing(model, seed)
    for name in keep:
        drawing.drawn.pop(name)
    drawing.values.update(inputs)
    nodes = []
    for node in model.graph.node:
        if node.op_type == "ConstantOfShape":
            drawing.drawn[node.output[0]] = tuple(drawing.values[node.input[0]])
        elif node.op_type == "Reshape" and node.input[0] in drawing.drawn:
            drawing.drawn[node.output[0]] = tuple(drawing.values[node.input[1]])
        else:
            nodes.append(node)
    output = model.graph.output[0].name
    if nodes[-1].op_type == "Softmax":
        output = nodes.pop().input[0]
    drawing.walk(nodes)
    used = {n for node in nodes for n in node.input}
    kept = [t for t in model.graph.initializer
            if t.name in used and t.name not in drawing.weights]
    kept += [numpy_helper.from_array(v, n) for n, v in drawing.weights.items()]
    ports = [i for i in model.graph.input if i.name in inputs]
    graph = helper.make_graph(nodes, model.graph.name, ports, [onnx.ValueInfoProto(name=output)],
                              kept)
    return helper.make_model(graph, ir_version=8, opset_imports=list(model.opset_import))
