"""Measures workloads on peers and returns the results as the dictionary that is written as JSON."""
import datetime
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import machine
import measure
from peers import BY_NAME, COPIES, ISAS, PEERS, RIVALS, TENON
from processes import Failed, Worker
from workloads import Unavailable

FORMAT = 2  # version of the JSON, increased when a key changes its meaning


@dataclass(frozen=True)
class Options:
    build: Path
    workloads: tuple
    peers: tuple = PEERS
    threads: tuple = (1, 2)
    isas: tuple = ("native",)
    rounds: int = 15
    turn_ms: float = 20.0


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


def differences(arrays, expected):
    """Returns the largest difference of several results; infinite if their numbers differ."""
    if len(arrays) != len(expected):
        return float("inf")
    return max(map(difference, arrays, expected))


class Run:
    """A workload with a number of threads and an instruction set; tell(text) reports its steps."""

    def __init__(self, workload, threads, isa, workers, options, tell=lambda text: None):
        self.workload, self.threads, self.isa, self.options = workload, threads, isa, options
        self.tell, self.left_out = tell, None
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
        self.tell("writing the model")
        try:
            model, inputs = w.make(folder)
        except Unavailable as e:
            self.left_out, self.results = str(e), {}
            return
        paths = {name: f"{folder}/{i}.npy" for i, name in enumerate(inputs)}
        for name, path in paths.items():
            np.save(path, inputs[name])
        task = {"kind": w.kind, "numbers": w.numbers, "output": w.output, "bytes": w.bytes,
                "model": str(model), "network": w.key if w.kind == "network" else None,
                "bounds": w.bounds}
        judge, expected, result = "NumPy", w.reference(inputs), f"{folder}/result.npz"
        for name in sorted(self.workers, key=lambda name: name == TENON.name):  # last of all
            self.tell(f"preparing {BY_NAME[name].title}")
            if not self.attempt(name, "prepare", task, paths, result):
                continue
            with np.load(result) as file:
                arrays = list(file.values())
            if expected is None:
                judge, expected = BY_NAME[name].title, arrays
            self.check(name, arrays, judge, expected)

    def check(self, name, arrays, judge, expected):
        """Drops a peer whose results differ."""
        error = differences(arrays, expected)
        self.results[name]["error"] = error if np.isfinite(error) else None
        if not error <= self.workload.tolerance:
            self.fail(name, f"its result is {error:.2g} deviations from {judge}'s")

    def turn(self, name):
        if "failed" in self.results[name]:
            return None
        return self.attempt(name, "turn", int(self.options.turn_ms * 1e6))

    def take(self):
        count = self.options.rounds
        taken = measure.take_rounds(self.good(), count, self.turn,
                                    lambda n: self.tell(f"round {n + 1} of {count}"))
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

    def best_rival(self):
        """Returns the faster of the peers that a network is compared with, and Tenon's ratio to it;
        None if there is none. Only peers that are restricted like Tenon count."""
        found = {name: self.results[name]["ratio"] for name in RIVALS
                 if "ratio" in self.results.get(name, {})
                 and (self.isa == "native" or BY_NAME[name].v3 is not None)}
        if not found or self.workload.kind != "network":
            return None
        best = max(found, key=lambda name: found[name]["median"])
        return {"peer": best, "ratio": found[best]}

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
            if self.left_out:
                return None
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
        entry = {"workload": w.key, "title": w.title, "kind": w.kind, "threads": self.threads,
                 "isa": self.isa, "batch": w.batch, "sizes": w.sizes,
                 "operations": w.operations or None, "bytes": w.bytes or None,
                 "peak_gflops": peak, "peers": self.results, "best_rival": self.best_rival(),
                 "bars": self.bars(peak)}
        return entry | ({"left_out": self.left_out} if self.left_out else {})


# Networks together.

