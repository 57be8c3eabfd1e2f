"""Networks that return the first result of another one: libraries return dictionaries and lists."""
import torch


def first(result):
    """Returns the first tensor of a result."""
    while not isinstance(result, torch.Tensor):
        if hasattr(result, "to_tuple"):
            result = result.to_tuple()
        result = next(iter(result.values() if hasattr(result, "values") else result))
    return result


def tensors(result):
    """Returns the tensors of a result of one or several."""
    return [result] if isinstance(result, torch.Tensor) else list(result)


class FirstOutput(torch.nn.Module):
    """Calls a network by position, or by the names given, and returns its first result."""

    def __init__(self, network, names=(), **settings):
        super().__init__()
        self.network, self.names, self.settings = network, names, settings

    def forward(self, *inputs):
        if self.names:
            named = dict(zip(self.names, inputs, strict=True))
            return first(self.network(**named, **self.settings))
        return first(self.network(*inputs))
