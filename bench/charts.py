"""Charts of the results: how Tenon's time compares, and the rates that each side reaches."""
import math

import matplotlib
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from peers import PEERS
from report import configurations

matplotlib.rcParams.update({
    "svg.fonttype": "none", "svg.hashsalt": "tenon", "font.family": "sans-serif", "font.size": 10,
    "axes.spines.top": False, "axes.spines.right": False, "axes.spines.left": False})

# Colours for all kinds of colour vision (Okabe and Ito), and distinct shapes.
LOOK = dict(zip((p.name for p in PEERS), (
    ("#000000", "D"), ("#0072b2", "o"), ("#56b4e9", "s"), ("#d55e00", "o"), ("#0072b2", "^"),
    ("#cc79a7", "s"), ("#999999", "v"), ("#009e73", "o"), ("#e69f00", "s")), strict=True))
ROW, MARGIN = 0.36, 1.5  # inches: row of a workload, and margins
FASTER = "#eef7f2"
FARTHEST, TICKS = 64, 8  # larger ratios are drawn at the edge; largest number of tick intervals


def style(name, size=42):
    colour, shape = LOOK[name]
    return {"color": colour, "marker": shape, "s": size, "linewidths": 0}


def rows_of(ax, entries):
    """Returns a row for each workload, the first at the top."""
    ax.set_yticks(range(len(entries)), [e["title"] for e in entries])
    ax.set_ylim(len(entries) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.set_axisbelow(True)
    ax.grid(axis="y", color="#dddddd", linewidth=0.8)


def legend(figure, ax, names, report):
    marks = [ax.scatter([], [], **style(n)) for n in names]
    figure.legend(marks, [report["peers"][n]["title"] for n in names], loc="outside upper left",
                  ncols=4, frameon=False, handletextpad=0.2, columnspacing=1.2)


def spread(names, i):
    """Returns the offset of the i-th side's mark from its workload's line."""
    return (i - (len(names) - 1) / 2) * min(0.11, 0.7 / max(len(names), 1))


def plain(x, _=None):
    return f"{x:g}" if x >= 1 else f"1/{1 / x:g}"


def within(x):
    return min(max(x, 1 / FARTHEST), FARTHEST)


def ratio_axis(ax, low, high):
    """Sets an axis to powers of two around 1, at least from 1/2 to 2."""
    first, last = min(math.floor(math.log2(low)), -1), max(math.ceil(math.log2(high)), 1)
    step = math.ceil((last - first) / TICKS)
    ax.set_xscale("log", base=2)
    ax.set_xlim(2.0 ** first, 2.0 ** last)
    ax.xaxis.set_major_locator(FixedLocator([2.0 ** k for k in range(first, last + 1)
                                             if k % step == 0]))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(plain))
    ax.axvspan(2.0 ** first, 1, color=FASTER, zorder=0)
    ax.axvline(1, color="#000000", linewidth=1)
    ax.set_xlabel("Tenon's time ÷ the peer's (shaded: Tenon is faster; |: the bar)")


def draw_ratios(report, configuration, entries):
    entries = [e for e in entries if any("ratio" in r for r in e["peers"].values())]
    names = [p.name for p in PEERS[1:] if any("ratio" in e["peers"].get(p.name, {})
                                              for e in entries)]
    if not entries:
        return None
    figure = Figure(figsize=(8.5, MARGIN + ROW * len(entries)), layout="constrained")
    ax = figure.subplots()
    rows_of(ax, entries)
    reach = [1.0]
    for y, entry in enumerate(entries):
        bars = {bar["against"]: bar["bound"] for bar in entry["bars"]}
        for i, name in enumerate(names):
            r, at = entry["peers"].get(name, {}).get("ratio"), y + spread(names, i)
            if r:
                ends = [within(r["low"]), within(r["high"])]
                ax.plot(ends, [at, at], color=LOOK[name][0], linewidth=1.6)
                ax.scatter([within(r["median"])], [at], zorder=3, clip_on=False, **style(name))
                reach += ends
            if r and name in bars:
                ax.scatter([bars[name]], [at], zorder=4, color="#000000", marker="|", s=110)
    ratio_axis(ax, min(reach), max(reach))
    legend(figure, ax, names, report)
    ax.set_title(configuration.heading(report), loc="left", fontsize=11)
    return figure


