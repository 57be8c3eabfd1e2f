#!/usr/bin/env python3
"""Tests the parts of the benchmark (bench/): statistics, workloads, checks of results, processes of
peers, summaries, the report and the page of figures.

    test_measure.py BUILD
"""

import json
import math
import os
import signal
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import main  # noqa: E402
import measure  # noqa: E402
import page  # noqa: E402
import peers  # noqa: E402
import processes  # noqa: E402
import report  # noqa: E402
import suite  # noqa: E402
import worker  # noqa: E402
import workloads  # noqa: E402
from checks import check, equal, failures, refused  # noqa: E402


def test_statistics():
    equal("quartiles of one value", measure.quartiles([7.0]), (7.0, 7.0, 7.0))
    equal("quartiles of five", measure.quartiles([5, 1, 4, 2, 3]), (2.0, 3.0, 4.0))
    equal("quartiles of two", measure.quartiles([1, 3]), (1.5, 2.0, 2.5))
    equal("ratios are taken round by round", measure.ratio([2, 9, 4], [1, 3, 2]), (2.0, 2.0, 2.5))
    refused("rounds that do not match", lambda: measure.ratio([1], [1, 2]), ValueError)
    equal("who begins changes", ["".join(measure.order(list("abc"), i)) for i in range(4)],
          ["abc", "bca", "cab", "abc"])
    seen = []
    taken = measure.take_rounds(["a", "b"], 3, lambda side: seen.append(side) or len(seen))
    equal("each has a turn a round", ("".join(seen), taken),
          ("abbaab", {"a": [1, 4, 5], "b": [2, 3, 6]}))
    told = []
    measure.take_rounds(["a"], 2, lambda side: None, told.append)
    equal("rounds are told of", told, [0, 1])
    equal("a geometric mean is taken round by round",
          tuple(round(x, 9) for x in measure.mean_ratio([[1, 2, 4], [4, 2, 16]])), (2, 2, 5))


def test_loop():
    class Clock:
        now = 0

        def perf_counter_ns(self):
            return self.now

    real, worker.time = worker.time, Clock()
    try:
        for ns, times in ((1, 10), (7, 3), (60, 2), (1000, 1)):
            def run(ns=ns):
                worker.time.now += ns
            equal(f"of runs of {ns} there are", worker.loop(run, 10), [ns] * times)
    finally:
        worker.time = real


def test_workloads():
    w = workloads.find("conv:2,3,8,9,5,3,2,1")
    equal("a convolution's result", w.output, (2, 5, 4, 5))
    equal("its operations", w.operations, 2 * 2 * 5 * 4 * 5 * 3 * 9)
    equal("of what computes no bytes count", w.bytes, 0)
    w = workloads.find("add:6x7")
    equal("an addition's bytes", (w.operations, w.bytes), (0, 4 * 3 * 42))
    for bad in ("matmul:3x4", "matmul:3x4x5x6", "matmul:3x4x5 ", "softmax:0x4", "add:3,4",
                "conv:1,1,2,2,1,3,1,0", "copy:3"):
        refused(f"{bad} is refused", lambda bad=bad: workloads.find(bad), workloads.Unknown,
                bad.partition(":")[0] + ":")
    refused("so is what nobody knows", lambda: workloads.find("matmull:3x4x5"), workloads.Unknown,
            "no workload")
    equal("keys are different", len({w.key for w in workloads.LIST}), len(workloads.LIST))
    for w in workloads.LIST:
        for bar in w.bars:
            check(f"a bar of {w.key} is against somebody",
                  bar.is_share or w.kind in peers.BY_NAME[bar.against].runs)


def test_references():
    """NumPy references equal ONNX Runtime's results of the nodes."""
    import onnxruntime
    small = {"matmul": "5x6x7", "conv": "2,3,8,9,5,3,2,1", "attention": "2x5x4", "softmax": "3x9",
             "layernorm": "4x33", "gelu": "3x50", "add": "3x4", "copy": "64", "cumsum": "50", "sort": "40",
             "topk": "60x7", "scatter": "20x3x9", "nonzero": "50x13"}
    equal("all kinds are tried", set(small), set(workloads.KINDS))
    with tempfile.TemporaryDirectory() as folder:
        for kind, numbers in small.items():
            w = workloads.find(f"{kind}:{numbers}")
            path, inputs = w.make(folder)
            session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
            got = session.run(None, inputs)
            error = suite.differences(got, w.reference(inputs))
            check(f"{w.key} is the same twice", error < w.tolerance, f"{error}")
            equal(f"the shape of {w.key}", got[0].shape, w.output)


