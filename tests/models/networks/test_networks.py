#!/usr/bin/env python3
"""Tests whole networks by `tenon run --check`: the nine that the package onnx brings, with the
outputs it recorded; the same graphs with seeded weights, against ONNX Runtime; and a MobileNet at
five batch sizes with two sets of kernels. The check must fail where an operator is replaced by
another.

    test_networks.py BUILD [--opencl] [NETWORK]…

All of them if TENON_LONG is set; else two, where kernels are compiled as users have them. --opencl:
on the first OpenCL device, the nine or one of them; skipped without a device.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import helper, numpy_helper
except ImportError as missing:
    print(f"skipped: {missing} (scripts/setup.sh --tests installs it)")
    sys.exit(77)
from mobilenet import mobilenet
from seeded import quiet, seeded

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
NETWORKS = ["bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet",
            "squeezenet", "vgg19", "zfnet512"]
SWAPPED = ["squeezenet", "shufflenet"]
BATCHES = [1, 2, 3, 5, 8]
SEED = 7
BUILD = Path(sys.argv[1]).resolve()

failures = []


def check(what, holds, why=""):
    print("ok" if holds else "FAILED", what, "" if holds else why, flush=True)
    if not holds:
        failures.append(what)


def check_run(model, data, *args, **environment):
    return subprocess.run([BUILD / "tenon", "run", model, "--check", data, *map(str, args)],
                          capture_output=True, text=True, check=False,
                          env={**os.environ, **environment})


def write_set(folder, inputs, outputs):
    folder.mkdir(parents=True)
    for kind, arrays in (("input", inputs), ("output", outputs)):
        for i, x in enumerate(arrays):
            (folder / f"{kind}_{i}.pb").write_bytes(
                numpy_helper.from_array(x).SerializeToString())


def run_reference(path, inputs):
    return onnxruntime.InferenceSession(str(path), quiet()).run(None, inputs)


def tolerances(outputs):
    """Returns a network's tolerances, relative to each value and to the spread of values."""
    return "--rtol", 1e-3, "--atol", 1e-4 * min(float(y.std()) for y in outputs)


def input_of(model):
    weights = {t.name for t in model.graph.initializer}
    port, = [i for i in model.graph.input if i.name not in weights]
    return port.name, [d.dim_value for d in port.type.tensor_type.shape.dim]


def check_recorded(name, model, folder):
    """Runs a network on the input of the package's own runner."""
    _, shape = input_of(model)
    x = (np.arange(np.prod(shape)).reshape(shape) / np.prod(shape)).astype(np.float32)
    write_set(folder / "test_data_set_0", [x], [])
    shutil.copy(LIGHT / f"light_{name}_output_0.pb",
                folder / "test_data_set_0" / "output_0.pb")
    r = check_run(LIGHT / f"light_{name}.onnx", folder)
    check(f"{name}: recorded", r.returncode == 0 and "1 output as expected" in r.stdout, r)


def swapped(model):
    """Returns the model with its first pooling operator replaced by the other one; None: it has
    none."""
    other = {"MaxPool": "AveragePool", "AveragePool": "MaxPool"}
    copy = onnx.ModelProto.FromString(model.SerializeToString())
    node = next((n for n in copy.graph.node if n.op_type in other), None)
    if not node:
        return None
    node.op_type = other[node.op_type]
    kept = [a for a in node.attribute if a.name not in ("count_include_pad", "storage_order")]
    del node.attribute[:]
    node.attribute.extend(kept)
    return copy


def check_seeded(name, model, folder):
    port, shape = input_of(model)
    x = np.random.default_rng(SEED).standard_normal(shape).astype(np.float32)
    model = seeded(model, {port: x}, SEED)
    path, data = folder / "model.onnx", folder / "seeded"
    onnx.save(model, path)
    outputs = run_reference(path, {port: x})
    check(f"{name}: seeded outputs vary", all(0.1 < y.std() < 10 for y in outputs),
          [y.std() for y in outputs])
    write_set(data, [x], outputs)
    r = check_run(path, data, *tolerances(outputs))
    check(f"{name}: seeded", r.returncode == 0 and "1 output as expected" in r.stdout, r)
    r = check_run(path, data, *tolerances(outputs), TENON_MATH="fast")
    check(f"{name}: fast", r.returncode == 0 and "1 output as expected" in r.stdout, r)
    if name not in SWAPPED:
        return
    other = swapped(model)
    onnx.save(other, path)
    r = check_run(path, data, *tolerances(outputs))
    check(f"{name}: with another pooling operator, the check fails",
          r.returncode == 1 and re.search("output .* differ", r.stdout), r)


def check_batches(folder):
    model, given = mobilenet(SEED)
    path, data, counts = folder / "model.onnx", folder / "batches", []
    onnx.save(model, path)
    counter, calls = folder / "cc", folder / "calls"
    counter.write_text(f'#!/bin/sh\necho >> "{calls}"\nexec cc "$@"\n')
    counter.chmod(0o755)
    spread = []
    for i, batch in enumerate(BATCHES):
        x = given(batch)
        outputs = run_reference(path, {"x": x})
        spread += outputs
        write_set(data / f"test_data_set_{i}", [x], outputs)
    for sets in (data / "test_data_set_0", data):
        calls.write_text("")
        r = check_run(path, sets, *tolerances(spread), TENON_CC=str(counter),
                      TENON_CACHE=str(folder / f"cache-{len(counts)}"))
        lines = r.stdout.count("1 output as expected")
        check(f"mobilenet: {sets.name}", r.returncode == 0 and
              lines == (len(BATCHES) if sets == data else 1), r)
        counts.append(len(calls.read_text().splitlines()))
    check("mobilenet: an exact and a widened variant for all batches",
          0 < counts[0] < counts[1] <= 2 * counts[0], counts)


def is_as_users_have_it():
    cache = (BUILD / "CMakeCache.txt").read_text()
    release = re.search(r"^CMAKE_BUILD_TYPE:\w+=Release$", cache, re.M)
    return bool(release) and not os.environ.get("TENON_SANITIZE")


def has_opencl():
    os.environ["TENON_DEVICE"] = "OPENCL"
    done = subprocess.run([BUILD / "tenon", "bench", "add:4x4", "--repeat", "1"],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"SKIPPED: no OpenCL device to test (on Debian: apt install pocl-opencl-icd "
              f"ocl-icd-libopencl1): {done.stderr.strip()}")
    return not done.returncode


def main(wanted):
    on_opencl = "--opencl" in wanted
    wanted = [name for name in wanted if name != "--opencl"]
    everything = NETWORKS if on_opencl else NETWORKS + ["mobilenet"]
    usual = ["squeezenet"] if on_opencl else ["squeezenet", "mobilenet"]
    if not (is_as_users_have_it() or wanted or os.environ.get("TENON_LONG")):
        print("skipped in this build, unless TENON_LONG is set")
        return 77
    if on_opencl and not has_opencl():
        return 77
    names = wanted or (everything if os.environ.get("TENON_LONG") else usual)
    left = sorted(set(everything) - set(names))
    if left and not wanted:
        print(f"left out in this build, unless TENON_LONG is set: {', '.join(left)}")
    for name in names:
        with tempfile.TemporaryDirectory(prefix="tenon-networks-") as folder:
            folder = Path(folder)
            if name == "mobilenet":
                check_batches(folder)
                continue
            model = onnx.load(LIGHT / f"light_{name}.onnx")
            check_recorded(name, model, folder / "recorded")
            check_seeded(name, model, folder)
    return bool(failures)


sys.exit(main(sys.argv[2:]))
