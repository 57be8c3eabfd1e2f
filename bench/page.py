#!/usr/bin/env python3
"""Writes the tables of a run of bench/run into docs/performance.md, between its two marks.

    build/bench/venv/bin/python bench/page.py [RESULTS.json]
"""
import argparse
import json
import sys
from pathlib import Path

import report
import suite

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "performance.md"
RESULTS = ROOT / "build" / "bench" / "results" / "results.json"
BEGIN, END = "<!-- figures: written by bench/page.py -->", "<!-- end of figures -->"


class Unfit(Exception):
    """Raised for a page without a place for figures, or results that are none to quote."""


def replaced(page, results):
    """Returns the page with the tables of these results in place of the figures that it has."""
    if results["format"] != suite.FORMAT:
        raise Unfit(f"the results have format {results['format']}, not {suite.FORMAT}")
    if not results["complete"]:
        raise Unfit("the run of the results was interrupted")
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise Unfit(f'the page has no place "{BEGIN} … {END}"')
    lines = [*report.about(results), "", *report.tables(results), *report.failures(results)]
    text = "\n".join(f"#{x}" if x.startswith("## ") else x for x in lines).rstrip()
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("results", nargs="?", type=Path, default=RESULTS, metavar="RESULTS.json",
                   help="default: build/bench/results/results.json")
    p.add_argument("--page", type=Path, default=PAGE, help="default: docs/performance.md")
    args = p.parse_args()
    try:
        results = json.loads(args.results.read_text())
        args.page.write_text(replaced(args.page.read_text(), results))
    except (OSError, ValueError, Unfit) as e:
        p.error(str(e))


if __name__ == "__main__":
    sys.exit(main())
