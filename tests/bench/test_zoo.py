#!/usr/bin/env python3
"""Tests the networks of the benchmark (bench/zoo), the list of families and the draw; and, with the
environment of `scripts/setup.sh --bench` if it is there, the export of two small networks.

    test_zoo.py BUILD
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
BENCH_PYTHON = ROOT / "build" / "bench" / "venv" / "bin" / "python"
sys.path.insert(0, str(ROOT / "bench"))
import draw  # noqa: E402
from checks import check, equal, failures, refused  # noqa: E402
from zoo import catalogue, families, files, ports  # noqa: E402

NAMES = """resnet50 resnext50_32x4d mobilenet_v2 mobilenet_v3_large squeezenet1_1 efficientnet_b0
shufflenet_v2_x1_0 densenet121 regnet_y_400mf googlenet inception_v3 convnext_tiny vit_b_16 swin_t
unet bert6_16 bert6_128 bert6_384 bert12_16 bert12_128 bert12_384 gpt2_step gru"""
LEAST_FAMILIES, DRAWN = 45, 6


def test_ports():
    image, text = ports.parse("f32[1,3,8,8]+i64[1,5]<100")
    equal("inputs are parsed", (image.name, image.shape, text.shape, text.below),
          ("x0", ("batch", 3, 8, 8), ("batch", 5), 100))
    for bad in ("f32", "f32[1,3]<9", "i64[1,3]", "f64[1]", "f32[1,x]"):
        refused(f"{bad} is refused", lambda bad=bad: ports.parse(bad), ValueError, bad)
    made, again, other = (ports.values((image, text), {"batch": 4}, seed) for seed in (1, 1, 2))
    equal("inputs have shapes", [x.shape for x in made.values()], [(4, 3, 8, 8), (4, 5)])
    equal("and types", [x.dtype for x in made.values()], [np.float32, np.int64])
    check("integers have their limit", 0 <= made["x1"].min() and made["x1"].max() < 100)
    check("inputs are seeded", all(np.array_equal(made[k], again[k]) for k in made)
          and not np.array_equal(made["x0"], other["x0"]))
    whole = ports.Port("m", ("batch", "length"), fill=1)
    equal("open sizes have axes", whole.open_axes(), {0: "batch", 1: "length"})
    equal("some are constant", whole.values({"batch": 1, "length": 2}, None).tolist(), [[1, 1]])


def test_catalogue():
    equal("the networks are those of the page", list(catalogue.NETWORKS), NAMES.split())
    for name, network in catalogue.NETWORKS.items():
        open_sizes = {s for p in network.ports for s in p.shape if isinstance(s, str)}
        equal(f"{name} has a value for each open size", set(network.sizes), open_sizes)
    for alias, name in catalogue.ALIASES.items():
        equal(f"{alias} is {name}", families.find(alias).name, name)
    bert = {files.path_of(catalogue.NETWORKS[f"bert6_{n}"], {}, files.OPEN) for n in (16, 128)}
    equal("networks that differ in open sizes have one file", len(bert), 1)
    known = {files.path_of(catalogue.NETWORKS["gru"], {"batch": n}, files.KNOWN) for n in (1, 8)}
    equal("known sizes have files of their own", len(known), 2)


def test_families():
    rows = families.rows()
    names = [row[0] for row in rows]
    check("there are families enough", len(names) >= LEAST_FAMILIES, len(names))
    equal("each has four columns", {len(row) for row in rows}, {4})
    equal("names are different", len(set(names)), len(names))
    equal("none is a network of the benchmark",
          set(names) & ({*catalogue.NETWORKS, *catalogue.ALIASES}), set())
    constructors = {row[2] for row in rows}
    equal("nor is a constructor", constructors & {*catalogue.NETWORKS}, set())
    check("names are words", all(re.fullmatch(r"[a-z0-9_]+", n) for n in names))
    for _, library, constructor, _ in rows:
        check(f"{constructor} is a call of a library", library in families.LIBRARIES
              and families.split_call(constructor)[0])
    equal("a call has settings", families.split_call("A.B(n=3, s='x', l=[1])"),
          ("A.B", {"n": 3, "s": "x", "l": [1]}))
    equal("so has a list with its inputs", len(families.families()), len(names))


def test_draw():
    names = draw.names(draw.ROOT / "bench" / "families.txt")
    equal("the draw is from the list", names, [row[0] for row in families.rows()])
    one, two = "0" * 40, "1" * 40
    drawn = draw.draw(names, one, DRAWN)
    equal("six are drawn", (len(drawn), len(set(drawn)), set(drawn) - set(names)), (6, 6, set()))
    equal("always the same", draw.draw(list(reversed(names)), one, DRAWN), drawn)
    check("another commit draws others", draw.draw(names, two, DRAWN) != drawn)
    equal("a larger draw begins alike", draw.draw(names, one, 9)[:DRAWN], drawn)
    equal("a known draw", draw.draw(["a", "b", "c"], "f" * 40, 3), KNOWN_DRAW)
    counts = {n: 0 for n in "abcd"}
    for i in range(400):
        counts[draw.draw("abcd", f"{i:040x}", 1)[0]] += 1
    check("all have the same chance", all(60 < n < 140 for n in counts.values()), counts)


KNOWN_DRAW = ["c", "a", "b"]  # as sha256sum gives it


def run_exporter(*args):
    return subprocess.run([str(BENCH_PYTHON), str(ROOT / "bench" / "export.py"), *args],
                          capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})


def test_export():
    """Exports with PyTorch, which checks operators and results itself."""
    found = BENCH_PYTHON.exists() and subprocess.run(
        [str(BENCH_PYTHON), "-c", "import onnxruntime, torch"], capture_output=True)
    if not found or found.returncode:
        print("skipped: export: no PyTorch and ONNX Runtime in build/bench/venv "
              "(scripts/setup.sh --bench)")
        return
    with tempfile.TemporaryDirectory() as folder:
        r = run_exporter("gru", "pointnet", "--check", "--folder", folder)
        check("networks are exported, right and sensitive", r.returncode == 0, r.stdout + r.stderr)
        first = r.stdout.split()
        again = run_exporter("gru", "--folder", folder).stdout.split()
        equal("a file that is there is found", again, first[:1])
        made = Path(first[0]).read_bytes()
        Path(first[0]).unlink()
        run_exporter("gru", "--folder", folder)
        check("a network is always the same", Path(first[0]).read_bytes() == made)
        r = run_exporter("gru", "--sizes", "open", "--batch", "2", "--check", "--folder", folder)
        check("sizes stay open", r.returncode == 0 and "gru-open" in r.stdout, r.stdout + r.stderr)
        equal("no file is left half-written", len(list(Path(folder).iterdir())), 3)
    equal("who is unknown is misuse", run_exporter("nobody").returncode, 2)


if __name__ == "__main__":
    test_ports()
    test_catalogue()
    test_families()
    test_draw()
    if os.environ.get("TENON_SANITIZE"):
        print("skipped: export: PyTorch is the same with sanitizers")
    else:
        test_export()
    print(f"{len(failures)} failed")
    sys.exit(bool(failures))
