#!/usr/bin/env python3
"""Writes networks as ONNX files, unless they are there, and prints the paths.

    build/bench/venv/bin/python bench/export.py resnet50 bert6_128 --batch 8
    build/bench/venv/bin/python bench/export.py --all --sizes open --check
    build/bench/venv/bin/python bench/export.py --families --check
"""
import argparse
import sys
from pathlib import Path

from zoo import files
from zoo.catalogue import NETWORKS
from zoo.families import families, find

OTHER_SIZES = {"batch": 3, "length": 7}  # of the second check of a file whose sizes are open


def arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("name", nargs="*", help="of a network (--list)")
    p.add_argument("--all", action="store_true", help="all networks of the benchmark")
    p.add_argument("--families", action="store_true", help="all networks of bench/families.txt")
    p.add_argument("--list", action="store_true", help="list the networks, and end")
    p.add_argument("--batch", type=int, default=1, metavar="N", help="default: 1")
    p.add_argument("--sizes", choices=(files.KNOWN, files.OPEN), default=files.KNOWN,
                   help="known, or the batch (and a text's length) left open (default: known)")
    p.add_argument("--check", action="store_true",
                   help="check operators and results, and exit with 1 if one is wrong")
    p.add_argument("--folder", type=Path, default=files.FOLDER, metavar="DIR",
                   help="where files go (default: build/bench/networks)")
    return p, p.parse_args()


def faults(path, network, args):
    from zoo import check
    several = [{"batch": args.batch}]
    if args.sizes == files.OPEN:
        several.append({size: OTHER_SIZES[size] for size in network.sizes})
    return check.faults(path, network, several)


def export(network, args):
    """Exports one network; returns whether it is good."""
    try:
        path = files.export(network, {"batch": args.batch}, args.sizes, args.folder)
        wrong = faults(path, network, args) if args.check else []
    except Exception as e:  # any exception of a library says why it does not export
        wrong = [" ".join(f"{type(e).__name__}: {e}"[:600].split())]
    print(f"{network.name}: {'; '.join(wrong)}" if wrong else path, flush=True)
    return not wrong


def main():
    parser, args = arguments()
    if args.list:
        print("\n".join([*NETWORKS, *families()]))
    names = args.name + [*NETWORKS] * args.all + [*families()] * args.families
    for name in names:
        if not find(name):
            parser.error(f'there is no network "{name}" (--list)')
    chosen = {network.name: network for network in map(find, names)}
    good = [export(network, args) for network in chosen.values()]
    return int(not all(good))


if __name__ == "__main__":
    sys.exit(main())
