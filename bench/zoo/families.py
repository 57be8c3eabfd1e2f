"""Networks of many families, one a line of bench/families.txt: name, library, constructor,
inputs."""
import ast
import importlib
from functools import cache
from pathlib import Path

from zoo.catalogue import ALIASES, NETWORKS
from zoo.network import Network
from zoo.ports import parse

LIST = Path(__file__).resolve().parents[1] / "families.txt"


def rows():
    """Returns [(name, library, constructor, inputs)] of the list, texts all."""
    lines = (line.partition("#")[0].split() for line in LIST.read_text().splitlines())
    return [tuple(row) for row in lines if row]


def split_call(text):
    """Splits "Name(size=3)" into the name and {"size": 3}."""
    call = ast.parse(text, mode="eval").body
    if not isinstance(call, ast.Call):
        return text, {}
    return ast.unparse(call.func), {k.arg: ast.literal_eval(k.value) for k in call.keywords}


def of_torchvision(name, settings):
    """Finds a model by the name of its function."""
    import torchvision
    from zoo.first_output import FirstOutput
    settings = {"weights": None} | settings
    if name.startswith(("fcn", "deeplab")):
        settings["weights_backbone"] = None
    return FirstOutput(torchvision.models.get_model(name, **settings))


def of_timm(name, settings):
    import timm
    return timm.create_model(name, **settings)


def of_transformers(name, settings):
    """Makes a model from its configuration's defaults and these settings. `inputs` names the
    inputs, and is no setting of the configuration."""
    import transformers
    from zoo.first_output import FirstOutput
    names = settings.pop("inputs", "input_ids").split(",")
    kind = getattr(transformers, name)
    config = kind.config_class(**{"attn_implementation": "eager"} | settings)
    calls = {"use_cache": False} if getattr(config, "use_cache", False) else {}
    return FirstOutput(kind(config), names, **calls)


def of_zoo(name, settings):
    """Makes "module.Class" of this package."""
    module, _, kind = name.partition(".")
    return getattr(importlib.import_module(f"zoo.{module}"), kind)(**settings)


LIBRARIES = {"torchvision": of_torchvision, "timm": of_timm, "transformers": of_transformers,
             "own": of_zoo}


def network(name, library, constructor, inputs):
    function, settings = split_call(constructor)
    return Network(name, f"{name} ({library})",
                   lambda: LIBRARIES[library](function, dict(settings)), parse(inputs))


@cache
def families():
    """Returns {name: Network} of the list."""
    return {row[0]: network(*row) for row in rows()}


def find(name):
    """Returns the network of the benchmark or of the list with this name; None if there is none."""
    name = ALIASES.get(name, name)
    return NETWORKS.get(name) or families().get(name)
