"""A network that can be built with seeded weights: its module and inputs."""
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from zoo import weights
from zoo.ports import values

SEED, CALIBRATED_ON = 0, 8  # seed of weights; batch of the calibrating pass


@dataclass(frozen=True)
class Network:
    """A network. `make()` returns its module with any weights; `sizes` {name: number} are the values
    of sizes with names when nothing else is asked for."""
    name: str
    title: str
    make: Callable
    ports: tuple
    sizes: dict = field(default_factory=lambda: {"batch": 1})

    def build(self):
        """Returns the module with its seeded and calibrated weights, always the same ones."""
        torch.manual_seed(SEED)
        torch.backends.mha.set_fastpath_enabled(False)  # the fused operator has no ONNX form
        module = self.make().eval().requires_grad_(False)
        weights.draw(module, SEED)
        sizes = self.sizes | {"batch": CALIBRATED_ON}
        weights.calibrate(module, values(self.ports, sizes, SEED))
        return module

    def inputs(self, sizes=None, seed=1):
        return values(self.ports, self.sizes | (sizes or {}), seed)
