#!/usr/bin/env python3
"""Tests language networks, a transformer encoder and a recurrent one, against ONNX Runtime. Batch
and length are dynamic: each is compiled once, for all sizes, where that is asked for, and else at
most three times.

    test_language.py BUILD
"""

import os
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tools")]
try:
    import numpy as np
    import onnx
    import onnxruntime
except ImportError as missing:
    print(f"skipped: {missing} (scripts/setup.sh --tests installs it)")
    sys.exit(77)
from checks import Checks
from language_networks import encoder, recurrent
from tenon import Library, Refused

RTOL, ATOL = 1e-3, 1e-4
ONE = 3  # TN_VARIANTS_ONE
WORDS, LONGEST, STEPS, INPUTS = 300, 48, 6, 24
check = Checks()


def counting_compiler(folder):
    """Writes a compiler that counts its calls."""
    script, calls = folder / "cc", folder / "calls"
    calls.write_text("")
    compiler = os.environ.get("TENON_CC") or os.environ.get("CC") or "cc"
    script.write_text(f'#!/bin/sh\necho >> "{calls}"\nexec {compiler} "$@"\n')
    script.chmod(0o755)
    os.environ["TENON_CC"], os.environ["TENON_CACHE"] = str(script), str(folder / "cache")
    return lambda: calls.read_text().count("\n")


def sentences(rng, batch, length):
    """Makes token sequences that end in padding."""
    lengths = rng.integers(1, length + 1, batch)
    return {"input_ids": rng.integers(0, WORDS, (batch, length)),
            "attention_mask": (np.arange(length) < lengths[:, None]).astype(np.int64),
            "token_type_ids": rng.integers(0, 2, (batch, length))}


def signals(rng, batch, steps=STEPS):
    return {"x": rng.standard_normal((batch, steps, INPUTS)).astype(np.float32)}


def of_any_length(model):
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "steps"
    return model


def session_of(model):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options)


def differs(actual, expected):
    """Returns why results differ; None if they do not."""
    if actual.shape != expected.shape:
        return f"its shape is {actual.shape}, not {expected.shape}"
    error = np.abs(actual - expected) - RTOL * np.abs(expected) - ATOL * expected.std()
    return None if (error <= 0).all() else f"off by {np.abs(actual - expected).max()}"


def difference(binding, session, given):
    actual = binding.run(given)
    names = [o.name for o in session.get_outputs()]
    whys = [differs(actual[n], e) for n, e in zip(names, session.run(names, given))]
    return next((w for w in whys if w), None)


def compare(library, calls, label, model, known, given):
    """Runs all of `given` with one set of kernels; then by the usual policy."""
    session = session_of(model)
    loaded = library.load(model.SerializeToString(), known, ONE)
    binding = loaded.bind()
    before = calls()
    check(f"{label}: compiled by the compiler that counts", before > 0)
    for feeds in given:
        why = difference(binding, session, feeds)
        check(f"{label} {[x.shape for x in feeds.values()]}", why is None, why)
    check(f"{label}: compiled once", calls() == before, f"{calls() - before} more calls")
    binding.free()
    loaded.free()
    loaded = library.load(model.SerializeToString(), known)
    binding, counts = loaded.bind(), [calls()]
    for feeds in given:
        why = difference(binding, session, feeds)
        check(f"{label}, variants {[x.shape for x in feeds.values()]}", why is None, why)
        counts.append(calls())
    check(f"{label}: the first sizes, others, and no more", counts[3] == counts[-1], counts)
    binding.free()
    loaded.free()


def with_a_weight_moved(model):
    """Returns a model with the elements of one weight shifted by one."""
    other = onnx.ModelProto.FromString(model.SerializeToString())
    weight = next(w for w in other.graph.initializer if len(w.dims) > 1 and w.data_type == 1)
    weight.raw_data = weight.raw_data[4:] + weight.raw_data[:4]
    return other


def check_sensitivity(library, label, model, known, feeds):
    """Checks that the comparison fails for a changed network."""
    binding = library.load(with_a_weight_moved(model).SerializeToString(), known).bind()
    check(f"{label}: a weight moved", difference(binding, session_of(model), feeds))
    binding.free()


def check_longest(library):
    """Checks that the table of positions bounds the length of sentences."""
    model, rng = encoder(layers=1), np.random.default_rng(4)
    loaded = library.load(model.SerializeToString())
    binding = loaded.bind()
    why = difference(binding, session_of(model), sentences(rng, 2, LONGEST))
    check("the longest sentences", why is None, why)
    try:
        binding.run(sentences(rng, 2, LONGEST + 1))
        check("longer sentences", False, "ran")
    except Refused as e:
        check("longer sentences", e.status == "ERR_SHAPE" and str(LONGEST + 1) in e.message, e)
    binding.free()
    loaded.free()


def check_compile_time(library, calls):
    """Checks that the number of kernels does not depend on the length."""
    counts = []
    for steps in (3, 300):
        model, before = recurrent(), calls()
        model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = steps
        library.load(model.SerializeToString(), (), ONE).bind().free()
        counts.append(calls() - before)
    check("kernels of a long sequence", counts[0] == counts[1] and counts[0] > 0, counts)


def main(build):
    rng = np.random.default_rng(5)
    with tempfile.TemporaryDirectory() as folder:
        calls = counting_compiler(Path(folder))
        library = Library(build)
        known = [("length", (1, LONGEST, 16))]
        shapes = ((1, 1), (2, 7), (3, LONGEST), (8, 16), (5, 33))
        given = [sentences(rng, *s) for s in shapes]
        compare(library, calls, "encoder", encoder(), known, given)
        check_sensitivity(library, "encoder", encoder(), known, given[1])
        given = [signals(rng, n) for n in (1, 2, 5, 16, 33)]
        compare(library, calls, "recurrent", recurrent(), (), given)
        check_sensitivity(library, "recurrent", recurrent(), (), given[1])
        given = [signals(rng, *s) for s in ((2, 7), (1, 1), (5, 100), (16, 2), (3, 33))]
        compare(library, calls, "any length", of_any_length(recurrent()), (), given)
        check_longest(library)
        check_compile_time(library, calls)
        check("tn_close", library.close() == 0)
    return check.end(40)


sys.exit(main(sys.argv[1]))
