"""Rounds of turns, and what their times come to.

In a round every side has one turn, so that all see the same weather; who begins changes from round
to round. A turn is many runs: its time is the best of them, as all that disturbs a run makes it
longer. Two sides are compared by the ratios of the rounds: their median, and their quartiles.
"""
import statistics


def quartiles(values):
    """(first quartile, median, third quartile) of one value or more."""
    if len(values) == 1:
        return (values[0],) * 3
    return tuple(statistics.quantiles(values, n=4, method="inclusive"))


def order(sides, number):
    """The sides in the order of a round."""
    start = number % len(sides) if sides else 0
    return sides[start:] + sides[:start]


def take_rounds(sides, count, turn):
    """{side: [what turn(side) gave in each round]}"""
    taken = {side: [] for side in sides}
    for number in range(count):
        for side in order(sides, number):
            taken[side].append(turn(side))
    return taken


def ratio(ours, theirs):
    """Quartiles of the rounds' ratios of two lists of times."""
    return quartiles([a / b for a, b in zip(ours, theirs, strict=True)])
