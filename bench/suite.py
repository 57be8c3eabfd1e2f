"""Measures workloads on peers and returns the results as the dictionary that is written as JSON."""
import datetime
import os
import platform
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import measure
from peers import BY_NAME, COPIES, ISAS, PEERS, TENON, Failed, Worker

FORMAT = 1  # version of the JSON, increased when a key changes its meaning


@dataclass(frozen=True)
class Options:
    build: Path
    workloads: tuple
    peers: tuple = PEERS
    threads: tuple = (1, 2)
    isas: tuple = ("native",)
    rounds: int = 15
    turn_ms: float = 20.0


# The machine.

def cpu_facts():
    text = Path("/proc/cpuinfo").read_text()

    def first(field):
        found = re.search(rf"^{field}\s*:\s*(.*)$", text, re.M)
        return found[1] if found else None

    known = ("sse4_2", "avx", "avx2", "fma", "avx512f", "avx512bw", "avx512_vnni", "avx512_bf16",
             "amx_tile")
    flags = set((first("flags") or "").split())
    return first("model name") or platform.machine(), [f for f in known if f in flags]


def caches():
    """Returns {"L2": bytes, …} of the first processor."""
    found = {}
    for index in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        if (index / "type").read_text().strip() != "Instruction":
            size = (index / "size").read_text().strip()
            found["L" + (index / "level").read_text().strip()] = int(size.rstrip("K")) * 1024
    return dict(sorted(found.items()))


def machine():
    processor, features = cpu_facts()
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {"processor": processor, "features": features, "cores": os.cpu_count(),
            "caches": caches(), "memory_bytes": pages * size,
            "system": f"{platform.system()} {platform.release()}"}


# One workload.

def difference(actual, expected):
    """Returns the largest difference in standard deviations of the expected result; infinite if
    shapes differ or only one has a NaN."""
    if actual.shape != expected.shape:
        return float("inf")
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    if np.array_equal(a, e, equal_nan=True):
        return 0.0
    apart = np.abs(a - e).max()
    scale = e.std() or np.abs(e).max() or 1.0
    return float(apart / scale) if np.isfinite(apart) else float("inf")


