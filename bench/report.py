"""The report: results as Markdown."""
from peers import PEERS, TENON


def number(x):
    """Formats a number with three significant digits."""
    if x >= 100:
        return f"{x:.0f}"
    return f"{x:.3g}"


def time_text(ms):
    if ms >= 1000:
        return f"{number(ms / 1000)} s"
    return f"{number(ms)} ms" if ms >= 0.1 else f"{number(1000 * ms)} µs"


def ratio_text(r):
    return f"{r['median']:.2f} ({r['low']:.2f}–{r['high']:.2f})"


def cell(result):
    """Formats a peer's result: its ratio, or its time if Tenon has none."""
    if "failed" in result:
        return "failed"
    if "ratio" in result:
        return ratio_text(result["ratio"])
    return time_text(result["best_ms"]) if "best_ms" in result else ""


def rate(result, peak):
    if result.get("gflops"):
        share = f", {100 * result['gflops'] / peak:.0f} % of peak" if peak else ""
        return f"{number(result['gflops'])} GFLOP/s{share}"
    return f"{number(result['gbps'])} GB/s" if result.get("gbps") else ""


def row(entry, columns):
    ours = entry["peers"].get(TENON.name, {})
    cells = [cell(entry["peers"].get(name, {})) for name in columns]
    return line([entry["title"], cell(ours), rate(ours, entry["peak_gflops"]), *cells])


def line(cells):
    return "| " + " | ".join(cells) + " |"


def configurations(report):
    """Returns [(threads, isa, entries)] in the order they were measured."""
    found = {}
    for entry in report["results"]:
        found.setdefault((entry["threads"], entry["isa"]), []).append(entry)
    return [(*key, entries) for key, entries in found.items()]


def heading(threads, isa, report):
    return f"{threads} thread{'s' * (threads > 1)}, {isa} ({report['isas'][isa]})"


def columns_of(entries):
    return [p.name for p in PEERS[1:] if any(p.name in e["peers"] for e in entries)]


def table(report, entries):
    columns = columns_of(entries)
    titles = [report["peers"][name]["title"] for name in columns]
    return [line(["", "Tenon", "rate", *titles]), "|---" * (3 + len(columns)) + "|",
            *(row(e, columns) for e in entries)]


def bars(report):
    rows = []
    for e in report["results"]:
        for bar in e["bars"]:
            against = {"peak": "measured peak", "copy": "the better copy"}.get(
                bar["against"]) or f"{report['peers'][bar['against']]['title']}'s time"
            bound = f"≥ {100 * bar['bound']:.0f} %" if bar["share"] else f"≤ {bar['bound']:g} ×"
            value = ("not measured" if bar["value"] is None else
                     f"{100 * bar['value']:.0f} %" if bar["share"] else f"{bar['value']:.2f} ×")
            rows.append(line([e["title"], str(e["threads"]), e["isa"], f"{bound} of {against}",
                              value, "yes" if bar["met"] else "**no**"]))
    if not rows:
        return []
    return ["## Bars", "", line(["", "threads", "ISA", "bar", "reached", "met"]), "|---" * 6 + "|",
            *rows, ""]


def failures(report):
    """Lists what was left out, with reasons; once for many configurations."""
    said = [f"{p['title']} is absent: {p['absent']}" for p in report["peers"].values()
            if "absent" in p]
    for e in report["results"]:
        said += [f"{report['peers'][name]['title']}, {e['title']}: {r['failed']}"
                 for name, r in e["peers"].items() if "failed" in r]
    said = [" ".join(text.split()) for text in dict.fromkeys(said)]
    return ["## Left out", "", *(f"- {text}" for text in said), ""] if said else []


def about(report):
    m = report["machine"]
    present = [p for p in report["peers"].values() if "version" in p]
    free = [p["title"] for p in present if not p["restricted"]]
    isas = {e["isa"] for e in report["results"]}
    text = [f"{m['processor']} ({', '.join(m['features'])}), {m['cores']} cores, {m['system']}, "
            f"{report['date'][:10]}. "
            + ", ".join(f"{p['title']} {p['version']}" for p in present if p["version"]) + ".", "",
            f"Times are the best of {report['rounds']} rounds; under a peer stands Tenon's time "
            "divided by the peer's, round by round: the median (and quartiles). Below 1 Tenon is "
            "faster."]
    if "v3" in isas and free:
        text[-1] += f" {', '.join(free)} cannot be kept to x86-64-v3 and is at its best there too."
    return text


def markdown(report, charts=()):
    """Returns the page; `charts` are [(threads, isa, file names)]."""
    lines = ["# Tenon beside its peers", "", *about(report), ""]
    pictures = {(threads, isa): names for threads, isa, names in charts}
    for threads, isa, entries in configurations(report):
        lines += [f"## {heading(threads, isa, report)}", "", *table(report, entries), ""]
        for name in pictures.get((threads, isa), ()):
            lines += [f"![{name.removesuffix('.svg')}]({name})", ""]
    return "\n".join(lines + bars(report) + failures(report)).rstrip() + "\n"