def test_networks():
    w = workloads.find("mobilenetv2")
    equal("short names of before are known", (w.key, workloads.find("bert6").key),
          ("mobilenet_v2", "bert6_128"))
    equal("a network of the list keeps its bars", len(w.bars), 1)
    equal("families are networks too", workloads.find("pointnet").kind, "network")
    made = workloads.cases([workloads.find("add:2x2"), w], (1, 8), ("known", "open"))
    equal("networks have cases", [(c.key, c.batch, c.sizes, len(c.bars)) for c in made],
          [("add:2x2", None, None, 0), ("mobilenet_v2", 1, "known", 1),
           ("mobilenet_v2", 8, "known", 0), ("mobilenet_v2", 1, "open", 0),
           ("mobilenet_v2", 8, "open", 0)])
    text = workloads.find("bert6_16")
    equal("open sizes have bounds", [replace(text, batch=1, sizes=s).bounds for s in
                                     ("known", "open")], [{}, {"length": (1, 512)}])
    real = sys.executable
    try:
        sys.executable = "/bin/false"
        refused("a network that is not exported is unavailable",
                lambda: replace(w, batch=4095, sizes="known").make("."), workloads.Unavailable,
                "exported")
    finally:
        sys.executable = real
    dim = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.INT64, ["n", 3])
    graph = onnx.helper.make_graph([], "open", [dim], [])
    made = workloads.random_inputs(onnx.helper.make_model(graph), np.random.default_rng(0))
    equal("open sizes are 1", (made["x"].shape, made["x"].dtype), ((1, 3), np.int64))


def test_difference():
    a = np.array([1.0, 2.0, 3.0])
    equal("equal arrays", suite.difference(a, a.copy()), 0.0)
    check("in deviations", math.isclose(suite.difference(a + [0, 0.1, 0], a), 0.1 / a.std()))
    equal("other shapes", suite.difference(a, a[None]), math.inf)
    equal("a NaN", suite.difference(np.array([1, np.nan, 3]), a), math.inf)
    equal("constants", suite.difference(np.full(3, 2.0), np.full(3, 1.0)), 1.0)
    equal("the worst of several",
          suite.differences([a, np.full(3, 2.0)], [a, np.full(3, 1.0)]), 1.0)
    equal("a result that is missing", suite.differences([a], [a, a]), math.inf)


class Told:
    """A fake worker with given answers."""

    def __init__(self, peer, ms):
        self.peer, self.ms, self.dead = peer, ms, ""

    def call(self, name, *args):
        if self.ms is None:
            raise processes.Failed("it cannot")
        if name == "prepare":
            np.savez(args[2], self.result)
            return True
        return [1e6 * self.ms, 2e6 * self.ms] if name == "turn" else None


def told(key, bars=(), isa="native", case=None, **ms):
    """Makes a run of a workload whose peers take so many milliseconds; `case` is a network's batch
    and kind of sizes."""
    batch, sizes = case or (None, None)
    workload = replace(workloads.find(key), bars=bars, batch=batch, sizes=sizes)
    options = suite.Options(Path("."), (workload,), tuple(p for p in peers.PEERS if p.name in ms),
                            rounds=3)
    workers = {name: Told(peers.BY_NAME[name], t) for name, t in ms.items()}
    return suite.Run(workload, 1, isa, workers, options)


