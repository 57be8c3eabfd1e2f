"""A convolutional autoencoder of images of 128 × 128."""
from torch import nn


def down(channels, k):
    return [nn.Conv2d(channels, k, 4, 2, 1), nn.BatchNorm2d(k), nn.LeakyReLU(0.2)]


def up(channels, k):
    return [nn.ConvTranspose2d(channels, k, 4, 2, 1), nn.BatchNorm2d(k), nn.ReLU()]


class Autoencoder(nn.Module):
    def __init__(self, code=256):
        super().__init__()
        self.encoder = nn.Sequential(*down(3, 32), *down(32, 64), *down(64, 128), *down(128, 256),
                                     nn.Flatten(), nn.Linear(256 * 8 * 8, code))
        self.widen = nn.Linear(code, 256 * 8 * 8)
        self.decoder = nn.Sequential(nn.Unflatten(1, (256, 8, 8)), *up(256, 128), *up(128, 64),
                                     *up(64, 32), nn.ConvTranspose2d(32, 3, 4, 2, 1), nn.Sigmoid())

    def forward(self, x):
        return self.decoder(self.widen(self.encoder(x)))
