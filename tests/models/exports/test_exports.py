#!/usr/bin/env python3
"""Tests models as exporters write them (models/, by export.py): each runs with the inputs of three
sets of sizes, and shapes, types and values of its outputs are those that ONNX Runtime computed.
Models that need what is not there are expected to fail with a message: FAILING. One that does not
fail any more fails the test, so that its line goes.

    test_exports.py BUILD [NAME]…
"""
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "onnx"))
try:
    import numpy as np
    import onnx  # noqa: binding needs its types
except ImportError as missing:
    print(f"skipped: {missing} (scripts/setup.sh --tests installs it)")
    sys.exit(77)
from checks import Checks
from tenon import Library, Refused

STEADY = 1  # of tn_variants: nothing is compiled in the background

# A part of the message, and the reason.
FAILING = {}


def sets(recorded):
    """Yields (inputs, outputs) of each set."""
    for i in range(3):
        given, expected = ({k.split(".", 2)[2]: recorded[k] for k in recorded
                            if k.startswith(f"{i}.{kind}.")} for kind in ("in", "out"))
        yield given, {k: v for k, v in expected.items() if not k.endswith(".keys")}


def difference(y, expected, tolerance):
    """Says how an output differs; None: it does not."""
    if expected.dtype.kind == "U":
        y = y.astype(str)
    elif y.dtype != expected.dtype:
        return f"type {y.dtype}, not {expected.dtype}"
    if y.shape != expected.shape:
        return f"shape {y.shape}, not {expected.shape}"
    if expected.dtype.kind == "f":
        scale = np.abs(expected).max(initial=0)
        far = ~np.isclose(y, expected, rtol=tolerance, atol=tolerance * scale, equal_nan=True)
    else:
        far = y != expected
    if not far.any():
        return None
    i = tuple(np.argwhere(far)[0])
    return f"{far.sum()} of {y.size} elements differ: at {list(map(int, i))} {y[i]}, not {expected[i]}"


def run(library, path):
    """Runs all sets with one binding; returns the first difference, or None."""
    recorded = np.load(path.with_suffix(".npz"))
    model = library.load(path, variants=STEADY)
    try:
        binding = model.bind()
        try:
            for i, (given, expected) in enumerate(sets(recorded)):
                outputs = binding.run(given)
                if list(outputs) != list(expected):
                    return f"outputs {list(outputs)}, not {list(expected)}"
                for name, y in expected.items():
                    told = difference(outputs[name], y, float(recorded["tolerance"]))
                    if told:
                        return f"set {i}, output {name}: {told}"
        finally:
            binding.free()
    finally:
        model.free()
    return None


def check_model(library, path, check):
    name, told = path.stem, None
    try:
        wrong = run(library, path)
    except (Refused, KeyError) as e:
        wrong, told = None, str(e)
    if name not in FAILING:
        check(name, not wrong and not told, wrong or f"refused: {told}")
    elif told:
        check(f"{name} (expected to fail)", FAILING[name][0] in told, f"another message: {told}")
    else:
        check(f"{name} (expected to fail)", False, wrong or "it works: take its line out of FAILING")


def main():
    check = Checks()
    library = Library(sys.argv[1])
    paths = sorted((HERE / "models").glob("*.onnx"))
    for unknown in FAILING.keys() - {p.stem for p in paths}:
        check(unknown, False, "FAILING names no model")
    for path in paths:
        if len(sys.argv) < 3 or path.stem in sys.argv[2:]:
            check_model(library, path, check)
            print(path.stem, flush=True)
    check("tn_close", library.close() == 0)
    return check.end(len(paths) if len(sys.argv) < 3 else 2)


if __name__ == "__main__":
    sys.exit(main())
