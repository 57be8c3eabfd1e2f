#!/usr/bin/env python3
"""Measures the time from a model's file to its first result, and that of the same run repeated, of
Tenon and of ONNX Runtime, on one thread each; every first result has a process of its own.

    measure.py [--cache FOLDER] BUILD [NAME]…          with the packages of scripts/setup.sh --tests

Tenon's first result without and with kernels on disk, where the second process compiles nothing; the
kernels go to a fresh folder, or to FOLDER, which a second call finds filled. Milliseconds; where
nothing is compiled, the least of some processes that alternate between the two. The ratio is Tenon's
first result from disk to ONNX Runtime's: below 1 Tenon is faster. Geometric means stand at the end.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
REPEATS, PROCESSES = 20, 5


def repeated(run):
    """Returns the least time of repeated runs, in milliseconds."""
    least = float("inf")
    for _ in range(REPEATS):
        start = time.perf_counter()
        run()
        least = min(least, time.perf_counter() - start)
    return least * 1e3


def measure(side, build, path):
    """Loads and runs a model in this process; prints the times as JSON."""
    sys.path.insert(0, str(HERE.parent / "onnx"))
    import numpy as np
    if side == "tenon":
        from tenon import Library
        library = Library(build)
    else:
        import onnxruntime
    recorded = np.load(path.with_suffix(".npz"))
    given = {k[5:]: recorded[k] for k in recorded if k.startswith("0.in.")}
    start = time.perf_counter()
    if side == "tenon":
        binding = library.load(path).bind()
        run = lambda: binding.run(given)  # noqa: E731
    else:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = 1, 4
        session = onnxruntime.InferenceSession(str(path), options)
        run = lambda: session.run(None, given)  # noqa: E731
    run()
    first = (time.perf_counter() - start) * 1e3
    print(json.dumps({"first": first, "again": repeated(run)}))


def started(side, build, path, cache):
    """Measures in a new process; None: the model is refused."""
    r = subprocess.run([sys.executable, __file__, "--one", side, build, path], text=True,
                       capture_output=True, check=False,
                       env={**os.environ, "TENON_CACHE": str(cache), "TENON_THREADS": "1"})
    return json.loads(r.stdout) if r.returncode == 0 else None


def least_first(build, path, cache):
    """Returns the least times to the first result, of processes in turn: of Tenon, of the other."""
    sides = ("tenon", "onnxruntime")
    turns = [[started(side, build, path, cache)["first"] for side in sides]
             for _ in range(PROCESSES)]
    return map(min, zip(*turns))


def row(build, path, cache):
    """Prints the times of a model; returns the ratio of first results, or None."""
    cold, other = (started(side, build, path, cache) for side in ("tenon", "onnxruntime"))
    if not cold or not other:
        print(f"{path.stem:24} not by {'Tenon' if not cold else 'ONNX Runtime'}", flush=True)
        return None
    warm, first = least_first(build, path, cache)
    print(f"{path.stem:24}{cold['first']:10.1f}{warm:10.1f}{first:10.1f}{warm / first:8.2f}"
          f"{cold['again']:10.3f}{other['again']:10.3f}", flush=True)
    return warm / first


def table(build, paths, cache):
    print(f"{'':24}{'first':>10}{'from disk':>10}{'ORT first':>10}{'ratio':>8}"
          f"{'again':>10}{'ORT again':>10}")
    ratios = [r for r in (row(build, path, cache) for path in paths) if r]
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"{len(ratios)} models, ratio {mean:.2f} in the mean, {min(ratios):.2f} to "
              f"{max(ratios):.2f}; {sum(r > 1 for r in ratios)} above 1")


def main():
    if sys.argv[1:2] == ["--one"]:
        measure(sys.argv[2], sys.argv[3], Path(sys.argv[4]))
        return
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--cache")
    p.add_argument("build")
    p.add_argument("names", nargs="*")
    a = p.parse_args()
    paths = [x for x in sorted((HERE / "models").glob("*.onnx")) if not a.names or x.stem in a.names]
    with tempfile.TemporaryDirectory() as fresh:
        table(a.build, paths, a.cache or fresh)


if __name__ == "__main__":
    main()