def test_run():
    bars = (workloads.Bar("pytorch", 1.0), workloads.Bar("copy", 0.9), workloads.Bar("peak", 0.5),
            workloads.Bar("onnxruntime", 3.0), workloads.Bar("memcpy", 1, threads=2))
    run = told("add:512x512", bars, tenon=2, pytorch=1, onnxruntime=1, memcpy=1.9, stream=1.8)
    run.take()
    run.compare()
    entry = run.entry(None)
    equal("a time is the best", entry["peers"]["tenon"]["best_ms"], 2.0)
    equal("a ratio", entry["peers"]["pytorch"]["ratio"], {"median": 2, "low": 2, "high": 2})
    got = {b["against"]: (b["value"], b["met"]) for b in entry["bars"]}
    equal("bars", got, {"pytorch": (2.0, False), "copy": (0.9, True), "peak": (None, False),
                        "onnxruntime": (2.0, True)})
    run = told("add:512x512", bars, "v3", tenon=2, pytorch=1, onnxruntime=1)
    run.take()
    run.compare()
    bar = workloads.Bar("tinygrad", 2.0)
    equal("nor has who was not asked", told("add:512x512", (bar,), tenon=2).entry(None)["bars"], [])
    equal("who is not restricted has no bar", [b["against"] for b in run.entry(None)["bars"]],
          ["pytorch", "peak"])


def test_wrong_results():
    run = told("add:2x2", tenon=1, pytorch=1, onnxruntime=1)
    right = np.ones((2, 2))
    for name, result in (("tenon", right), ("pytorch", right * 1.01),
                         ("onnxruntime", right * np.nan)):
        run.check(name, [result], "NumPy", [right])
    run.take()
    run.compare()
    entry = run.entry(None)
    check("who computes something else is no peer", "NumPy" in entry["peers"]["pytorch"]["failed"]
          and "ratio" not in entry["peers"]["pytorch"])
    check("nor who gives NaN", "failed" in entry["peers"]["onnxruntime"])
    check("the JSON is JSON", json.dumps(entry, allow_nan=False))
    with tempfile.TemporaryDirectory() as folder:
        run = told(str(workloads.find("add:2x2").make(folder)[0]), tenon=1, onnxruntime=1)
        for name, result in (("tenon", right * 2), ("onnxruntime", right)):
            run.workers[name].result = result
        run.prepare(folder)
    check("a network's judge is another peer",
          "ONNX Runtime" in run.results["tenon"].get("failed", "")
          and "failed" not in run.results["onnxruntime"])
    run = told("add:2x2", tenon=1, pytorch=None)
    run.take()
    check("who fails in its turn says why", run.results["pytorch"] == {"failed": "it cannot"})


def networks_told():
    """Returns entries of three networks: compared, failed, and not to be had."""
    entries = []
    for key, times in (("gru", {"tenon": 2, "onnxruntime": 1, "openvino": 4}),
                       ("unet", {"tenon": None, "onnxruntime": 1, "openvino": 1}),
                       ("resnet50", {"tenon": 1})):
        run = told(key, case=(8, "open"), **times)
        run.take()
        run.compare()
        entries.append(run.entry(None))
    run = told("swin_t", case=(8, "open"), tenon=1)
    run.left_out, run.results = "no exporter", {}
    return [*entries, run.entry(None)]


def test_summaries():
    entries = networks_told()
    equal("the better rival is the fastest", entries[0]["best_rival"],
          {"peer": "onnxruntime", "ratio": {"median": 2, "low": 2, "high": 2}})
    (s,) = suite.summaries(entries)
    equal("a summary says of what it is",
          [s[k] for k in ("threads", "isa", "batch", "sizes", "networks", "compared", "faster")],
          [1, "native", 8, "open", 4, 1, 0])
    equal("its mean", {k: round(v, 9) for k, v in s["ratio"].items()},
          {"median": 2, "low": 2, "high": 2})
    equal("who is not in it", (s["failed"], s["left_out"], s["without_rival"]),
          (["unet"], ["swin_t"], ["resnet50"]))
    run = told("gru", isa="v3", case=(1, "known"), tenon=2, onnxruntime=1, openvino=4)
    run.take()
    run.compare()
    equal("a rival is restricted like Tenon", run.entry(None)["best_rival"]["peer"], "openvino")
    equal("work on arrays has no rival",
          told("add:2x2", tenon=1, onnxruntime=1).entry(None)["best_rival"], None)
    equal("of nothing there is no summary", suite.summaries([]), [])


