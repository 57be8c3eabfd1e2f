"""A bidirectional LSTM that labels each step of a sequence."""
from torch import nn


class Tagger(nn.Module):
    def __init__(self, features=96, hidden=192, labels=40):
        super().__init__()
        self.lstm = nn.LSTM(features, hidden, 2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * hidden, labels)

    def forward(self, x):
        return self.head(self.lstm(x)[0])
