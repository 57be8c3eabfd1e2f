"""A network that can be built with seeded weights: its module and inputs."""
import importlib
from collections.abc import Callable
from dataclasses import dataclass, field

from zoo.ports import values

SEED = 0                                     # of weights
CALIBRATED_ON = {"batch": 8, "length": 128}  # sizes of the calibrating pass


def later(module, function, *args, **settings):
    """Returns a function that calls one of this package's modules, imported only then."""
    return lambda: getattr(importlib.import_module(f"zoo.{module}"), function)(*args, **settings)


@dataclass(frozen=True)
class Network:
    """A network. `make()` returns its module with any weights; `sizes` {name: number} are the
    values of sizes with names when no others are given. Networks that differ in sizes alone have
    one `model`. `bounds` {name: (least, most)} has the sizes that are not open to any value."""
    name: str
    title: str
    make: Callable
    ports: tuple
    sizes: dict = field(default_factory=lambda: {"batch": 1})
    model: str = ""
    bounds: dict = field(default_factory=dict)

    def build(self):
        """Returns the module with its seeded and calibrated weights, always the same ones."""
        import torch
        from zoo import weights
        torch.manual_seed(SEED)
        torch.backends.mha.set_fastpath_enabled(False)  # the fused operator has no ONNX form
        module = self.make().eval().requires_grad_(False)
        weights.draw(module, SEED)
        weights.calibrate(module, self.tensors(CALIBRATED_ON, SEED))
        return module

    def inputs(self, sizes=None, seed=1):
        """Returns {name: array} of seeded inputs."""
        return values(self.ports, self.sizes | (sizes or {}), seed)

    def tensors(self, sizes=None, seed=1):
        """Returns the same inputs as PyTorch's tensors."""
        import torch
        return tuple(torch.from_numpy(x) for x in self.inputs(sizes, seed).values())
