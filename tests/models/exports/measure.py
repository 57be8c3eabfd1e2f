#!/usr/bin/env python3
"""Measures the time from a model's file to its first result, and that of the same run repeated, of
Tenon and of ONNX Runtime, on one thread each; every first result has a process of its own.

    measure.py BUILD [NAME]…          with the packages of scripts/setup.sh --tests

Tenon's first result without and with kernels on disk: a fresh folder is TENON_CACHE, so the second
process compiles nothing. Milliseconds; the least of three processes where nothing is compiled.
"""
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
REPEATS = 20


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


def least_first(side, build, path, cache):
    return min(started(side, build, path, cache)["first"] for _ in range(3))


def row(build, path):
    with tempfile.TemporaryDirectory() as cache:
        cold, other = (started(side, build, path, cache) for side in ("tenon", "onnxruntime"))
        if not cold or not other:
            return f"{path.stem:24} not by {'Tenon' if not cold else 'ONNX Runtime'}"
        warm = least_first("tenon", build, path, cache)
        first = least_first("onnxruntime", build, path, cache)
    return (f"{path.stem:24}{cold['first']:10.1f}{warm:10.1f}{first:10.1f}"
            f"{cold['again']:10.3f}{other['again']:10.3f}")


def main():
    if sys.argv[1] == "--one":
        measure(sys.argv[2], sys.argv[3], Path(sys.argv[4]))
        return
    print(f"{'':24}{'first':>10}{'from disk':>10}{'ORT first':>10}{'again':>10}{'ORT again':>10}")
    for path in sorted((HERE / "models").glob("*.onnx")):
        if len(sys.argv) < 3 or path.stem in sys.argv[2:]:
            print(row(sys.argv[1], path), flush=True)


if __name__ == "__main__":
    main()
