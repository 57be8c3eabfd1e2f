"""A step of a decoder like GPT-2 (Radford et al. 2019): one token after those whose keys and values
are cached. The cache goes in and comes out as one array: layers, keys and values, batch, heads,
tokens, width of a head."""
import torch
import torch.nn.functional as F
from torch import nn


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.inner, self.outer = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, past):
        """Returns the layer's result and its keys and values."""
        q, k, v = (y.unflatten(-1, (self.heads, self.size)).transpose(1, 2)
                   for y in self.qkv(self.norm_1(x)).chunk(3, -1))
        k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        weights = torch.softmax(q @ k.transpose(-1, -2) * self.size ** -0.5, -1)
        x = x + self.out((weights @ v).transpose(1, 2).flatten(2))
        x = x + self.outer(F.gelu(self.inner(self.norm_2(x)), approximate="tanh"))
        return x, torch.stack([k, v])


class Step(nn.Module):
    """Takes a token's embedding and the cache; returns the scores of the next token and the
    cache."""

    def __init__(self, layers=6, width=768, heads=12, vocabulary=50257):
        super().__init__()
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, x, past):
        present = []
        for i, layer in enumerate(self.layers):
            x, kept = layer(x, past[i])
            present.append(kept)
        return self.head(self.norm(x)), torch.stack(present)
