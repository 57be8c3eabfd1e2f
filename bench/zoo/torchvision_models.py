"""Networks for images by torchvision's definitions."""
import torchvision

# Without the outputs that only training uses, and the slow initialisation, which is drawn over.
SETTINGS = {"googlenet": {"aux_logits": False, "init_weights": False},
            "inception_v3": {"aux_logits": False, "init_weights": False}}


def make(name):
    return torchvision.models.get_model(name, weights=None, **SETTINGS.get(name, {}))
