"""Networks for images by torchvision's definitions."""
import torchvision

# What is no part of inference, or would be read from a file.
SETTINGS = {"googlenet": {"aux_logits": False, "init_weights": False},
            "inception_v3": {"aux_logits": False, "init_weights": False}}


def make(name):
    return torchvision.models.get_model(name, weights=None, **SETTINGS.get(name, {}))
