"""The networks of the benchmark: what the page of figures lists."""
from zoo.network import Network, later
from zoo.ports import Port

TORCHVISION = {
    "resnet50": "ResNet-50", "resnext50_32x4d": "ResNeXt-50 32×4d", "mobilenet_v2": "MobileNetV2",
    "mobilenet_v3_large": "MobileNetV3-Large", "squeezenet1_1": "SqueezeNet 1.1",
    "efficientnet_b0": "EfficientNet-B0", "shufflenet_v2_x1_0": "ShuffleNetV2",
    "densenet121": "DenseNet-121", "regnet_y_400mf": "RegNetY-400MF", "googlenet": "GoogLeNet",
    "inception_v3": "Inception-v3", "convnext_tiny": "ConvNeXt-T", "vit_b_16": "ViT-B/16",
    "swin_t": "Swin-T"}
BERTS = {6: (384, 12), 12: (768, 12)}  # width and heads by number of layers
LENGTHS, MOST_TOKENS, VOCABULARY = (16, 128, 384), 512, 30522
LAYERS, HEADS, WIDTH, CACHED = 6, 12, 768, 255  # of the decoder


def image(size):
    return (Port("input", ("batch", 3, size, size)),)


def of_torchvision(name, title):
    return Network(name, title, later("torchvision_models", "make", name),
                   image(299 if name == "inception_v3" else 224))


def bert(layers, length):
    shape = ("batch", "length")
    ports = (Port("input_ids", shape, below=VOCABULARY), Port("attention_mask", shape, fill=1),
             Port("token_type_ids", shape, fill=0))
    return Network(f"bert{layers}_{length}", f"BERT, {layers} layers, {length} tokens",
                   later("bert", "Encoder", layers, *BERTS[layers]), ports,
                   {"batch": 1, "length": length}, f"bert{layers}",
                   {"length": (1, MOST_TOKENS)})


def decoder():
    cache = (LAYERS, 2, "batch", HEADS, CACHED, WIDTH // HEADS)
    return Network("gpt2_step", f"GPT-2 step, {LAYERS} layers, {CACHED} cached",
                   later("decoder", "Step", LAYERS, WIDTH, HEADS),
                   (Port("input", ("batch", 1, WIDTH)), Port("past", cache)))


NETWORKS = {network.name: network for network in (
    *(of_torchvision(*item) for item in TORCHVISION.items()),
    Network("unet", "U-Net, 256 × 256", later("unet", "UNet"), image(256)),
    *(bert(layers, length) for layers in BERTS for length in LENGTHS),
    decoder(),
    Network("gru", "GRU, 64 steps", later("recurrent", "Labeller", "GRU", 128, 256, 64),
            (Port("input", ("batch", 64, 128)),)))}

# Short names of before.
ALIASES = {"mobilenetv2": "mobilenet_v2", "bert6": "bert6_128"}