def results_told(entries):
    """Returns results as bench/run writes them."""
    text = {"peers": {n: {"title": peers.BY_NAME[n].title, "version": "1", "restricted": True}
                      for n in ("tenon", "pytorch", "onnxruntime", "openvino")},
            "isas": peers.ISAS, "rounds": 3, "turn_ms": 1, "date": "2000-01-01", "complete": True,
            "results": entries, "summaries": suite.summaries(entries), "format": suite.FORMAT,
            "machine": {"processor": "P", "features": ["avx"], "cores": 2, "system": "S"}}
    text["peers"]["tinygrad"] = {"title": "tinygrad", "absent": "No module"}
    return text


def test_report():
    run = told("add:512x512", (workloads.Bar("pytorch", 1.0),), tenon=2, pytorch=1,
               onnxruntime=None)
    run.take()
    run.compare()
    text = results_told([run.entry(None)])
    whole = report.markdown(text)
    for part in ("| add:512x512 | 2 ms | 1.57 GB/s | failed | 2.00 (2.00–2.00) |",
                 "≤ 1 × of PyTorch's time | 2.00 × | **no** |", "tinygrad is absent: No module",
                 "ONNX Runtime, add:512x512: it cannot"):
        check(f"the page has {part}", part in whole, whole)
    equal("Tenon did not fail", main.failed(text), False)
    text["results"][0]["peers"]["tenon"]["failed"] = "so"
    equal("Tenon did fail", main.failed(text), True)
    check("that it was interrupted is said", "interrupted" not in whole
          and "interrupted" in report.markdown(text | {"complete": False}))


def test_report_of_networks():
    text = results_told(networks_told())
    whole = report.markdown(text)
    for part in ("networks: batch 8, sizes open",
                 "| GRU, 64 steps | 2 ms | 2.00 (2.00–2.00) | 2.00 (2.00–2.00) | 0.50 (0.50",
                 "| U-Net, 256 × 256 | failed |  | 1 ms | 1 ms |", "Swin-T (left out)",
                 "| geometric mean of 1 of 4 |  | **2.00 (2.00–2.00)** |",
                 "| 1 | native | 8 | open | 2.00 (2.00–2.00) | 0 of 1 | 1 of 4 | U-Net, 256 ×",
                 "- Swin-T (batch 8, sizes open): no exporter",
                 "- Tenon, U-Net, 256 × 256 (batch 8, sizes open): it cannot"):
        check(f"the page has {part}", part in whole, whole)
    equal("a failure at a network counts", main.failed(text), True)
    check("the JSON is JSON", json.dumps(text, allow_nan=False))
    try:
        import charts
    except ImportError as e:
        print(f"skipped: charts: {e}")
        return
    with tempfile.TemporaryDirectory() as folder:
        drawn = charts.draw(text, Path(folder))
        names = [name for several in drawn.values() for name in several]
        check("charts are drawn", names and all((Path(folder) / n).stat().st_size for n in names),
              names)
        check("and shown", all(f"]({n})" in report.markdown(text, drawn) for n in names))


def test_page():
    text = results_told(networks_told())
    before = f"# A\n\n{page.BEGIN}\nold\n{page.END}\n\nafter\n"
    after = page.replaced(before, text)
    check("the page's figures are replaced", "old" not in after and after.startswith("# A\n")
          and after.endswith(f"{page.END}\n\nafter\n") and "**2.00 (2.00–2.00)**" in after, after)
    check("its sections are below the page's", "\n### Networks together\n" in after
          and "\n## " not in after)
    equal("twice is as once", page.replaced(after, text), after)
    refused("a page without a place", lambda: page.replaced("# A\n", text), page.Unfit, "place")
    refused("an interrupted run", lambda: page.replaced(before, text | {"complete": False}),
            page.Unfit, "interrupted")
    refused("results of another format", lambda: page.replaced(before, text | {"format": 1}),
            page.Unfit, "format")
    check("the page of the documentation has a place", page.BEGIN in page.PAGE.read_text()
          and page.END in page.PAGE.read_text())


