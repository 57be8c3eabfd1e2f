#!/usr/bin/env python3
"""Writes networks as ONNX files, or finds those that are there, and prints their paths.

    build/bench/venv/bin/python bench/export.py NAME…
"""
import argparse
import sys

from zoo import check, files
from zoo.families import families


def arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("name", nargs="*", help="of a network (--list)")
    p.add_argument("--list", action="store_true", help="list the networks, and end")
    p.add_argument("--check", action="store_true",
                   help="check operators, and results in ONNX Runtime")
    p.add_argument("--folder", default=files.FOLDER, help="where files go")
    return p, p.parse_args()


def main():
    parser, args = arguments()
    known = families()
    if args.list:
        print("\n".join(known))
    for name in args.name:
        if name not in known:
            parser.error(f'there is no network "{name}" (--list)')
    bad = 0
    for name in args.name:
        try:
            path = files.export(known[name], known[name].sizes, args.folder)
            faults = check.faults(path, known[name]) if args.check else []
        except Exception as e:  # any exception of a library says why it does not export
            path, faults = None, [f"{type(e).__name__}: {e}"[:600]]
        print(path if not faults else f"{name}: {'; '.join(faults)}", flush=True)
        bad += bool(faults)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
