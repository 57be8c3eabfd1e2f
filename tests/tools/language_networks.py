"""Writes ONNX models of language networks with seeded weights, as exporters write them: an encoder
like BERT's and a recurrent network. Weights are scaled so that activations keep their variance.

    language_networks.py encoder|recurrent FILE     writes one of them
"""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


class Graph:
    """Collects nodes and weights; a value is its name."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.weights, self.known = [], [], {}

    def __call__(self, op, *inputs, outputs=1, **attributes):
        names = [f"{op.lower()}_{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, name=names[0][:-2],
                                           **attributes))
        return names[0] if outputs == 1 else names

    def weight(self, *shape, fan=None, mean=0.0):
        scale = 1 / np.sqrt(fan if fan else shape[-2])
        data = (mean + self.rng.standard_normal(shape) * scale).astype(np.float32)
        return self.tensor(data)

    def tensor(self, data):
        name = f"weight_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(data, name))
        return name

    def constant(self, values, dtype=np.int64):
        key = (str(values), np.dtype(dtype))
        if key not in self.known:
            self.known[key] = self.tensor(np.array(values, dtype))
        return self.known[key]

    def number(self, value):
        return self.constant(value, np.float32)

    def model(self, inputs, outputs, opset):
        graph = helper.make_graph(
            self.nodes, "network",
            [helper.make_tensor_value_info(n, t, s) for n, t, s in inputs],
            [helper.make_tensor_value_info(n, FLOAT, s) for n, s in outputs], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)],
                                  ir_version=8)
        onnx.checker.check_model(model)
        return model


def named(g, name, value):
    g.nodes.append(helper.make_node("Identity", [value], [name], name=name))
    return name


def size_of(g, x, axis):
    return g("Gather", g("Shape", x), g.constant(axis), axis=0)


def shape(g, *sizes):
    """Makes a shape of numbers and of computed sizes."""
    parts = [g.constant([s]) if isinstance(s, int) else g("Unsqueeze", s, g.constant([0]))
             for s in sizes]
    return g("Concat", *parts, axis=0)


def dense(g, x, inputs, outputs):
    return g("Add", g("MatMul", x, g.weight(inputs, outputs)), g.weight(outputs, fan=25))


def normalised(g, x, width):
    """Makes a layer normalisation of primitive nodes, as exporters did before
    LayerNormalization."""
    mean = g("ReduceMean", x, axes=[-1])
    distance = g("Sub", x, mean)
    variance = g("ReduceMean", g("Pow", distance, g.number(2.0)), axes=[-1])
    deviation = g("Sqrt", g("Add", variance, g.number(1e-12)))
    scaled = g("Mul", g("Div", distance, deviation), g.weight(width, fan=100, mean=1.0))
    return g("Add", scaled, g.weight(width, fan=25))


def gelu(g, x):
    half = g("Mul", x, g("Add", g("Erf", g("Div", x, g.number(2 ** 0.5))), g.number(1.0)))
    return g("Mul", half, g.number(0.5))


def attention(g, x, mask, width, heads, batch, length):
    split = shape(g, batch, length, heads, width // heads)

    def projected(order):
        return g("Transpose", g("Reshape", dense(g, x, width, width), split), perm=order)
    q, k, v = projected([0, 2, 1, 3]), projected([0, 2, 3, 1]), projected([0, 2, 1, 3])
    scores = g("Div", g("MatMul", q, k), g.number((width // heads) ** 0.5))
    weights = g("Softmax", g("Add", scores, mask), axis=-1)
    joined = g("Transpose", g("MatMul", weights, v), perm=[0, 2, 1, 3])
    return dense(g, g("Reshape", joined, shape(g, batch, length, width)), width, width)


def encoder(width=64, heads=4, layers=2, inner=128, words=300, longest=48, seed=7):
    """Makes the encoder: input_ids, attention_mask, token_type_ids (batch, length) to hidden
    (batch, length, width) and pooled (batch, width)."""
    g = Graph(seed)
    names = ("input_ids", "attention_mask", "token_type_ids")
    batch, length = size_of(g, "input_ids", 0), size_of(g, "input_ids", 1)
    places = g("Slice", g.tensor(np.arange(longest)[None]), g.constant([0]),
               g("Unsqueeze", length, g.constant([0])), g.constant([1]))
    x = g("Gather", g.weight(words, width, fan=1), "input_ids")
    x = g("Add", x, g("Gather", g.weight(2, width, fan=1), "token_type_ids"))
    x = g("Add", x, g("Gather", g.weight(longest, width, fan=1), places))
    x = normalised(g, x, width)
    mask = g("Unsqueeze", g("Unsqueeze", "attention_mask", g.constant([1])), g.constant([2]))
    mask = g("Sub", g.number(1.0), g("Cast", mask, to=FLOAT))
    mask = g("Mul", mask, g.number(-10000.0))
    for _ in range(layers):
        x = normalised(g, g("Add", attention(g, x, mask, width, heads, batch, length), x), width)
        x = normalised(g, g("Add", dense(g, gelu(g, dense(g, x, width, inner)), inner, width), x),
                       width)
    first = g("Gather", x, g.constant(0), axis=1)
    pooled = g("Tanh", g("Gemm", first, g.weight(width, width), g.weight(width, fan=25), transB=1))
    named(g, "hidden", x)
    named(g, "pooled", pooled)
    return g.model([(n, INT64, ["batch", "length"]) for n in names],
                   [("hidden", ["batch", "length", width]), ("pooled", ["batch", width])], 14)


def recurrent(steps=6, inputs=24, hidden=48, classes=10, seed=11):
    """Makes the recurrent network: x (batch, steps, inputs), through a bidirectional GRU and a
    second one, to scores (batch, classes) of the last state."""
    g = Graph(seed)

    def gru(x, n, directions):
        rows = 3 * hidden
        weights = [g.weight(directions, rows, n, fan=n),
                   g.weight(directions, rows, hidden, fan=hidden),
                   g.weight(directions, 2 * rows, fan=25)]
        way = "bidirectional" if directions == 2 else "forward"
        return g("GRU", x, *weights, outputs=2, hidden_size=hidden, direction=way,
                 linear_before_reset=1)
    every, _ = gru(g("Transpose", "x", perm=[1, 0, 2]), inputs, 2)
    both = g("Reshape", g("Transpose", every, perm=[0, 2, 1, 3]), g.constant([0, 0, -1]))
    _, last = gru(both, 2 * hidden, 1)
    scores = dense(g, g("Squeeze", last, g.constant([0])), hidden, classes)
    named(g, "scores", scores)
    return g.model([("x", FLOAT, ["batch", steps, inputs])], [("scores", ["batch", classes])], 14)


NETWORKS = {"encoder": encoder, "recurrent": recurrent}

if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in NETWORKS:
        sys.exit(__doc__)
    onnx.save(NETWORKS[sys.argv[1]](), sys.argv[2])