class Run:
    """A workload with a number of threads and an instruction set."""

    def __init__(self, workload, threads, isa, workers, options):
        self.workload, self.threads, self.isa, self.options = workload, threads, isa, options
        self.workers = {name: w for name, w in workers.items()
                        if workload.kind in w.peer.runs and (w.peer.of_its_own or workload.bytes)}
        self.results = {name: {} for name in self.workers}
        self.folder = "/nowhere"  # folder of the workload's files

    def fail(self, name, why):
        self.results[name]["failed"] = str(why).replace(f"{self.folder}/", "")

    def good(self):
        return [name for name, r in self.results.items() if "failed" not in r]

    def attempt(self, name, *call):
        """Returns a peer's answer; None if it fails, which is recorded."""
        try:
            return self.workers[name].call(*call)
        except Failed as e:
            return self.fail(name, e)

    def prepare(self, folder):
        """Prepares all peers and checks their results. If there is no NumPy reference, the first
        peer is the reference."""
        w, self.folder = self.workload, folder
        model, inputs = w.make(folder)
        paths = {name: f"{folder}/{i}.npy" for i, name in enumerate(inputs)}
        for name, path in paths.items():
            np.save(path, inputs[name])
        task = {"kind": w.kind, "numbers": w.numbers, "output": w.output, "bytes": w.bytes,
                "model": str(model)}
        judge, expected, result = "NumPy", w.reference(inputs), f"{folder}/result.npy"
        for name in sorted(self.workers, key=lambda name: name == TENON.name):  # last of all
            if not self.attempt(name, "prepare", task, paths, result):
                continue
            array = np.load(result)
            if expected is None:
                judge, expected = BY_NAME[name].title, array
            self.check(name, array, judge, expected)

    def check(self, name, array, judge, expected):
        """Drops a peer whose result differs."""
        error = difference(array, expected)
        self.results[name]["error"] = error if np.isfinite(error) else None
        if not error <= self.workload.tolerance:
            self.fail(name, f"its result is {error:.2g} deviations from {judge}'s")

    def turn(self, name):
        if "failed" in self.results[name]:
            return None
        return self.attempt(name, "turn", int(self.options.turn_ms * 1e6))

    def take(self):
        taken = measure.take_rounds(self.good(), self.options.rounds, self.turn)
        for name in self.good():
            turns = [[t / 1e6 for t in times] for times in taken[name]]
            bests = [min(t) for t in turns]
            self.results[name] |= {
                "best_ms": min(bests), "median_ms": measure.quartiles(sum(turns, []))[1],
                "runs": sum(map(len, turns)), "rounds_ms": bests}

    def compare(self):
        """Returns the rates, and the ratios of Tenon's time to each peer's."""
        ours = self.results.get(TENON.name, {}).get("rounds_ms")
        for name in self.good():
            r = self.results[name]
            r["gflops"] = self.workload.operations / r["best_ms"] / 1e6 or None
            r["gbps"] = self.workload.bytes / r["best_ms"] / 1e6 or None
            if ours and name != TENON.name:
                low, middle, high = measure.ratio(ours, r["rounds_ms"])
                r["ratio"] = {"median": middle, "low": low, "high": high}

    def value(self, bar, peak):
        """Returns the number compared with a bar; None if it was not measured."""
        ours = self.results.get(TENON.name, {})
        if "rounds_ms" not in ours:
            return None
        if bar.against == "peak":
            return peak and ours["gflops"] / peak
        if bar.against == "copy":
            times = [self.results[c]["rounds_ms"] for c in COPIES
                     if "rounds_ms" in self.results.get(c, {})]
            best = [min(t) for t in zip(*times)]
            return measure.ratio(best, ours["rounds_ms"])[1] if best else None
        return self.results.get(bar.against, {}).get("ratio", {}).get("median")

    def counts(self, bar):
        """True if a bar applies to this run: its peer was requested and is restricted likewise."""
        peer = BY_NAME.get(bar.against)
        asked = {p.name for p in self.options.peers}
        wanted = {peer.name} if peer else set(COPIES) if bar.against == "copy" else {TENON.name}
        restricted = self.isa == "native" or not peer or peer.v3 is not None
        return bar.threads in (None, self.threads) and bool(asked & wanted) and restricted

    def bars(self, peak):
        judged = []
        for bar in filter(self.counts, self.workload.bars):
            value = self.value(bar, peak)
            judged.append({"against": bar.against, "share": bar.is_share, "bound": bar.bound,
                           "value": value, "met": value is not None and bar.met(value)})
        return judged

    def measure(self):
        """Returns GFLOP/s of Tenon's measured peak, or None if it is not meaningful."""
        peak = None
        with tempfile.TemporaryDirectory(prefix="tenon-bench-") as folder:
            self.prepare(folder)
            if self.workload.operations and TENON.name in self.good():
                peak = self.attempt(TENON.name, "peak")
            self.take()
        for name in self.workers:
            if not self.workers[name].dead:
                self.attempt(name, "drop")
        self.compare()
        return peak

    def entry(self, peak):
        """Returns the results, with the peak of this number of threads and instruction set."""
        w = self.workload
        peak = peak if w.operations else None
        return {"workload": w.key, "title": w.title, "kind": w.kind, "threads": self.threads,
                "isa": self.isa, "operations": w.operations or None, "bytes": w.bytes or None,
                "peak_gflops": peak, "peers": self.results, "bars": self.bars(peak)}


# All of them.

def start_workers(options, threads, isa, workers, versions, tell):
    """Adds {peer: its process} of the available peers; `versions` gets their versions."""
    for peer in options.peers:
        if "absent" in versions.get(peer.name, {}):
            continue
        tell(f"starting {peer.title}")
        w = workers[peer.name] = Worker(peer, threads, isa, options.build)
        try:
            versions[peer.name] = {"title": peer.title, "version": w.call("version"),
                                   "restricted": peer.v3 is not None}
        except Failed as e:
            workers.pop(peer.name).close()
            versions[peer.name] = {"title": peer.title, "absent": str(e)}


def measure_all(options, tell):
    """Measures all workloads; tell(text) reports progress."""
    results, versions = [], {}
    configurations = [(t, isa) for isa in options.isas for t in options.threads]
    for threads, isa in configurations:
        workers, runs, peaks = {}, [], []
        try:
            start_workers(options, threads, isa, workers, versions, tell)
            for i, workload in enumerate(options.workloads):
                tell(f"{threads} thread{'s' * (threads > 1)}, {isa}, {i + 1} of "
                     f"{len(options.workloads)}: {workload.title}")
                runs.append(Run(workload, threads, isa, workers, options))
                peaks.append(runs[-1].measure())
        finally:
            for w in workers.values():
                w.close()
        best = max(filter(None, peaks), default=None)
        results += [run.entry(best) for run in runs]
    now = datetime.datetime.now(datetime.timezone.utc)
    return {"format": FORMAT, "date": now.isoformat(timespec="seconds"), "machine": machine(),
            "rounds": options.rounds, "turn_ms": options.turn_ms, "isas": ISAS,
            "peers": versions, "results": results}