class Remade(suite.Suite):
    """A suite whose workloads take no time; the third is interrupted."""

    def measure_one(self, workload, threads, isa, workers):
        if len(self.runs) == 2:
            raise KeyboardInterrupt
        run = told(workload.key, tenon=1)
        run.take()
        run.compare()
        self.runs.append(run)
        self.keep(self.results())


def test_interruption():
    kept = []
    chosen = tuple(map(workloads.find, ("add:2x2", "add:3x3", "add:4x4")))
    options = suite.Options(Path("."), chosen, (), (1,))
    results = Remade(options, lambda text, detail: None, kept.append).measure_all()
    equal("what is done is kept", [len(r["results"]) for r in kept], [1, 2])
    equal("and returned", ([e["workload"] for e in results["results"]], results["complete"]),
          (["add:2x2", "add:3x3"], False))
    options = replace(options, workloads=options.workloads[:2])
    check("a whole one is complete",
          Remade(options, lambda text, detail: None).measure_all()["complete"])


def test_revival(build):
    """A process that died is started again for the next workload."""
    memcpy, workers, versions, said = peers.BY_NAME["memcpy"], {}, {}, []
    options = suite.Options(build, (), (memcpy,), (1,))
    suite.start_workers(options, 1, "native", workers, versions, said.append)
    first = workers["memcpy"].process
    suite.start_workers(options, 1, "native", workers, versions, said.append)
    equal("a live one stays", workers["memcpy"].process, first)
    os.kill(first, signal.SIGKILL)
    refused("a dead one fails", lambda: workers["memcpy"].call("version"), processes.Failed, "died")
    suite.start_workers(options, 1, "native", workers, versions, said.append)
    check("and is replaced", workers["memcpy"].call("version"))
    check("by another one", workers["memcpy"].process != first)
    equal("this is told", said, ["starting memcpy", "starting memcpy again"])
    workers["memcpy"].close()


def stops(pid):
    """True if a process is stopped within a short time."""
    for _ in range(200):
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T":
            return True
        time.sleep(0.05)
    return False


def test_processes(build):
    memcpy = peers.BY_NAME["memcpy"]
    os.environ["ATEN_CPU_CAPABILITY"] = "default"
    w = processes.Worker(memcpy, 1, "native", build)
    equal("the environment is as it was", os.environ.pop("ATEN_CPU_CAPABILITY"), "default")
    environ = Path(f"/proc/{w.process}/environ").read_bytes()
    check("its own is for all vectors", b"ATEN_CPU_CAPABILITY" not in environ)
    check("it keeps to its cores", len(os.sched_getaffinity(w.process)) == 1)
    w.call("version")
    check("between its turns it is stopped", stops(w.process))
    refused("what it cannot do it says", lambda: w.call("turn", 1), processes.Failed, "KeyError")
    os.kill(w.process, signal.SIGKILL)
    refused("that it died is told", lambda: w.call("version"), processes.Failed, "died")
    refused("for good", lambda: w.call("version"), processes.Failed, "died")
    w.close()
    w = processes.Worker(memcpy, 1, "native", build)
    refused("that it takes too long is told", lambda: w.call("version", limit=0), processes.Failed,
            "more than 0 s")
    w.close()
    check("and it ends", not Path(f"/proc/{w.process}").exists())
    w = processes.Worker(replace(memcpy, side="nobody"), 1, "v3", build)
    refused("so is that it is absent", lambda: w.call("version"), processes.Failed, "nobody")
    w.close()
    check("a stopped one ends too", not Path(f"/proc/{w.process}").exists())


def run_all(build):
    test_statistics()
    test_loop()
    test_workloads()
    test_references()
    test_networks()
    test_difference()
    test_run()
    test_wrong_results()
    test_summaries()
    test_report()
    test_report_of_networks()
    test_page()
    test_interruption()
    test_processes(build)
    test_revival(build)
    print(f"{len(failures)} failed")
    sys.exit(bool(failures))


if __name__ == "__main__":
    if os.environ.get("TENON_SANITIZE"):
        print("skipped: a library with sanitizers does not load into Python")
        sys.exit(77)
    run_all(sys.argv[1])
