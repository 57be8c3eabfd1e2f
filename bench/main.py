#!/usr/bin/env python3
"""Measures Tenon beside its peers and writes JSON, Markdown and charts; see bench/README.md."""
import fnmatch
import json
import os
import sys
import tempfile
import time

import arguments
import peers
import report
import suite
import workloads

TELL_AFTER = 30  # seconds without a line, after which a step is worth one where lines stay


def choose(keys, networks, only):
    """Returns the workloads that are asked for, each once."""
    chosen = [workloads.find(k) for k in keys] + workloads.all_networks() * networks
    chosen = list({w.key: w for w in chosen or workloads.LIST}.values())
    if only is None:
        return tuple(chosen)
    pattern = f"*{only.lower()}*"
    kept = tuple(w for w in chosen if fnmatch.fnmatch(w.key.lower(), pattern)
                 or fnmatch.fnmatch(w.title.lower(), pattern))
    if not kept:
        raise workloads.Unknown(f'no workload has "{only}" in its title or form (--list)')
    return kept


class Progress:
    """Shows progress on standard error: one line that changes on a terminal; elsewhere lines, and
    details only if nothing else was said for long."""

    def __init__(self):
        self.live = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self.last = time.monotonic()

    def tell(self, text, detail):
        if self.live:
            width = os.get_terminal_size(sys.stderr.fileno()).columns
            print(f"\r\033[K{text[:max(width - 1, 1)]}", end="", file=sys.stderr, flush=True)
        elif not detail or time.monotonic() - self.last > TELL_AFTER:
            self.last = time.monotonic()
            print(f"bench: {text}", file=sys.stderr, flush=True)

    def end(self):
        if self.live:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def print_list():
    listed = {w.key: w for w in [*workloads.LIST, *workloads.all_networks()]}
    for w in listed.values():
        print(f"{w.key:28} {w.title}")
    print()
    for p in peers.PEERS[1:]:
        print(f"{p.name:28} {p.title}")


def options_of(args):
    defaults = arguments.QUICK if args.quick else {}
    chosen = choose(args.workload, args.networks, args.only)
    return suite.Options(
        build=args.build, workloads=tuple(workloads.cases(chosen, args.batch, args.sizes)),
        peers=(peers.TENON, *(peers.BY_NAME[name] for name in args.peers)),
        threads=args.threads, isas=args.isa,
        rounds=args.rounds or defaults.get("rounds", suite.Options.rounds),
        turn_ms=args.turn_ms or defaults.get("turn_ms", suite.Options.turn_ms))


def measure(options, keep):
    """Returns the results, with progress on standard error; keep(results) gets those so far."""
    progress = Progress()
    try:
        return suite.Suite(options, progress.tell, keep).measure_all()
    finally:
        progress.end()


def write(folder, name, text):
    """Writes a file atomically."""
    with tempfile.NamedTemporaryFile("w", dir=folder, prefix=f".{name}.", delete=False) as f:
        f.write(text)
    os.chmod(f.name, 0o644)
    os.replace(f.name, folder / name)


def draw(results, folder):
    """Draws the charts; returns {configuration: file names}, empty if matplotlib is missing."""
    try:
        import charts
    except ImportError as e:
        print(f"bench: no charts: {e}", file=sys.stderr)
        return {}
    return charts.draw(results, folder)


def write_json(results, folder):
    folder.mkdir(parents=True, exist_ok=True)
    write(folder, "results.json", json.dumps(results, indent=1) + "\n")


def write_all(results, folder):
    write_json(results, folder)
    write(folder, "results.md", report.markdown(results, draw(results, folder)))


def failed(results):
    """True if Tenon is absent, or gave a wrong result or none."""
    return "absent" in results["peers"].get(peers.TENON.name, {}) or any(
        "failed" in e["peers"].get(peers.TENON.name, {}) for e in results["results"])


def main(argv=None):
    parser = arguments.parser()
    args = parser.parse_args(argv)
    if args.list:
        return print_list()
    if not (args.build / "tenon").exists():
        parser.error(f"{args.build} has no command tenon: build it, or name another with --build")
    try:
        options = options_of(args)
    except workloads.Unknown as e:
        parser.error(str(e))

    def keep(results):
        if not args.print:
            write_json(results, args.folder)

    results = measure(options, keep)
    if not results["results"]:
        print("bench: interrupted: nothing is written", file=sys.stderr)
        return 130
    if not args.print:
        write_all(results, args.folder)
        print(f"bench: wrote results.json, results.md and charts to {args.folder}",
              file=sys.stderr)
    print(report.markdown(results), end="")
    return int(failed(results)) if results["complete"] else 130


if __name__ == "__main__":
    sys.exit(main())
