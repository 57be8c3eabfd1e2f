"""Convolutional networks of one-dimensional signals: a temporal convolutional network (Bai et al.
2018), a WaveNet (van den Oord et al. 2016) and a residual network."""
import torch
import torch.nn.functional as F
from torch import nn


class CausalConv(nn.Module):
    """A convolution whose results depend on no later samples."""

    def __init__(self, channels, k, size, dilation=1):
        super().__init__()
        self.before = (size - 1) * dilation
        self.conv = nn.Conv1d(channels, k, size, dilation=dilation)

    def forward(self, x):
        return self.conv(F.pad(x, (self.before, 0)))


class TemporalBlock(nn.Module):
    def __init__(self, channels, k, size, dilation):
        super().__init__()
        self.first = CausalConv(channels, k, size, dilation)
        self.second = CausalConv(k, k, size, dilation)
        self.skip = nn.Conv1d(channels, k, 1) if channels != k else nn.Identity()

    def forward(self, x):
        y = F.relu(self.second(F.relu(self.first(x))))
        return F.relu(y + self.skip(x))


class Tcn(nn.Module):
    def __init__(self, channels=64, k=150, blocks=6, size=5, classes=64):
        super().__init__()
        self.blocks = nn.Sequential(*(TemporalBlock(k if i else channels, k, size, 2 ** i)
                                      for i in range(blocks)))
        self.head = nn.Conv1d(k, classes, 1)

    def forward(self, x):
        return self.head(self.blocks(x))


class GatedBlock(nn.Module):
    """Returns the block's result and its contribution to the output."""

    def __init__(self, k, skip, dilation):
        super().__init__()
        self.both = CausalConv(k, 2 * k, 2, dilation)
        self.out, self.skip = nn.Conv1d(k, k, 1), nn.Conv1d(k, skip, 1)

    def forward(self, x):
        value, gate = self.both(x).chunk(2, 1)
        y = torch.tanh(value) * torch.sigmoid(gate)
        return x + self.out(y), self.skip(y)


class WaveNet(nn.Module):
    def __init__(self, k=64, skip=128, classes=256, stacks=2, depth=9):
        super().__init__()
        self.first = CausalConv(1, k, 2)
        self.blocks = nn.ModuleList(GatedBlock(k, skip, 2 ** i)
                                    for _ in range(stacks) for i in range(depth))
        self.inner, self.head = nn.Conv1d(skip, skip, 1), nn.Conv1d(skip, classes, 1)

    def forward(self, x):
        x, total = self.first(x), 0
        for block in self.blocks:
            x, skip = block(x)
            total = total + skip
        return self.head(F.relu(self.inner(F.relu(total))))


def conv_norm(channels, k, size, stride=1):
    return nn.Sequential(nn.Conv1d(channels, k, size, stride, size // 2, bias=False),
                         nn.BatchNorm1d(k))


class SignalBlock(nn.Module):
    def __init__(self, channels, k, stride):
        super().__init__()
        self.first, self.second = conv_norm(channels, k, 7, stride), conv_norm(k, k, 7)
        self.skip = conv_norm(channels, k, 1, stride) if stride > 1 else nn.Identity()

    def forward(self, x):
        return F.relu(self.second(F.relu(self.first(x))) + self.skip(x))


class SignalResNet(nn.Module):
    """A residual network of signals with 12 channels, as electrocardiograms have them."""

    def __init__(self, widths=(64, 128, 192, 256), classes=27):
        super().__init__()
        self.stem = conv_norm(12, widths[0], 15, 2)
        before = (widths[0], *widths)
        self.blocks = nn.Sequential(*(
            block for channels, k in zip(before, widths)
            for block in (SignalBlock(channels, k, 2 if k != widths[0] else 1),
                          SignalBlock(k, k, 1))))
        self.head = nn.Linear(widths[-1], classes)

    def forward(self, x):
        return self.head(self.blocks(F.relu(self.stem(x))).mean(-1))
