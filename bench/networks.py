"""Networks of real size with seeded weights, as exporters write them. Weights are scaled so that
activations keep their variance and wrong results are far from right ones."""
import math

import numpy as np
from onnx import TensorProto, helper, numpy_helper

OPSET, IR_VERSION = 17, 8


class Builder:
    """Collects the nodes and weights of a graph."""

    def __init__(self, rng):
        self.rng, self.nodes, self.weights = rng, [], []

    def constant(self, array):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def floats(self, value, *shape):
        return self.constant(np.full(shape, value, np.float32))

    def integers(self, *values):
        return self.constant(np.array(values, np.int64))

    def normal(self, shape, deviation, mean=0.0):
        values = self.rng.standard_normal(shape, np.float32)
        return self.constant(values * np.float32(deviation) + np.float32(mean))

    def op(self, operator, *inputs, **attributes):
        """Adds a node; returns its result's name."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    def model(self, name, inputs, result, shape):
        """Makes the model; `inputs` {name: array} gives the types and shapes of the ports."""
        self.nodes.append(helper.make_node("Identity", [result], ["output"]))
        ports = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
                 for n, x in inputs.items()]
        output = helper.make_tensor_value_info("output", TensorProto.FLOAT, shape)
        graph = helper.make_graph(self.nodes, name, ports, [output], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)],
                                 ir_version=IR_VERSION)

    def conv(self, x, channels, k, size, stride=1, groups=1, bias=False):
        deviation = math.sqrt(2 / (channels // groups * size * size))
        operands = [self.normal((k, channels // groups, size, size), deviation)]
        if bias:
            operands.append(self.normal((k,), 0.1))
        return self.op("Conv", x, *operands, kernel_shape=[size] * 2, strides=[stride] * 2,
                       pads=[size // 2] * 4, group=groups)

    def classifier(self, x, channels):
        flat = self.op("Flatten", self.op("GlobalAveragePool", x), axis=1)
        weights = self.normal((1000, channels), 1 / math.sqrt(channels))
        return self.op("Gemm", flat, weights, self.normal((1000,), 0.1), transB=1)


def image(rng):
    return {"input": rng.standard_normal((1, 3, 224, 224), np.float32)}


# ResNet-50, with its batch norms: He et al. 2015, the stride in the 3 × 3 convolution.

RESNET_STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))  # channels, blocks


def conv_norm(b, x, channels, k, size, stride=1, gain=1.0):
    y = b.conv(x, channels, k, size, stride)
    return b.op("BatchNormalization", y, b.normal((k,), 0.1 * gain, gain), b.normal((k,), 0.1),
                b.normal((k,), 0.1), b.floats(1, k), epsilon=1e-5)


def bottleneck(b, x, channels, k, stride):
    y = b.op("Relu", conv_norm(b, x, channels, k, 1))
    y = b.op("Relu", conv_norm(b, y, k, k, 3, stride))
    y = conv_norm(b, y, k, 4 * k, 1, gain=0.5)
    if channels != 4 * k:
        x = conv_norm(b, x, channels, 4 * k, 1, stride)
    return b.op("Relu", b.op("Add", y, x))


def resnet50(rng):
    inputs, b = image(rng), Builder(rng)
    x = b.op("Relu", conv_norm(b, "input", 3, 64, 7, 2))
    x = b.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels = 64
    for stage, (k, blocks) in enumerate(RESNET_STAGES):
        for block in range(blocks):
            x = bottleneck(b, x, channels, k, 2 if stage and not block else 1)
            channels = 4 * k
    return b.model("resnet50", inputs, b.classifier(x, channels), [1, 1000]), inputs


# MobileNetV2, its batch norms folded into the convolutions: Sandler et al. 2018, table 2.

MOBILENET_STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                    (6, 160, 3, 2), (6, 320, 1, 1))  # expansion, channels, blocks, stride


def mobilenetv2(rng):
    inputs, b = image(rng), Builder(rng)
    zero, six = b.floats(0), b.floats(6)

    def relu6(x):
        return b.op("Clip", x, zero, six)

    def inverted(x, channels, k, expansion, stride):
        inner, y = channels * expansion, x
        if expansion > 1:
            y = relu6(b.conv(y, channels, inner, 1, bias=True))
        y = relu6(b.conv(y, inner, inner, 3, stride, groups=inner, bias=True))
        y = b.conv(y, inner, k, 1, bias=True)
        return b.op("Add", x, y) if stride == 1 and channels == k else y

    x, channels = relu6(b.conv("input", 3, 32, 3, 2, bias=True)), 32
    for expansion, k, blocks, stride in MOBILENET_STAGES:
        for block in range(blocks):
            x = inverted(x, channels, k, expansion, 1 if block else stride)
            channels = k
    x = relu6(b.conv(x, channels, 1280, 1, bias=True))
    return b.model("mobilenetv2", inputs, b.classifier(x, 1280), [1, 1000]), inputs


# The encoder of BERT, with the sizes of MiniLM-L6: Devlin et al. 2018, Wang et al. 2020.

LAYERS, TOKENS, WIDTH, HEADS, INNER, VOCABULARY = 6, 128, 384, 12, 1536, 30522


def dense(b, x, inputs, outputs):
    y = b.op("MatMul", x, b.normal((inputs, outputs), 1 / math.sqrt(inputs)))
    return b.op("Add", b.normal((outputs,), 0.1), y)


def layer_norm(b, x):
    return b.op("LayerNormalization", x, b.normal((WIDTH,), 0.1, 1.0), b.normal((WIDTH,), 0.1),
                axis=-1, epsilon=1e-12)


def gelu(b, x):
    erf = b.op("Erf", b.op("Div", x, b.floats(math.sqrt(2))))
    return b.op("Mul", b.op("Mul", x, b.op("Add", erf, b.floats(1))), b.floats(0.5))


def attention(b, x, mask):
    size = WIDTH // HEADS

    def heads(perm):
        y = b.op("Reshape", dense(b, x, WIDTH, WIDTH), b.integers(1, TOKENS, HEADS, size))
        return b.op("Transpose", y, perm=perm)

    q, k, v = heads([0, 2, 1, 3]), heads([0, 2, 3, 1]), heads([0, 2, 1, 3])
    scores = b.op("Div", b.op("MatMul", q, k), b.floats(math.sqrt(size)))
    weights = b.op("Softmax", b.op("Add", scores, mask), axis=-1)
    y = b.op("Transpose", b.op("MatMul", weights, v), perm=[0, 2, 1, 3])
    return dense(b, b.op("Reshape", y, b.integers(1, TOKENS, WIDTH)), WIDTH, WIDTH)


def additive_mask(b):
    """Makes a mask of shape 1 × 1 × 1 × tokens: 0 for tokens that are attended to, the lowest float
    for others."""
    mask = b.op("Unsqueeze", "attention_mask", b.integers(1, 2))
    absent = b.op("Sub", b.floats(1), b.op("Cast", mask, to=TensorProto.FLOAT))
    return b.op("Mul", absent, b.floats(np.finfo(np.float32).min))


def bert6(rng):
    b = Builder(rng)
    inputs = {"input_ids": rng.integers(0, VOCABULARY, (1, TOKENS)),
              "attention_mask": np.ones((1, TOKENS), np.int64),
              "token_type_ids": np.zeros((1, TOKENS), np.int64)}
    words = b.op("Gather", b.normal((VOCABULARY, WIDTH), 1.0), "input_ids")
    kinds = b.op("Gather", b.normal((2, WIDTH), 0.5), "token_type_ids")
    places = b.normal((1, TOKENS, WIDTH), 0.5)
    x, mask = layer_norm(b, b.op("Add", b.op("Add", words, kinds), places)), additive_mask(b)
    for _ in range(LAYERS):
        x = layer_norm(b, b.op("Add", attention(b, x, mask), x))
        inner = gelu(b, dense(b, x, WIDTH, INNER))
        x = layer_norm(b, b.op("Add", dense(b, inner, INNER, WIDTH), x))
    return b.model("bert6", inputs, x, [1, TOKENS, WIDTH]), inputs


NETWORKS = {"resnet50": resnet50, "mobilenetv2": mobilenetv2, "bert6": bert6}