def draw_rates(report, configuration, entries):
    """Draws GFLOP/s of workloads that compute above GB/s of workloads that only move memory."""
    panels = [(unit, label, chosen) for unit, label in (("gflops", "GFLOP/s"), ("gbps", "GB/s"))
              if (chosen := [e for e in entries
                             if any(r.get(unit) for r in e["peers"].values())])]
    if not panels:
        return None
    heights = [len(chosen) + 1 for _, _, chosen in panels]
    figure = Figure(figsize=(8.5, MARGIN + ROW * sum(heights)), layout="constrained")
    axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)[:, 0]
    shown = {}
    for ax, (unit, label, chosen) in zip(axes, panels):
        rows_of(ax, chosen)
        names = [p.name for p in PEERS if any(e["peers"].get(p.name, {}).get(unit)
                                              for e in chosen)]
        for y, entry in enumerate(chosen):
            for i, name in enumerate(names):
                value = entry["peers"].get(name, {}).get(unit)
                if value:
                    ax.scatter([value], [y + spread(names, i)], zorder=3, **style(name))
                    shown[name] = ax
            if unit == "gflops" and entry["peak_gflops"]:
                ax.plot([entry["peak_gflops"]] * 2, [y - 0.45, y + 0.45], color="#000000",
                        linewidth=1.2)
        ax.set_xlim(left=0)
        ax.set_xlabel(label + (" (line: the measured peak)" if unit == "gflops" else ""))
    names = [p.name for p in PEERS if p.name in shown]
    legend(figure, axes[0], names, report)
    axes[0].set_title(configuration.heading(report), loc="left", fontsize=11)
    return figure


def draw_summaries(report):
    """Draws the geometric means over networks, a row for each configuration."""
    shown = [s for s in report["summaries"] if s["ratio"]]
    if len(shown) < 2:
        return None
    figure = Figure(figsize=(8.5, MARGIN + ROW * len(shown)), layout="constrained")
    ax = figure.subplots()
    rows_of(ax, [{"title": f"{s['threads']} thread{'s' * (s['threads'] > 1)}, {s['isa']}, batch "
                  f"{s['batch']}, sizes {s['sizes']}"} for s in shown])
    for y, s in enumerate(shown):
        ends = [within(s["ratio"]["low"]), within(s["ratio"]["high"])]
        ax.plot(ends, [y, y], color=LOOK[PEERS[0].name][0], linewidth=1.6)
        ax.scatter([within(s["ratio"]["median"])], [y], zorder=3, **style(PEERS[0].name))
    reach = [within(s["ratio"][k]) for s in shown for k in ("low", "high")]
    ratio_axis(ax, min(reach), max(reach))
    ax.set_xlabel("Tenon's time ÷ the better rival's, geometric mean (shaded: Tenon is faster)")
    ax.set_title("Networks together", loc="left", fontsize=11)
    return figure


def save(figure, folder, name):
    figure.savefig(folder / name, metadata={"Date": None})
    return name


def draw(report, folder):
    """Writes the charts; returns {configuration: file names}, with None for all networks
    together."""
    drawn = {}
    for configuration, entries in configurations(report).items():
        drawn[configuration] = []
        for kind, make in (("ratios", draw_ratios), ("rates", draw_rates)):
            figure = make(report, configuration, entries)
            if figure:
                name = f"{kind}-{configuration.file_name()}.svg"
                drawn[configuration].append(save(figure, folder, name))
    together = draw_summaries(report)
    drawn[None] = [save(together, folder, "networks.svg")] if together else []
    return drawn