def summary(entries):
    """Returns how Tenon compares over networks that were measured alike: quartiles, over the
    rounds, of the geometric mean of its ratios to the better rival. Networks without a ratio are
    listed."""
    def ratios(entry):
        rival = entry["peers"][entry["best_rival"]["peer"]]
        return measure.ratios(entry["peers"][TENON.name]["rounds_ms"], rival["rounds_ms"])

    def listed(kept):
        return [e["workload"] for e in entries if kept(e)]

    def has_failed(entry):
        return "failed" in entry["peers"].get(TENON.name, {})

    compared = [e for e in entries if e["best_rival"]]
    mean = measure.mean_ratio(map(ratios, compared)) if compared else None
    first = entries[0]
    return {**{k: first[k] for k in ("threads", "isa", "batch", "sizes")},
            "networks": len(entries), "compared": len(compared),
            "ratio": mean and dict(zip(("low", "median", "high"), mean)),
            "faster": sum(e["best_rival"]["ratio"]["median"] < 1 for e in compared),
            "failed": listed(has_failed),
            "left_out": listed(lambda e: "left_out" in e),
            "without_rival": listed(lambda e: not e["best_rival"] and "left_out" not in e
                                    and not has_failed(e))}


def summaries(results):
    """Returns the summary of each number of threads, instruction set, batch and kind of sizes."""
    alike = {}
    for e in results:
        if e["kind"] == "network":
            alike.setdefault((e["threads"], e["isa"], e["batch"], e["sizes"]), []).append(e)
    return [summary(entries) for entries in alike.values()]


# All of them.

def start_worker(peer, threads, isa, options, versions):
    """Returns a peer's process, None if the peer is absent; `versions` gets its version."""
    w = Worker(peer, threads, isa, options.build)
    try:
        versions[peer.name] = {"title": peer.title, "version": w.call("version"),
                               "restricted": peer.v3 is not None}
        return w
    except Failed as e:
        w.close()
        if "version" not in versions.get(peer.name, {}):
            versions[peer.name] = {"title": peer.title, "absent": str(e)}


def start_workers(options, threads, isa, workers, versions, tell):
    """Adds {peer: its process} of the available peers that have none, or a dead one."""
    for peer in options.peers:
        old = workers.get(peer.name)
        if "absent" in versions.get(peer.name, {}) or old and not old.dead:
            continue
        tell(f"starting {peer.title}" + " again" * bool(old))
        if old:
            workers.pop(peer.name).close()
        new = start_worker(peer, threads, isa, options, versions)
        if new:
            workers[peer.name] = new


class Suite:
    """The measurement of all workloads. `results` has what is done; tell(text, detail) reports
    progress, and keep(results) is called after each workload."""

    def __init__(self, options, tell, keep=lambda results: None):
        self.options, self.tell, self.keep = options, tell, keep
        self.runs, self.peaks, self.versions = [], {}, {}
        self.number, self.begun, self.complete = 0, time.monotonic(), False

    def results(self):
        entries = [run.entry(self.peaks.get((run.threads, run.isa))) for run in self.runs]
        now = datetime.datetime.now(datetime.timezone.utc)
        return {"format": FORMAT, "date": now.isoformat(timespec="seconds"),
                "complete": self.complete, "machine": machine.facts(),
                "rounds": self.options.rounds, "turn_ms": self.options.turn_ms, "isas": ISAS,
                "peers": self.versions, "summaries": summaries(entries), "results": entries}

    def measure_one(self, workload, threads, isa, workers):
        self.number += 1
        how = f", batch {workload.batch}, sizes {workload.sizes}" if workload.batch else ""
        all_of_them = (len(self.options.workloads) * len(self.options.threads)
                       * len(self.options.isas))
        place = (f"{self.number} of {all_of_them}, {(time.monotonic() - self.begun) / 60:.0f} min: "
                 f"{workload.title}{how}, {threads} thread{'s' * (threads > 1)}, {isa}")
        self.tell(place, False)
        run = Run(workload, threads, isa, workers, self.options,
                  lambda step: self.tell(f"{place}: {step}", True))
        peak = run.measure()
        self.runs.append(run)
        self.peaks[threads, isa] = max(peak or 0, self.peaks.get((threads, isa)) or 0) or None
        self.keep(self.results())

    def measure_all(self):
        """Measures, and returns the results; those of before if it is interrupted."""
        try:
            for isa in self.options.isas:
                for threads in self.options.threads:
                    self.measure_alike(threads, isa)
            self.complete = True
        except KeyboardInterrupt:
            pass
        return self.results()

    def measure_alike(self, threads, isa):
        workers = {}
        try:
            for workload in self.options.workloads:
                start_workers(self.options, threads, isa, workers, self.versions,
                              lambda text: self.tell(text, True))
                self.measure_one(workload, threads, isa, workers)
        finally:
            for w in workers.values():
                w.close()
