"""The report: results as Markdown."""
from dataclasses import dataclass

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


def line(cells):
    return "| " + " | ".join(cells) + " |"


def rule(columns):
    return "|---" * columns + "|"


@dataclass(frozen=True)
class Configuration:
    """The properties that entries of one table share; networks have a batch and kind of sizes."""
    threads: int
    isa: str
    batch: int | None
    sizes: str | None

    def heading(self, report):
        text = f"{self.threads} thread{'s' * (self.threads > 1)}, {self.isa} " \
               f"({report['isas'][self.isa]})"
        return text + (f", networks: batch {self.batch}, sizes {self.sizes}" if self.batch else "")

    def file_name(self):
        return f"{self.isa}-{self.threads}" + (f"-batch{self.batch}-{self.sizes}" if self.batch
                                               else "")


def configurations(report):
    """Returns {Configuration: entries} in the order they were measured."""
    found = {}
    for e in report["results"]:
        key = Configuration(e["threads"], e["isa"], e["batch"], e["sizes"])
        found.setdefault(key, []).append(e)
    return found


def summary_of(report, configuration):
    for s in report["summaries"]:
        if Configuration(s["threads"], s["isa"], s["batch"], s["sizes"]) == configuration:
            return s


def columns_of(entries):
    return [p.name for p in PEERS[1:] if any(p.name in e["peers"] for e in entries)]


def title_cell(entry):
    return entry["title"] + " (left out)" * ("left_out" in entry)


def work_table(report, entries):
    """Returns the table of work on arrays and of files: times, rates, and ratios to peers."""
    columns = columns_of(entries)
    titles = [report["peers"][name]["title"] for name in columns]
    lines = [line(["", "Tenon", "rate", *titles]), rule(3 + len(columns))]
    for e in entries:
        ours = e["peers"].get(TENON.name, {})
        cells = [cell(e["peers"].get(name, {})) for name in columns]
        lines.append(line([e["title"], cell(ours), rate(ours, e["peak_gflops"]), *cells]))
    return lines


def network_table(report, entries, summary):
    """Returns the table of networks: times, ratios to the better rival and to each peer, and the
    geometric mean."""
    columns = columns_of(entries)
    titles = [report["peers"][name]["title"] for name in columns]
    lines = [line(["", "Tenon", "÷ the better", *titles]), rule(3 + len(columns))]
    for e in entries:
        best = e["best_rival"]
        lines.append(line([title_cell(e), cell(e["peers"].get(TENON.name, {})),
                           ratio_text(best["ratio"]) if best else "",
                           *(cell(e["peers"].get(name, {})) for name in columns)]))
    mean = summary["ratio"]
    lines.append(line([f"geometric mean of {summary['compared']} of {summary['networks']}", "",
                       f"**{ratio_text(mean)}**" if mean else "", *[""] * len(columns)]))
    return lines


def table(report, configuration, entries):
    if configuration.batch:
        return network_table(report, entries, summary_of(report, configuration))
    return work_table(report, entries)


def summary_table(report):
    """Returns the section of all networks together; nothing if none was measured."""
    if not report["summaries"]:
        return []
    titles = {e["workload"]: e["title"] for e in report["results"]}
    lines = ["## Networks together", "",
             line(["threads", "ISA", "batch", "sizes", "geometric mean", "Tenon is faster",
                   "compared", "Tenon failed"]), rule(8)]
    for s in report["summaries"]:
        lines.append(line([
            str(s["threads"]), s["isa"], str(s["batch"]), s["sizes"],
            ratio_text(s["ratio"]) if s["ratio"] else "", f"{s['faster']} of {s['compared']}",
            f"{s['compared']} of {s['networks']}",
            ", ".join(titles[key] for key in s["failed"]) or "never"]))
    return [*lines, "", "The geometric mean is that of Tenon's times divided by the better of ONNX "
            "Runtime's and OpenVINO's, network by network; with v3, by OpenVINO's, as ONNX Runtime "
            "cannot be kept to it. Networks at which Tenon failed are in no mean, so a row with "
            "failures flatters it.", ""]


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
    head = line(["", "threads", "ISA", "bar", "reached", "met"])
    return ["## Bars", "", head, rule(6), *rows, ""]


def failures(report):
    """Lists what was left out, with reasons; once for many configurations."""
    said = [f"{p['title']} is absent: {p['absent']}" for p in report["peers"].values()
            if "absent" in p]
    for e in report["results"]:
        which = e["title"] + (f" (batch {e['batch']}, sizes {e['sizes']})" if e["batch"] else "")
        said += [f"{which}: {e['left_out']}"] if "left_out" in e else []
        said += [f"{report['peers'][name]['title']}, {which}: {r['failed']}"
                 for name, r in e["peers"].items() if "failed" in r]
    said = [" ".join(text.split()) for text in dict.fromkeys(said)]
    return ["## Failed and left out", "", *(f"- {text}" for text in said), ""] if said else []


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
    if not report["complete"]:
        text[-1] += " **The run was interrupted: what follows is not all of it.**"
    if "v3" in isas and free:
        text[-1] += f" {', '.join(free)} cannot be kept to x86-64-v3 and is at its best there too."
    return text


def tables(report, charts=None):
    """Returns the lines of all tables; `charts` are {Configuration: file names}, those of all
    networks together under None."""
    def pictures(key):
        return [part for name in (charts or {}).get(key, ())
                for part in (f"![{name.removesuffix('.svg')}]({name})", "")]

    lines = summary_table(report) + pictures(None)
    for configuration, entries in configurations(report).items():
        lines += [f"## {configuration.heading(report)}", "",
                  *table(report, configuration, entries), "", *pictures(configuration)]
    return lines


def markdown(report, charts=None):
    """Returns the page; `charts` are {Configuration: file names}."""
    lines = ["# Tenon beside its peers", "", *about(report), "", *tables(report, charts)]
    return "\n".join(lines + bars(report) + failures(report)).rstrip() + "\n"
