"""Builds an ONNX network in the manner of MobileNetV2 (Sandler et al., 2018): inverted residuals of
1 x 1, depthwise and 1 x 1 convolutions, with a dynamic batch size."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from seeded import seeded

SIDE, CLASSES = 64, 100
BLOCKS = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 2, 2), (6, 64, 2, 1), (6, 96, 1, 1), (6, 160, 1, 2)]


class Builder:
    def __init__(self):
        self.nodes, self.weights = [], []

    def weight(self, *shape):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.zeros(shape, np.float32), name))
        return name

    def node(self, op, *inputs, **attributes):
        output = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [output], name=output, **attributes))
        return output

    def convolution(self, x, inputs, outputs, size, stride=1, groups=1, active=True):
        x = self.node("Conv", x, self.weight(outputs, inputs // groups, size, size), group=groups,
                      strides=[stride] * 2, pads=[size // 2] * 4)
        x = self.node("BatchNormalization", x, *[self.weight(outputs) for _ in range(4)])
        return self.node("Clip", x, "zero", "six") if active else x

    def block(self, x, inputs, outputs, stride, expansion):
        inner, y = inputs * expansion, x
        if expansion > 1:
            y = self.convolution(y, inputs, inner, 1)
        y = self.convolution(y, inner, inner, 3, stride, inner)
        y = self.convolution(y, inner, outputs, 1, active=False)
        return self.node("Add", x, y) if stride == 1 and inputs == outputs else y


def mobilenet(seed):
    """Returns the network, and a function that makes its input."""
    b, channels = Builder(), 32
    x = b.convolution("x", 3, channels, 3, 2)
    for expansion, outputs, times, stride in BLOCKS:
        for i in range(times):
            x = b.block(x, channels, outputs, stride if not i else 1, expansion)
            channels = outputs
    x = b.convolution(x, channels, 4 * channels, 1)
    x = b.node("Flatten", b.node("GlobalAveragePool", x))
    y = b.node("Gemm", x, b.weight(CLASSES, 4 * channels), b.weight(CLASSES), transB=1)
    port = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3, SIDE, SIDE])
    out = helper.make_tensor_value_info(y, TensorProto.FLOAT, ["batch", CLASSES])
    bounds = [helper.make_tensor("zero", TensorProto.FLOAT, [], [0.0]),
              helper.make_tensor("six", TensorProto.FLOAT, [], [6.0])]
    graph = helper.make_graph(b.nodes, "mobilenet", [port], [out], b.weights + bounds)
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])

    def given(batch):
        rng = np.random.default_rng((seed, batch))
        return rng.standard_normal((batch, 3, SIDE, SIDE)).astype(np.float32)
    return seeded(model, {"x": given(2)}, seed, keep=("zero", "six")), given
