"""Seeded weights with which activations keep their variance, so that wrong results are far from
right ones. Libraries start training from weights that hide much of a network: zeros in the last
layer, layer scales of 1e-6, attention scores near 0.

First all parameters are drawn again. Then one pass over seeded inputs calibrates: batch norms take
the statistics of what reaches them; a convolution or dense layer is scaled to a result of variance
1 and, by its bias, of mean 0 in each channel (after Mishkin and Matas 2015, "All you need is a good
init")."""
import math

import torch
from torch import nn

NORMS = (nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.GroupNorm)
BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
LINEAR = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d)
PRODUCTS = (*LINEAR, nn.MultiheadAttention, nn.RNNBase)
SMALL = 0.1  # largest constant that is taken for a layer scale
SHIFT = 0.5  # mean of the biases of norms: about 0, activations would amplify rounding errors
FARTHEST = 8  # largest factor of a layer's result that is set right
CENTRED = 0.5  # least deviation taken for a centred result: what hardly varies is not blown up


def draw_constant(p, generator):
    """Draws around a parameter's constant value: 0.5 for one that hides a layer, 0.2 for a zero."""
    value = float(p.flatten()[0])
    noise = torch.randn(p.shape, generator=generator)
    if value == 0:
        p.copy_(0.2 * noise)
    else:
        p.copy_((0.5 if 0 < value <= SMALL else value) * (1 + 0.1 * noise))


def draw_parameter(module, name, p, generator):
    noise = torch.randn(p.shape, generator=generator)
    if isinstance(module, NORMS):
        p.copy_(0.1 * noise + (1 if name == "weight" else SHIFT))
    elif isinstance(module, nn.Embedding):
        p.copy_(noise)
    elif isinstance(module, PRODUCTS):
        p.copy_(noise / math.sqrt(p[0].numel()) if p.dim() > 1 else 0.1 * noise)
    elif p.numel() and float(p.std(correction=0)) == 0:
        draw_constant(p, generator)
    elif p.dim() > 1:
        p.mul_(0.5 / p.std(correction=0))


def draw(network, seed):
    """Draws all parameters; those that are shared are drawn once."""
    generator, seen = torch.Generator().manual_seed(seed), set()
    with torch.no_grad():
        for module in network.modules():
            for name, p in module.named_parameters(recurse=False):
                if id(p) not in seen and p.is_floating_point():
                    seen.add(id(p))
                    draw_parameter(module, name, p, generator)


def channel_axis(module, result):
    """Returns the axis of channels of a layer's result."""
    return result.dim() - 1 if isinstance(module, nn.Linear) else \
        result.dim() - (len(module.kernel_size) + 1)


def normalise(module, result):
    """Scales a layer so that its result has variance 1 and, if it has a bias, mean 0 in each
    channel; returns that result. Leaves a layer alone whose result is far larger or smaller: its
    input is meant to be so, as attention weights are."""
    axis = channel_axis(module, result)
    others = [i for i in range(result.dim()) if i != axis]
    scale = float(result.std(correction=0))
    if not 1 / FARTHEST <= scale <= FARTHEST:
        return result
    if module.bias is not None:
        mean = result.mean(others)
        module.bias.sub_(mean)
        shape = [-1 if i == axis else 1 for i in range(result.dim())]
        result = result - mean.reshape(shape)
        scale = max(float(result.std(correction=0)), CENTRED * scale)
        module.bias.div_(scale)
    module.weight.div_(scale)
    return result / scale


def calibrate(network, inputs):
    """Runs the network once on inputs and sets its norms and scales by what passes through it."""
    network.eval()
    seen, hooks = set(), []

    def after(module, _, result):
        if id(module.weight) in seen:
            return None
        seen.add(id(module.weight))
        return normalise(module, result)

    for module in network.modules():
        if isinstance(module, BATCH_NORMS):
            module.reset_running_stats()
            module.momentum = None
            module.train()
        elif type(module) in LINEAR:  # subclasses may compute with other weights than their own
            hooks.append(module.register_forward_hook(after))
    with torch.no_grad():
        network(*inputs)
    for hook in hooks:
        hook.remove()
    network.eval()
