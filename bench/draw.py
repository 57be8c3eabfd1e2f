#!/usr/bin/env python3
"""Draws networks of bench/families.txt by lot, for a test on networks that nobody looked at before.

    bench/draw.py [COMMIT] [--count N] [--families FILE]

The lot is a commit's id, by default that of the last commit that changed src/: whoever wrote that
commit could not know whom it draws. Names are sorted by the SHA-256 of "COMMIT NAME", COMMIT being
the full id, and the first ones are drawn: the same ones for everybody, none of them twice."""
import argparse
import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COUNT = 6


def git(*args):
    return subprocess.run(["git", "-C", str(ROOT), *args], capture_output=True, text=True,
                          check=True).stdout.strip()


def last_change_of_sources():
    """Returns the id of the last commit that changed src/."""
    return git("log", "-1", "--format=%H", "--", "src")


def names(path):
    """Returns the names of a list of families, one a line; "#" begins a comment."""
    words = (line.partition("#")[0].split() for line in Path(path).read_text().splitlines())
    return [w[0] for w in words if w]


def lot(commit, name):
    return hashlib.sha256(f"{commit} {name}".encode()).hexdigest()


def draw(candidates, commit, count):
    """Returns the names drawn by a commit's full id, in the order of the draw."""
    return sorted(candidates, key=lambda name: lot(commit, name))[:count]


def arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("commit", nargs="?", help="default: the last one that changed src/")
    p.add_argument("--count", type=int, default=COUNT, metavar="N", help=f"default: {COUNT}")
    p.add_argument("--families", default=ROOT / "bench" / "families.txt", metavar="FILE",
                   help="default: bench/families.txt")
    return p, p.parse_args()


def main():
    parser, args = arguments()
    try:
        commit = (git("rev-parse", "--verify", "--quiet", f"{args.commit}^{{commit}}")
                  if args.commit else last_change_of_sources())
    except subprocess.CalledProcessError:
        parser.error(f'"{args.commit}" is no commit here')
    print("\n".join(draw(names(args.families), commit, args.count)))


if __name__ == "__main__":
    sys.exit(main())
