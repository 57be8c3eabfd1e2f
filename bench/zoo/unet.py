"""A U-Net that segments images: Ronneberger et al. 2015, with batch norms and padding."""
import torch
import torch.nn.functional as F
from torch import nn


def block(channels, k):
    """Returns two convolutions of 3 × 3."""
    layers = []
    for inputs in (channels, k):
        layers += [nn.Conv2d(inputs, k, 3, padding=1), nn.BatchNorm2d(k), nn.ReLU()]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    def __init__(self, first=32, levels=5, classes=2):
        super().__init__()
        widths = [first * 2 ** i for i in range(levels)]
        pairs = list(zip(widths, widths[1:]))
        self.encoder = nn.ModuleList(block(c, k) for c, k in [(3, first), *pairs])
        self.up = nn.ModuleList(nn.ConvTranspose2d(k, c, 2, 2) for c, k in reversed(pairs))
        self.decoder = nn.ModuleList(block(2 * c, c) for c, _ in reversed(pairs))
        self.head = nn.Conv2d(first, classes, 1)

    def forward(self, x):
        kept = []
        for level in self.encoder:
            x = level(F.max_pool2d(x, 2) if kept else x)
            kept.append(x)
        kept.pop()
        for up, level in zip(self.up, self.decoder):
            x = level(torch.cat([kept.pop(), up(x)], 1))
        return self.head(x)
