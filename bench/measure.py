"""Rounds of turns, and their statistics. In a round every side has one turn, so that slow changes
of the machine affect all alike; the order rotates from round to round. A turn is many runs and
takes the time of the fastest, as disturbances only make runs longer. Two sides are compared by the
ratios of their times in each round: the median and the quartiles."""
import math
import statistics


def quartiles(values):
    """Returns (first quartile, median, third quartile) of one value or more."""
    if len(values) == 1:
        return (values[0],) * 3
    return tuple(statistics.quantiles(values, n=4, method="inclusive"))


def order(sides, number):
    """Returns the sides in the order of a round."""
    start = number % len(sides) if sides else 0
    return sides[start:] + sides[:start]


def take_rounds(sides, count, turn, begin=lambda number: None):
    """Returns {side: [result of turn(side) in each round]}; begin(number) is told of each round."""
    taken = {side: [] for side in sides}
    for number in range(count):
        begin(number)
        for side in order(sides, number):
            taken[side].append(turn(side))
    return taken


def ratios(ours, theirs):
    return [a / b for a, b in zip(ours, theirs, strict=True)]


def ratio(ours, theirs):
    """Returns the quartiles of the rounds' ratios of two lists of times."""
    return quartiles(ratios(ours, theirs))


def mean_ratio(several):
    """Returns the quartiles of the geometric mean of several lists of ratios, taken round by
    round."""
    return quartiles([math.exp(statistics.fmean(map(math.log, round_)))
                      for round_ in zip(*several, strict=True)])
