"""A classifier of point clouds with a learned transform of the points: Qi et al. 2017."""
import torch
from torch import nn


def shared(*widths):
    """Returns dense layers that each point goes through."""
    layers = []
    for channels, k in zip(widths, widths[1:]):
        layers += [nn.Conv1d(channels, k, 1), nn.BatchNorm1d(k), nn.ReLU()]
    return nn.Sequential(*layers)


def dense(*widths):
    layers = []
    for channels, k in zip(widths, widths[1:-1]):
        layers += [nn.Linear(channels, k), nn.BatchNorm1d(k), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(widths[-2], widths[-1]))


class Transform(nn.Module):
    """Moves points by a matrix that depends on all of them."""

    def __init__(self, k):
        super().__init__()
        self.k, self.points = k, shared(k, 64, 128, 1024)
        self.matrix = dense(1024, 512, 256, k * k)

    def forward(self, x):
        m = self.matrix(self.points(x).amax(-1)).view(-1, self.k, self.k)
        return torch.bmm(m + torch.eye(self.k), x)


class PointNet(nn.Module):
    def __init__(self, classes=40):
        super().__init__()
        self.turn, self.first = Transform(3), shared(3, 64, 64)
        self.mix, self.second = Transform(64), shared(64, 64, 128, 1024)
        self.head = dense(1024, 512, 256, classes)

    def forward(self, x):
        x = self.mix(self.first(self.turn(x)))
        return self.head(self.second(x).amax(-1))
