#!/usr/bin/env python3
"""Tests the benchmark (bench/main.py) as a whole: small workloads beside memcpy and ONNX Runtime.

    test_run.py BUILD
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
failures = []


def check(what, holds, why=""):
    print("ok" if holds else "FAILED", what, "" if holds else why)
    if not holds:
        failures.append(what)


def run(script, *args):
    return subprocess.run([sys.executable, str(ROOT / script), *map(str, args)],
                          capture_output=True, text=True)


def check_results(folder, said):
    page, report = (folder / "results.md").read_text(), folder / "results.json"
    report = json.loads(report.read_text())
    check("both workloads are there", [e["workload"] for e in report["results"]]
          == ["copy:65540", "matmul:16x24x32"])
    copy, matmul = (e["peers"] for e in report["results"])
    check("who can do it did it",
          set(copy) == {"tenon", "memcpy", "stream", "onnxruntime"}
          and set(matmul) == {"tenon", "onnxruntime"}, f"{set(copy)} {set(matmul)}")
    for name, r in [*copy.items(), *matmul.items()]:
        check(f"{name} has a time", r.get("best_ms", 0) > 0 and len(r["rounds_ms"]) == 2, r)
        check(f"{name} was right", r.get("error", 1) < 1e-4, r)
    check("there are rates", copy["tenon"]["gbps"] > 0 and matmul["tenon"]["gflops"] > 0)
    check("and a peak", report["results"][1]["peak_gflops"] > matmul["tenon"]["gflops"] / 100)
    check("the page has a row for each", "| copy:65540 |" in page and "| matmul:16x24x32 |" in page)
    check("it is printed", "| copy:65540 |" in said)
    check("no file is left half-written", not list(folder.glob(".*")))
    check("it is complete", report["complete"] and report["format"] == 2)
    check("work on arrays has no summary", report["summaries"] == []
          and all(e["batch"] is e["sizes"] is e["best_rival"] is None for e in report["results"]))


def check_help():
    """Help and misuse need Python alone, and come before anything is installed."""
    for args, code, said in ((["--networks", "--help"], 0, "--sizes LIST"),
                             (["--batch", "0"], 2, "a batch is"), (["--sizes", "all"], 2, "known"),
                             (["--nothing"], 2, "--nothing")):
        r = subprocess.run([str(ROOT / "bench/run"), *args], capture_output=True, text=True,
                           env={"PATH": "/usr/bin:/bin"})
        check(f"bench/run {' '.join(args)} ends at once", r.returncode == code
              and said in r.stdout + r.stderr and "setup:" not in r.stderr, r.stdout + r.stderr)


def check_refusals(build):
    for what, args, said in (
            ("a workload that is misspelt", ["matmul:3x4"], "matmul:MxNxK"),
            ("a file that is not there", ["nothing.onnx"], "nothing.onnx"),
            ("a pattern that nothing has", ["--only", "nothing such"], "nothing such"),
            ("a peer that nobody knows", ["--peers", "nobody"], "memcpy"),
            ("more threads than cores", ["--threads", "100000"], "cores to use"),
            ("no rounds", ["--rounds", "0"], "more than 0")):
        r = run("bench/main.py", "--build", build, *args)
        check(f"{what} is misuse", r.returncode == 2 and said in r.stderr,
              f"{r.returncode} {r.stderr}")
    r = run("bench/main.py", "--build", "/nonexistent")
    check("a build that is not there is misuse", r.returncode == 2 and "--build" in r.stderr)


def main(build):
    threads = min(2, len(os.sched_getaffinity(0)))
    with tempfile.TemporaryDirectory() as folder:
        r = run("bench/main.py", "--build", build, "-o", folder, "--threads", threads,
                "--isa", "native", "--rounds", 2, "--turn", 0.5,
                "--peers", "memcpy,stream,onnxruntime", "copy:65540", "matmul:16x24x32")
        check("it ends well", r.returncode == 0, r.stdout + r.stderr)
        if r.returncode == 0:
            check_results(Path(folder), r.stdout)
            check("nothing but progress is said besides",
                  all(line.startswith("bench: ") for line in r.stderr.splitlines()), r.stderr)
        r = run("bench/main.py", "--build", build, "-o", folder + "/x", "--print", "--quick",
                "--threads", 1, "--isa", "native", "--peers", "memcpy", "add:33x65")
        check("--print writes no files", r.returncode == 0 and "| add:33x65 |" in r.stdout
              and not Path(folder + "/x").exists(), r.stderr)
    check_help()
    check_refusals(build)
    print(f"{len(failures)} failed")
    sys.exit(bool(failures))


if __name__ == "__main__":
    if os.environ.get("TENON_SANITIZE"):
        print("skipped: a library with sanitizers does not load into Python")
        sys.exit(77)
    main(sys.argv[1])
