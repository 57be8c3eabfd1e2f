"""Recurrent networks that label each step of a sequence."""
from torch import nn


class Labeller(nn.Module):
    """Applies an nn.LSTM or nn.GRU, and a dense layer to each of its states."""

    def __init__(self, kind, features, hidden, labels, bidirectional=False):
        super().__init__()
        self.recurrent = getattr(nn, kind)(features, hidden, 2, batch_first=True,
                                           bidirectional=bidirectional)
        self.head = nn.Linear(hidden * (1 + bidirectional), labels)

    def forward(self, x):
        return self.head(self.recurrent(x)[0])
