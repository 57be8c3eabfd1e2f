#!/usr/bin/env python3
"""Measures Tenon beside its peers and writes JSON, Markdown and charts; see bench/README.md."""
import argparse
import fnmatch
import json
import os
import sys
import tempfile
from pathlib import Path

import peers
import report
import suite
import workloads

ROOT = Path(__file__).resolve().parents[1]
QUICK = {"rounds": 3, "turn_ms": 5.0}


def has_wide_vectors():
    return "avx512f" in suite.cpu_facts()[1]


def one_of(known):
    def parse(text):
        chosen = text.split(",")
        for name in chosen:
            if name not in known:
                raise argparse.ArgumentTypeError(f'"{name}" is none of {", ".join(known)}')
        return tuple(dict.fromkeys(chosen))
    return parse


def thread_counts(text):
    cores = len(peers.physical_cores())
    try:
        counts = tuple(dict.fromkeys(int(n) for n in text.split(",")))
    except ValueError:
        raise argparse.ArgumentTypeError(f'"{text}" is no list of numbers') from None
    if not all(1 <= n <= cores for n in counts):
        raise argparse.ArgumentTypeError(f"there are 1 to {cores} cores to use")
    return counts


def positive(kind):
    def parse(text):
        value = kind(text)
        if not value > 0:
            raise argparse.ArgumentTypeError(f"{text} is not more than 0")
        return value
    parse.__name__ = kind.__name__
    return parse


def arguments(argv):
    names = [p.name for p in peers.PEERS[1:]]
    p = argparse.ArgumentParser(prog="bench/run", description=__doc__.split(";")[0] + ".")
    p.add_argument("workload", nargs="*", metavar="WORKLOAD|MODEL",
                   help="work as `tenon bench` takes it, a network "
                   f"({', '.join(workloads.networks.NETWORKS)}) or an ONNX file (default: all of "
                   "the list)")
    p.add_argument("--only", metavar="PATTERN",
                   help="of these, what has this in its title or form; * and ? are wild")
    p.add_argument("--peers", type=one_of(names), default=tuple(names), metavar="LIST",
                   help=f"of {', '.join(names)} (default: all)")
    p.add_argument("--threads", type=thread_counts, metavar="LIST",
                   default=tuple(n for n in (1, 2) if n <= len(peers.physical_cores())),
                   help="numbers of threads (default: 1,2)")
    p.add_argument("--isa", type=one_of(tuple(peers.ISAS)), metavar="LIST",
                   default=("native", "v3") if has_wide_vectors() else ("native",),
                   help="native, v3 or both (default: both where the processor has AVX-512)")
    p.add_argument("--rounds", type=positive(int), metavar="N", help="default: 15")
    p.add_argument("--turn", type=positive(float), metavar="MS", dest="turn_ms",
                   help="least length of a turn, in milliseconds (default: 20)")
    p.add_argument("--quick", action="store_true",
                   help=f"{QUICK['rounds']} rounds of short turns: to try, not to quote")
    p.add_argument("--build", type=Path, default=ROOT / "build" / "release", metavar="DIR",
                   help="where Tenon was built (default: build/release)")
    p.add_argument("-o", type=Path, default=ROOT / "build" / "bench" / "results", metavar="DIR",
                   dest="folder", help="where results go (default: build/bench/results)")
    p.add_argument("--print", action="store_true", help="only print Markdown: write no files")
    p.add_argument("--list", action="store_true", help="list workloads and peers, and end")
    return p, p.parse_args(argv)


def choose(keys, only):
    chosen = [workloads.find(k) for k in keys] or workloads.LIST
    if only is None:
        return tuple(chosen)
    pattern = f"*{only.lower()}*"
    kept = tuple(w for w in chosen if fnmatch.fnmatch(w.key.lower(), pattern)
                 or fnmatch.fnmatch(w.title.lower(), pattern))
    if not kept:
        raise workloads.Unknown(f'no workload has "{only}" in its title or form (--list)')
    return kept


class Progress:
    """Shows progress on standard error: one line that changes on a terminal."""

    def __init__(self):
        self.live = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def tell(self, text):
        if self.live:
            width = os.get_terminal_size(sys.stderr.fileno()).columns
            print(f"\r\033[K{text[:max(width - 1, 1)]}", end="", file=sys.stderr, flush=True)
        else:
            print(f"bench: {text}", file=sys.stderr, flush=True)

    def end(self):
        if self.live:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def print_list():
    for w in workloads.LIST:
        print(f"{w.key:28} {w.title}")
    print()
    for p in peers.PEERS[1:]:
        print(f"{p.name:28} {p.title}")


def options_of(args):
    defaults = QUICK if args.quick else {}
    return suite.Options(
        build=args.build, workloads=choose(args.workload, args.only),
        peers=(peers.TENON, *(peers.BY_NAME[name] for name in args.peers)),
        threads=args.threads, isas=args.isa,
        rounds=args.rounds or defaults.get("rounds", suite.Options.rounds),
        turn_ms=args.turn_ms or defaults.get("turn_ms", suite.Options.turn_ms))


def measure(options):
    """Returns the results of suite.measure_all, with progress on standard error."""
    progress = Progress()
    try:
        return suite.measure_all(options, progress.tell)
    finally:
        progress.end()


def write(folder, name, text):
    """Writes a file atomically."""
    with tempfile.NamedTemporaryFile("w", dir=folder, prefix=f".{name}.", delete=False) as f:
        f.write(text)
    os.chmod(f.name, 0o644)
    os.replace(f.name, folder / name)


def draw(results, folder):
    """Draws the charts; returns [(threads, isa, file names)], empty if matplotlib is missing."""
    try:
        import charts
    except ImportError as e:
        print(f"bench: no charts: {e}", file=sys.stderr)
        return []
    return charts.draw(results, folder)


def write_all(results, folder):
    folder.mkdir(parents=True, exist_ok=True)
    write(folder, "results.json", json.dumps(results, indent=1) + "\n")
    write(folder, "results.md", report.markdown(results, draw(results, folder)))


def failed(results):
    """True if Tenon is absent, or gave a wrong result or none."""
    return "absent" in results["peers"][peers.TENON.name] or any(
        "failed" in e["peers"][peers.TENON.name] for e in results["results"])


def main(argv=None):
    parser, args = arguments(argv)
    if args.list:
        return print_list()
    if not (args.build / "tenon").exists():
        parser.error(f"{args.build} has no command tenon: build it, or name another with --build")
    try:
        options = options_of(args)
    except workloads.Unknown as e:
        parser.error(str(e))
    try:
        results = measure(options)
    except KeyboardInterrupt:
        print("bench: interrupted: nothing is written", file=sys.stderr)
        return 130
    if not args.print:
        write_all(results, args.folder)
        print(f"bench: wrote results.json, results.md and charts to {args.folder}",
              file=sys.stderr)
    print(report.markdown(results), end="")
    return int(failed(results))


if __name__ == "__main__":
    sys.exit(main())
