#!/usr/bin/env python3
"""Runs the backend tests of the onnx package, and writes docs/onnx-operators.md from the results.

    scripts/onnx-conformance.py [--build FOLDER] [--jobs N] [--check]
    scripts/onnx-conformance.py [--build FOLDER] [--jobs N] [--with RUNTIME] PATTERN…

With --check nothing is written, and the page has to agree. With patterns, regular expressions of
names, the results of the cases that match are printed. RUNTIME is tenon, onnxruntime, interpreter (Tenon's
interpreter of the imported graph) or stored (Tenon with every value of the graph as an output). The build,
build/release unless said, needs build/venv (scripts/setup.sh --tests).
"""

import argparse
import collections
import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = ROOT / "build" / "venv" / "bin" / "python3"
if sys.prefix == sys.base_prefix and PYTHON.exists():
    os.execv(PYTHON, [PYTHON, *sys.argv])
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "models" / "onnx")]

import conformance  # noqa: E402
import conformance_page  # noqa: E402
from generated import settle  # noqa: E402


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--build", default=ROOT / "build" / "release")
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--with", dest="runtime", choices=list(conformance.RUNTIMES), default="tenon")
    p.add_argument("--check", action="store_true")
    p.add_argument("patterns", nargs="*")
    return p.parse_args()


def show(case, result):
    print(f"{result.outcome:8} {result.seconds:6.2f} s  {case.collection} {case.name}  {result.reason}",
          flush=True)


def main():
    a = arguments()
    os.environ.setdefault("TENON_CACHE", "off")
    os.environ.setdefault("TENON_THREADS", "1")
    whole = not a.patterns and a.runtime == "tenon"
    cases = [c for c in conformance.all_cases()
             if not a.patterns or any(re.search(p, c.name) for p in a.patterns)]
    results = conformance.run_all(cases, a.build, a.jobs, a.runtime, show)
    counts = collections.Counter(r.outcome for r in results)
    print(", ".join(f"{counts[o]} {o}" for o in conformance.OUTCOMES), f"of {len(cases)};",
          sum(r.controls for r in results), "corrupted expectations noticed")
    if not whole:
        return 0
    return settle(conformance_page.PAGE, conformance_page.page(cases, results), "what the cases give",
                  "run scripts/onnx-conformance.py", a.check)


if __name__ == "__main__":
    sys.exit(main())
