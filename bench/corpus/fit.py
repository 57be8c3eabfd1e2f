"""Fits the constants of the cost model (src/target/kernel_cost.c) to recorded times.

    corpus_record --terms FILE > TERMS
    fit.py TERMS [TERMS …]

Each line of TERMS is a schedule with its loops and the bytes of each level (record.c). The constants
are fitted by least absolute logarithmic error over all schedules, by descent over single constants;
each network in turn is left out, and judged by the constants of the others. Prints regret, rank
correlation within a kernel and the share within 25 % for the constants of today and for the fit.
Several files are several machines: a fit of one describes that one alone.
"""
import math
import pathlib
import re
import statistics
import sys

TABLE = pathlib.Path(__file__).parents[2] / "src/target/machine.def"
ROWS = ["CYCLES_PER_NS", "ISSUED_PER_CYCLE", "STORED_PER_CYCLE", "SLOTS_PER_CYCLE", "LOOP_CYCLES",
        "LOOP_INSTRUCTIONS", "REORDERED_INSTRUCTIONS", "L2_BYTES_PER_CYCLE", "L3_BYTES_PER_CYCLE",
        "MEMORY_BYTES_PER_CYCLE", "BOTTLENECK_POWER"]
STEPS = [1.5, 1.15, 1.05]


def rows_of_today():
    text = TABLE.read_text()
    return {r: float(re.search(rf"\({r}, ([0-9.]+),", text)[1]) for r in ROWS}


class Schedule:
    def __init__(self, line, today):
        words = line.split()
        self.network, kernel, self.decisions = words[:3]
        self.kernel = self.network, kernel
        self.ns, self.today = float(words[3]), float(words[4])
        times = [float(w) for w in words[6:9]]
        levels = [today[r] for r in ROWS[7:10]]
        self.bytes = [t * today["CYCLES_PER_NS"] * b for t, b in zip(times, levels)]
        self.loops = [[float(x) for x in w.split(",")] for w in words[9:]]

    def predict(self, c):
        """The time by the model with other constants."""
        cycles = sum(self.loop(c, *l) * l[0] for l in self.loops)
        parts = [cycles] + [b / c[r] for b, r in zip(self.bytes, ROWS[7:10])]
        power = c["BOTTLENECK_POWER"]
        most = max(parts)
        norm = most * sum((p / most) ** power for p in parts) ** (1 / power)
        return norm / c["CYCLES_PER_NS"]

    @staticmethod
    def loop(c, _, operations, loads, stores, scalars, moved, chain, steps, is_loop):
        issued = operations + scalars + loads + stores + moved + c["LOOP_INSTRUCTIONS"]
        ports = c["ISSUED_PER_CYCLE"]
        t = max(operations / ports, (loads + moved) / ports, stores / c["STORED_PER_CYCLE"],
                issued / c["SLOTS_PER_CYCLE"])
        if chain > 0:
            overlapped = c["REORDERED_INSTRUCTIONS"] / (issued * steps) if steps else 1
            t = max(t, chain / max(overlapped, 1))
        return t + c["LOOP_CYCLES"] if is_loop else t


def error(schedules, c):
    """Mean absolute logarithmic error, in which kernels count alike."""
    sums = {}
    for s in schedules:
        sums.setdefault(s.kernel, []).append(abs(math.log(s.predict(c) / s.ns)))
    return statistics.mean(statistics.mean(x) for x in sums.values())


def fit(schedules, start):
    best, least = dict(start), error(schedules, start)
    for step in STEPS:
        gains = True
        while gains:
            gains = False
            for row in ROWS:
                for factor in step, 1 / step:
                    tried = {**best, row: best[row] * factor}
                    if (e := error(schedules, tried)) < least - 1e-5:
                        best, least, gains = tried, e, True
    return best


def ranks(x):
    return [sum(b < a for b in x) + (sum(b == a for b in x) - 1) / 2 for a in x]


def correlation(x, y):
    a, b = ranks(x), ranks(y)
    m = (len(x) - 1) / 2
    xx, yy = sum((v - m) ** 2 for v in a), sum((v - m) ** 2 for v in b)
    return sum((v - m) * (w - m) for v, w in zip(a, b)) / math.sqrt(xx * yy) if xx and yy else 0


def judge(predicted):
    """Regrets, correlations and errors of [(schedule, predicted time)]."""
    kernels = {}
    for s, p in predicted:
        kernels.setdefault(s.kernel, []).append((p, s.ns))
    regrets = [min(k, key=lambda x: x[0])[1] / min(ns for _, ns in k) for k in kernels.values()]
    related = [correlation(*zip(*k)) for k in kernels.values() if len(k) > 2]
    near = [max(p / s.ns, s.ns / p) <= 1.25 for s, p in predicted]
    return regrets, related, near


def show(name, results):
    regrets, related, near = results
    regrets = sorted(regrets)
    median, ninth = regrets[len(regrets) // 2], regrets[len(regrets) * 9 // 10]
    rank = statistics.mean(related) if related else math.nan
    print(f"{name:32} regret {median:.3f}  9 of 10 {ninth:.3f}"
          f"  mean {statistics.geometric_mean(regrets):.3f}  rank {rank:.3f}"
          f"  within 25 % {100 * statistics.mean(near):3.0f}", flush=True)


def main():
    today = rows_of_today()
    lines = [line for path in sys.argv[1:] for line in pathlib.Path(path).read_text().splitlines()]
    schedules = [Schedule(line, today) for line in lines]
    off = max(abs(s.predict(today) / s.today - 1) for s in schedules)
    if off > 0.01:
        sys.exit(f"fit.py computes other times than kernel_cost.c, by up to {100 * off:.1f} %")
    networks = sorted({s.network for s in schedules})
    held_out = []
    for n in networks:
        mine = [s for s in schedules if s.network == n]
        others = [s for s in schedules if s.network != n]
        c = fit(others, today)
        show(n, judge([(s, s.today) for s in mine]))
        show("  by the others", judge([(s, s.predict(c)) for s in mine]))
        held_out += [(s, s.predict(c)) for s in mine]
    show("all, constants of today", judge([(s, s.today) for s in schedules]))
    show("all, each network by the others", judge(held_out))
    c = fit(schedules, today)
    show("all, fitted to all", judge([(s, s.predict(c)) for s in schedules]))
    for r in ROWS:
        print(f"{r:24} {today[r]:8.4g} {c[r]:8.4g}")


main()
