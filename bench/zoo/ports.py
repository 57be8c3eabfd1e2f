"""Inputs of a network: names, sizes that are numbers or have names, and seeded values."""
import re
from dataclasses import dataclass

FORM = re.compile(r"(f32|i64)\[([0-9,]+)\](?:<(\d+))?")


@dataclass(frozen=True)
class Port:
    """An input. A size in `shape` is a number or the name of an open size ("batch"). Floats are
    normal; integers are from 0 to below `below`, or all equal to `fill`."""
    name: str
    shape: tuple
    below: int | None = None
    fill: int | None = None

    def known(self, sizes):
        """Returns the shape with the values of {name: number} in place of names."""
        return tuple(sizes.get(s, s) for s in self.shape)

    def open_axes(self):
        """Returns {axis: name} of the sizes with names."""
        return {i: s for i, s in enumerate(self.shape) if isinstance(s, str)}

    def values(self, sizes, rng):
        import numpy as np
        shape = self.known(sizes)
        if self.fill is not None:
            return np.full(shape, self.fill, np.int64)
        if self.below is not None:
            return rng.integers(0, self.below, shape)
        return rng.standard_normal(shape, np.float32)


def values(ports, sizes, seed):
    """Returns the inputs as {name: array}, drawn from a generator with this seed."""
    import numpy as np
    rng = np.random.default_rng(seed)
    return {port.name: port.values(sizes, rng) for port in ports}


def parse(text):
    """Parses "f32[1,3,224,224]" or "i64[1,128]<30522"; several are joined by "+". The first size is
    the batch."""
    ports = []
    for i, part in enumerate(text.split("+")):
        found = FORM.fullmatch(part)
        if not found or (found[1] == "i64") != bool(found[3]):
            raise ValueError(f'"{part}" is no input: f32[SIZES] or i64[SIZES]<LIMIT')
        shape = ("batch", *(int(n) for n in found[2].split(",")[1:]))
        ports.append(Port(f"x{i}", shape, below=found[3] and int(found[3])))
    return tuple(ports)
