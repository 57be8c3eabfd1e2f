#!/usr/bin/env python3
"""The command line of bench/run. Needs Python alone, so that help and misuse need no
installation."""
import argparse
import sys
from pathlib import Path

import peers
from machine import has_wide_vectors, physical_cores
from zoo.catalogue import ALIASES, NETWORKS
from zoo.files import KNOWN, OPEN

ROOT = Path(__file__).resolve().parents[1]
QUICK = {"rounds": 3, "turn_ms": 5.0}
LARGEST_BATCH = 4096


def one_of(known):
    def parse(text):
        chosen = text.split(",")
        for name in chosen:
            if name not in known:
                raise argparse.ArgumentTypeError(f'"{name}" is none of {", ".join(known)}')
        return tuple(dict.fromkeys(chosen))
    return parse


def numbers(most, what):
    def parse(text):
        try:
            counts = tuple(dict.fromkeys(int(n) for n in text.split(",")))
        except ValueError:
            raise argparse.ArgumentTypeError(f'"{text}" is no list of numbers') from None
        if not all(1 <= n <= most for n in counts):
            raise argparse.ArgumentTypeError(what)
        return counts
    return parse


def positive(kind):
    def parse(text):
        value = kind(text)
        if not value > 0:
            raise argparse.ArgumentTypeError(f"{text} is not more than 0")
        return value
    parse.__name__ = kind.__name__
    return parse


def parser():
    names, cores = [p.name for p in peers.PEERS[1:]], len(physical_cores())
    p = argparse.ArgumentParser(
        prog="bench/run", description="Measures Tenon beside its peers and writes JSON, Markdown "
        "and charts (bench/README.md).", epilog=f"networks: {', '.join([*NETWORKS, *ALIASES])}")
    p.add_argument("workload", nargs="*", metavar="WORKLOAD|MODEL",
                   help="work as `tenon bench` takes it, a network (below, or of "
                   "bench/families.txt) or an ONNX file (default: all of the list)")
    p.add_argument("--networks", action="store_true",
                   help="all networks of the benchmark; on all numbers of threads and batches "
                   "this takes hours")
    p.add_argument("--only", metavar="PATTERN",
                   help="of these, what has this in its title or form; * and ? are wild")
    p.add_argument("--peers", type=one_of(names), default=tuple(names), metavar="LIST",
                   help=f"of {', '.join(names)} (default: all)")
    p.add_argument("--threads", type=numbers(cores, f"there are 1 to {cores} cores to use"),
                   metavar="LIST", default=tuple(n for n in (1, 2) if n <= cores),
                   help="numbers of threads (default: 1,2)")
    p.add_argument("--isa", type=one_of(tuple(peers.ISAS)), metavar="LIST",
                   default=("native", "v3") if has_wide_vectors() else ("native",),
                   help="of native and v3 (default: native,v3 where the processor has AVX-512, else native)")
    p.add_argument("--batch", metavar="LIST", default=(1,),
                   type=numbers(LARGEST_BATCH, f"a batch is 1 to {LARGEST_BATCH}"),
                   help="images or texts that a network takes at once, as in 1,8 (default: 1)")
    p.add_argument("--sizes", type=one_of((KNOWN, OPEN)), default=(KNOWN,), metavar="LIST",
                   help="of known and open, as in known,open: whether a network's file states the "
                   "batch, and a text's length, or leaves them open (default: known)")
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
    return p


if __name__ == "__main__":
    parser().parse_args(sys.argv[1:])
