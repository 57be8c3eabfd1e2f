#!/usr/bin/env python3
"""Tests the command `tenon` as its users see it: arguments, input, output, error messages and exit
status of each verb.

    test_cli.py BUILD [CLASS[.TEST]]…
"""

import html.parser
import json
import os
import pathlib
import pty
import re
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper
except ImportError as missing:
    print(f"skipped: {missing} (scripts/setup.sh --tests installs it)")
    sys.exit(77)

TENON = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/dev").resolve() / "tenon"
OPENCL_FUNCTIONS = ["cl" + name for name in re.findall(
    r"^OPENCL\((\w+)", (pathlib.Path(__file__).resolve().parents[2] /
                        "src/device/opencl/opencl_functions.def").read_text(), re.M)]
# A loader that hands calls on to the real one, but for the function FAULT, which returns RESULT.
FAULTY_OPENCL = """
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
static const char *const names[] = {LIST};
__attribute__((visibility("hidden"))) void *targets[sizeof names / sizeof *names];
static long fail(void) { return atoi(getenv("RESULT")); }
__attribute__((constructor)) static void fill(void) {
  void *real = dlopen(getenv("REAL_OPENCL"), RTLD_NOW | RTLD_LOCAL);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    targets[i] = strcmp(names[i], getenv("FAULT")) ? dlsym(real, names[i]) : (void *)fail;
}
"""
VERBS = ("run", "check", "bench", "tune", "explain", "inspect", "devices", "cache", "version", "help")
BENCH_KEYS = {
    "name", "device", "target", "threads", "runs", "best_ms", "median_ms", "p90_ms", "p99_ms",
    "mean_ms", "sd_ms", "gflops", "gbps", "peak_fraction", "peak_gflops", "compile_ms", "kernels",
    "compiled", "peak_bytes",
}


def environment(**changes):
    return {**os.environ, **changes}


def tenon(*args, status=0, text=True, stdout=subprocess.PIPE, **kwargs):
    """Runs the command and checks its exit status, unless that is to be None."""
    done = subprocess.run([TENON, *map(str, args)], stdout=stdout, stderr=subprocess.PIPE,
                          text=text, check=False, timeout=100, **kwargs)
    if status is not None and done.returncode != status:
        raise AssertionError(f"tenon {args}: exit status {done.returncode}, not {status}:\n"
                             f"{done.stdout}{done.stderr}")
    return done


def on_terminal(*args, **env):
    """Returns the command's output to a terminal that is its standard error."""
    try:
        reader, writer = pty.openpty()
    except OSError as none:  # a container without /dev/pts
        raise unittest.SkipTest(f"no terminal: {none}")
    with subprocess.Popen([TENON, *args], stdout=subprocess.DEVNULL, stderr=writer,
                          env=environment(**env)) as process:
        os.close(writer)
        said = b""
        try:
            while part := os.read(reader, 4096):
                said += part
        except OSError:  # Linux's error when the other end is closed
            pass
        process.wait(timeout=100)
    os.close(reader)
    return said.decode()


def wait_until(true):
    end = time.monotonic() + 100
    while not true():
        if time.monotonic() > end:
            raise AssertionError("it took too long")
        time.sleep(0.001)


def links(folder):
    """Returns the targets of the links of a folder in /proc."""
    for path in pathlib.Path(folder).iterdir():
        try:
            yield os.readlink(path)
        except OSError:  # closed in the meantime
            pass


def is_writing(process, folder):
    """True if a process has an unnamed or temporary file of a folder open."""
    try:
        return any(path.startswith(f"{folder}/") and path.endswith((" (deleted)", ".part"))
                   for path in links(f"/proc/{process.pid}/fd"))
    except OSError:  # it has ended
        return False


def any_runs(script):
    """True if a process that is no zombie has a script's name in its command line."""
    return any(str(script).encode() in read_or_none(path)
               for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"))


def read_or_none(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


def limit_files(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def value(name, elem, shape):
    return helper.make_tensor_value_info(name, elem, shape)


def model(path, nodes, inputs, outputs, opset=17, **kwargs):
    graph = helper.make_graph(nodes, "g", inputs, outputs, **kwargs)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("other.domain", 3)]
    made = helper.make_model(graph, opset_imports=opsets, producer_name="maker", ir_version=8)
    onnx.save(made, path)
    return path


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tenon-cli-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def file(self, name):
        return self.folder / name

    def array(self, name, data):
        np.save(self.file(name), data)
        return self.file(name)

    def binary(self, op="Sub", elem=TensorProto.FLOAT, a=("n", 3), b=("n", 3)):
        """Makes a model of two inputs, a and b, and one output, y."""
        return model(self.file("binary.onnx"), [helper.make_node(op, ["a", "b"], ["y"], "node")],
                     [value("a", elem, a), value("b", elem, b)], [value("y", elem, None)])

    def copy(self, elem, shape):
        """Makes a model whose output y is its input x."""
        return model(self.file("copy.onnx"), [helper.make_node("Cast", ["x"], ["y"], to=elem)],
                     [value("x", elem, shape)], [value("y", elem, shape)])

    def misuse(self, *args, says):
        done = tenon(*args, status=2)
        self.assertEqual(done.stdout, "")
        self.assertIn(says, done.stderr)
        self.assertRegex(done.stderr, r"\A[^\n]+\nTry 'tenon help( \w+)?' for more information\.\n\Z")


class CommandLine(Case):
    def test_wrong_uses_end_with_2_and_say_where_help_is(self):
        for args, says in {
            (): "missing command",
            ("rnu",): 'unknown command "rnu"; did you mean run?',
            ("inspekt",): "did you mean inspect?",
            ("zzzz",): 'unknown command "zzzz"\n',
            ("--json", "run"): "unknown option --json; options of a command follow it",
            ("help", "inspec"): "did you mean inspect?",
            ("run",): "missing argument MODEL",
            ("inspect", "a", "b"): 'expected one MODEL, got "a" and "b"',
            ("version", "a"): 'unexpected argument "a"',
            ("run", "m", "--thread", "2"): "unknown option --thread; did you mean --threads?",
            ("run", "m", "--qqqq"): "unknown option --qqqq\n",
            ("run", "m", "-t"): "unknown option -t",
            ("run", "m", "--threads"): "--threads requires a value",
            ("run", "m", "--threads", "--json"): "--threads requires a value",
            ("run", "m", "--threads", "two"): '--threads must be a number from 0 to 1024, not "two"',
            ("run", "m", "--threads", "-1"): "--threads must be a number",
            ("run", "m", "--threads="): "--threads must be a number",
            ("run", "m", "--threads", "99999999999999999999"): "--threads must be a number",
            ("run", "m", "--threads=1", "--threads=1"): "--threads is specified more than once",
            ("run", "m", "--json", "--json"): "--json is specified more than once",
            ("run", "m", "--json=yes"): "--json does not take a value",
            ("run", "m", "--input", "x"): '--input must have the form NAME=VALUE, not "x"',
            ("run", "m", "--output", "=x.npy"): "--output must have the form NAME=FILE",
            ("bench", "matmul:4x4"): "does not have the form matmul:MxNxK",
            ("bench", "matmul:4x-1x4"): "does not have the form matmul:MxNxK",
            ("bench", "matmul:4x4x0"): "0 is not a number from 1 to 1099511627776",
            ("bench", "copy:999999999999999"): "not a number from 1 to 1099511627776",
            ("bench", "copy:99999999999999999999"): "not a number from 1 to 1099511627776",
            ("bench", "matmul:4x4x4x4"): "does not have the form matmul:MxNxK",
            ("bench", "matmul:4x4x4:f80"): "does not have the form matmul:MxNxK",
            ("bench", "softmax:4x4:i8"): "does not have the form softmax:RxC",
            ("bench", "sum:4x4"): "does not have the form sum:RxC:axis",
            ("bench", "sum:4x4:x"): "does not have the form sum:RxC:axis",
            ("bench", "sum:4x4:2"): "2 is not a number from -2 to 1",
            ("bench", "sum:4x4:-3"): "-3 is not a number from -2 to 1",
            ("bench", "conv:1,2,4,4,2,7,1,1"): "larger than the padded image",
            ("bench", "copy:5"): "not a whole number of f32 elements",
            ("bench", "sotfmax:4x4"): "did you mean softmax?",
            ("bench", "foo:1"): 'unknown workload "foo:1"; workloads are matmul:MxNxK conv:N,C,H,W,',
            ("bench", "matmul"): '"matmul" does not have the form matmul:MxNxK[:',
            ("bench", "copy:10x"): "does not have the form copy:BYTES",
            ("bench", "copy:2MB"): "does not have the form copy:BYTES",
            ("bench", "copy:1025G"): "1025G exceeds 1099511627776",
            ("bench", "add:4kx4"): "does not have the form add:RxC",
            ("cache", "--trim", "--limit", "5q"):
                '--limit must be a number from 0 to 9223372036854775807, with an optional suffix k, M, G or T, not "5q"',
            ("cache", "--trim", "--limit", "k"): "--limit must be a number",
            ("cache", "--trim", "--limit", "9999999999G"): "--limit must be a number",
            ("bench", "add:4x4", "--input", "a=ones"): "--input applies to models",
            ("bench", "add:4x4", "--size", "n=4"): "--size applies to models",
            ("bench", "add:4x4", "--variants=one"): "--variants applies to models",
            **{(verb, "m", "--variants", "exactly"):
               '--variants must be auto, steady, exact or one, not "exactly"; did you mean exact?'
               for verb in ("run", "bench", "explain")},
            ("run", "m", "--size", "4"): '--size must have the form NAME=SPEC, not "4"',
            ("run", "m", "--size", "=4"): "--size must have the form NAME=SPEC",
            ("run", "m", "--size", "n="): "--size must have the form NAME=SPEC",
            ("run", "m", "--size"): "--size requires a value",
            **{("run", "m", f"--{name}", ""): f"--{name} requires a value: --{name} {value}"
               for name, value in (("input-dir", "DIR"), ("output-dir", "DIR"), ("check", "DIR"),
                                   ("trace", "FILE"), ("device", "NAME"), ("rtol", "X"))},
            ("run", "m", "--input-dir="): "--input-dir requires a value",
            ("explain", "m", "-o", ""): "--output requires a value",
            **{(verb, "m", "--size", f"n={spec}"):
               f"--size n must be a number from 0 to 999999999, a nonempty range MIN..MAX, MIN.. or "
               f'..MAX, a value @LIKELY within it, or the name of another size, not "{spec}"'
               for verb in ("run", "bench", "inspect")
               for spec in ("-1", "1000000000", "9" * 30, "8..2", "2..x", "x..8", "..", "2..8..9",
                            "2..-8", "..-8", "2...8")},
            ("bench", "add:4x4", "--repeat", "0"): "--repeat must be a number",
            ("bench", "add:4x4", "--seed", "-1"): "--seed must be a number from 0",
            ("run", "m", "--seed", str(2**64)): "--seed must be a number from 0",
            ("run", "m", "--a\nb"): "unknown option --a\\nb\n",
        }.items():
            with self.subTest(args=args):
                self.misuse(*args, says=says)

    def test_help_is_the_same_however_it_is_asked_for(self):
        whole = tenon("help").stdout
        for verb in VERBS:
            with self.subTest(verb=verb):
                self.assertRegex(whole, rf"(?m)^  {verb} ")
                text = tenon("help", verb).stdout
                self.assertTrue(text.startswith(f"usage: tenon {verb}"))
                self.assertEqual(tenon(verb, "--help").stdout, text)
                self.assertEqual(tenon(verb, "-h", "whatever").stdout, text)
        self.assertEqual(tenon("--help").stdout, whole)
        self.assertEqual(tenon("-h").stdout, whole)

    def test_the_log_is_shown_on_demand(self):
        work = ("bench", "add:4x4", "--repeat", "1")
        self.assertEqual(tenon(*work).stderr, "")
        self.assertRegex(tenon(*work, "-v").stderr,
                         r"\Atenon bench: device CPU:0, (c/cc|llvm/llvm) for \S+\n\Z")
        for how in (("-vv",), ("-v", "-v"), ("-v", "-vv")):
            said = tenon(*work, *how, env=environment(TENON_CACHE="off")).stderr
            self.assertRegex(said, r"(?m)^tenon bench: kernel tn_[0-9a-f]+: compiled in [0-9.]+ ms$")
            self.assertRegex(said, r"(?m)^tenon bench: plan plan: 1 step, 1 kernel$")
        self.assertIn("device CPU:0", tenon("version", "-v").stderr)
        said = on_terminal(*work, "-vv", TERM="xterm", TENON_CACHE="off")
        lines = [line.split("\x1b[K")[-1] for line in said.replace("\r\n", "\n").split("\n")]
        for line in lines[:-1]:  # the progress bar is erased before each line
            self.assertRegex(line, r"\Atenon bench: ")

    def test_lines_of_help_fit(self):
        for verb in (*VERBS, None):
            for line in tenon("help", *[verb] * bool(verb)).stdout.splitlines()[1:]:
                self.assertLessEqual(len(line), 100, line)

    def test_help_names_the_variables_that_are_heeded(self):
        self.assertEqual(set(re.findall(r"\b[A-Z]+_[A-Z_]+\b", tenon("help").stdout)),
                         {"TENON_DEVICE", "TENON_BACKEND", "TENON_THREADS", "TENON_PAIR", "TENON_CPU",
                          "TENON_MATH", "TENON_DUMP", "TENON_CC", "TENON_LLVM", "TENON_NVRTC",
                          "TENON_VENDOR", "TENON_OPENBLAS", "TENON_CUBLAS", "TENON_NCCL",
                          "TENON_CACHE", "TENON_TUNED", "TENON_MEMORY", "TENON_COMPILE_SECONDS",
                          "LD_LIBRARY_PATH", "XDG_CACHE_HOME",
                          "NO_COLOR"})
        said = tenon("help").stdout.split("environment:")[1]
        self.assertLessEqual({"c/cc", "llvm/llvm", "opencl/driver", "opencl-teams/driver"},
                             set(re.findall(r"\b[a-z-]+/[a-z]+\b", said)))
        self.assertLessEqual({"CC", "HOME", "PATH", "TERM"}, set(re.findall(r"\b[A-Z]+\b", said)))

    def test_help_names_what_stands_in_lines_of_schedules(self):
        said = tenon("explain", "--help").stdout
        for form in ("at 16", "by 8", "loop, unroll, vector or thread", "global", "local", "warp",
                     "first or last"):
            self.assertIn(form, said)

    def test_help_names_all_keys_of_bench(self):
        text = tenon("help", "bench").stdout
        for key in BENCH_KEYS:
            self.assertRegex(text, rf"\b{key}\b")

    def test_newlines_of_names_are_not_those_of_messages(self):
        for verb in ("run", "inspect", "bench"):
            self.assertIn("two\\nlines", tenon(verb, "two\nlines", status=1).stderr)

    def test_a_file_may_be_called_like_an_option(self):
        path = model(self.file("--json"), [helper.make_node("Tanh", ["x"], ["y"])],
                     [value("x", TensorProto.FLOAT, [2])], [value("y", TensorProto.FLOAT, [2])])
        self.assertIn("Tanh", tenon("inspect", "--", "--json", cwd=path.parent).stdout)

    def test_output_that_cannot_be_written_is_told(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([TENON, "help"], stdout=full, stderr=subprocess.PIPE, text=True,
                                  check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot write to standard output", done.stderr)

    def test_array_that_cannot_be_written_is_told(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([TENON, "run", self.binary(), "--output", "y=-"], stdout=full, check=False,
                                  stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot write to standard output: No space left", done.stderr)

    def test_colour_is_for_terminals_that_want_it(self):
        self.assertIn("\x1b[1;31m", on_terminal("rnu", TERM="xterm", NO_COLOR=""))
        self.assertNotIn("\x1b", on_terminal("rnu", TERM="xterm", NO_COLOR="1"))
        self.assertNotIn("\x1b", on_terminal("rnu", TERM="dumb", NO_COLOR=""))
        self.assertNotIn("\x1b", tenon("rnu", status=2, env=environment(TERM="xterm")).stderr)

    def test_a_bar_is_for_terminals(self):
        work = ("bench", "add:8x8", "--repeat", "1")
        drawn = on_terminal(*work, TERM="xterm")
        self.assertRegex(drawn, r"\r\[\.+\] 0 of 1 kernel compiled\x1b\[K")
        self.assertTrue(drawn.endswith("\r\x1b[K"), "the bar is taken away")
        self.assertEqual(on_terminal(*work, TERM="dumb"), "")
        self.assertEqual(tenon(*work, env=environment(TERM="xterm")).stderr, "")


class Cache(Case):
    """Tests of kernels on disk and the verb that manages them."""

    def setUp(self):
        super().setUp()
        self.cache = self.file("cache")
        self.env = environment(TENON_CACHE=str(self.cache))

    def show(self, *args):
        return json.loads(tenon("cache", "--json", *args, env=self.env).stdout)

    def bench(self, **env):
        done = tenon("bench", "add:8x8", "--repeat", "1", "--json", env={**self.env, **env})
        return json.loads(done.stdout)["compiled"], done.stderr

    def names(self):
        return sorted(path.name for path in self.cache.iterdir())

    def test_a_second_process_compiles_nothing_and_starts_no_program(self):
        script, told = self.file("gcc-told"), self.file("told")
        script.write_text(f'#!/bin/sh\necho "$@" >> {told}\nexec gcc "$@"\n')
        script.chmod(0o700)
        path = f"{self.folder}:{os.environ['PATH']}"
        self.assertEqual(self.bench(CC="gcc-told", TENON_CC="", PATH=path), (1, ""))
        self.assertTrue(told.exists())
        told.unlink()
        self.assertEqual(self.bench(CC="gcc-told", TENON_CC="", PATH=path), (0, ""))
        self.assertFalse(told.exists())

    def test_what_is_told_of_a_compilation_is_compiled(self):
        path = model(self.file("m.onnx"), [helper.make_node("Exp", ["w"], ["e"]),
                                           helper.make_node("MatMul", ["x", "e"], ["y"])],
                     [value("x", TensorProto.FLOAT, (4, 64))],
                     [value("y", TensorProto.FLOAT, (4, 64))],
                     initializer=[onnx.numpy_helper.from_array(np.ones((64, 64), np.float32), "w")])
        for work in path, "add:8x8":
            for args, all_of_them in (((), True), ((), False), (("--compile",), True)):
                told = json.loads(tenon("bench", work, "--repeat", "1", "--json", *args,
                                        env=self.env).stdout)
                self.assertEqual(told["compiled"], told["kernels"] if all_of_them else 0)
            self.assertTrue(all(kernel["name"] for kernel in told["compile"]["kernels"]))

    def test_it_is_shown_trimmed_and_cleared(self):
        empty = {"folder": str(self.cache), "entries": 0, "plans": 0, "bytes": 0,
                 "limit": 1 << 30}
        for args in ((), ("--trim",), ("--clear",)):
            self.assertEqual(self.show(*args), empty)
        self.assertFalse(self.cache.exists())
        self.bench()
        (self.cache / "notes.txt").write_text("mine")
        shown = self.show()
        self.assertEqual(shown["entries"], 3)  # the kernel, the compiler, the plan
        self.assertEqual(shown["plans"], 1)
        self.assertEqual(shown["bytes"], sum(path.stat().st_size for path in self.cache.iterdir()
                                             if path.suffix == ".tenon"))
        self.assertIn(f"folder   {self.cache}\nentries  3, 1 of them plans\n",
                      tenon("cache", env=self.env).stdout)
        self.assertEqual(self.show("--trim"), shown)
        self.assertEqual(self.show("--trim", "--limit", shown["bytes"]), shown)
        self.assertEqual(self.show("--trim", "--limit", "2G"), shown)
        self.assertEqual(self.show("--trim", "--limit", shown["bytes"] - 1)["entries"], 2)
        self.bench()
        self.assertEqual(self.show("--clear"), empty)
        self.assertEqual(self.names(), ["lock", "notes.txt"])
        self.assertEqual(self.bench()[0], 1)

    def test_wrong_uses(self):
        self.misuse("cache", "--trim", "--clear", says="--trim and --clear cannot be combined")
        self.misuse("cache", "--limit", "5", says="--limit requires --trim")
        self.misuse("cache", "--trim", "--limit", "-1", says="--limit must be a number from 0")

    def test_it_can_be_off(self):
        self.env["TENON_CACHE"] = "off"
        self.assertEqual(self.bench()[0], 1)
        self.assertEqual(self.bench()[0], 1)
        self.assertIsNone(self.show()["folder"])
        self.assertIn("switched off", tenon("cache", env=self.env).stdout)

    def test_the_usual_folder(self):
        self.env.pop("TENON_CACHE")
        self.env.update(XDG_CACHE_HOME=str(self.file("xdg")), HOME=str(self.file("home")))
        self.bench()
        self.assertEqual(self.show()["folder"], str(self.file("xdg") / "tenon"))
        self.assertEqual(self.show()["entries"], 3)
        self.env["XDG_CACHE_HOME"] = ""
        compiled, said = self.bench()
        self.assertEqual(compiled, 1)
        self.assertIn("which does not exist; set TENON_CACHE", said)
        self.assertEqual(said.count("\n"), 1)
        self.assertFalse(self.file("home").exists())
        self.file("home").mkdir()
        self.bench()
        self.assertEqual(self.show()["folder"], str(self.file("home") / ".cache/tenon"))
        self.assertEqual(self.show()["entries"], 3)
        self.env["HOME"] = ""
        compiled, said = self.bench()
        self.assertEqual(compiled, 1)
        self.assertIn("set TENON_CACHE, XDG_CACHE_HOME or HOME", said)
        self.assertIn("set TENON_CACHE", tenon("cache", env=self.env, status=1).stderr)

    def test_a_folder_that_is_not_safe_is_told_and_not_used(self):
        self.file("elsewhere").mkdir(mode=0o700)
        self.cache.symlink_to(self.file("elsewhere"))
        compiled, said = self.bench()
        self.assertEqual(compiled, 1)
        self.assertIn("is a link", said)
        self.assertEqual(said.count("\n"), 1)
        self.assertEqual(list(self.file("elsewhere").iterdir()), [])
        self.assertIn("is a link", tenon("cache", "--clear", env=self.env, status=1).stderr)

    def test_a_folder_that_cannot_be_made_is_told(self):
        self.env["TENON_CACHE"] = "/proc/no/such"
        for args in ((), ("--clear",), ("--json",)):
            said = tenon("cache", *args, env=self.env, status=1).stderr
            self.assertIn('cannot create "/proc/no/such"', said)

    def test_what_is_in_the_locks_place_is_told_with_the_way_out(self):
        self.cache.mkdir(mode=0o700)
        lock = self.cache / "lock"
        lock.symlink_to("nowhere")
        compiled, said = self.bench()
        self.assertEqual((compiled, said.count("\n")), (1, 1))
        for text in said, tenon("cache", "--clear", env=self.env, status=1).stderr:
            self.assertIn('"lock" of the cache is a link; remove it', text)
        lock.unlink()
        self.assertEqual(self.bench(), (1, ""))

    def test_what_was_damaged_is_made_anew(self):
        self.bench()
        for path in self.cache.glob("*.tenon"):
            path.write_bytes(path.read_bytes()[:-1])
        compiled, said = self.bench()
        self.assertEqual(compiled, 1)
        self.assertIn("corrupt or truncated", said)
        self.assertEqual(self.bench(), (0, ""))

    def test_a_plan_that_was_damaged_is_scheduled_anew(self):
        self.bench()
        plan, = self.cache.glob("*.plan.tenon")
        plan.write_bytes(plan.read_bytes()[:-1])
        compiled, said = self.bench()
        self.assertEqual(compiled, 0)
        self.assertEqual(said.count("corrupt or truncated"), 1)
        self.assertEqual(self.bench(), (0, ""))
        plan.unlink()
        self.assertEqual(self.bench(), (0, ""))
        self.assertEqual(self.show()["plans"], 1)


    def layers(self):
        """Makes a model with weights, and its input; returns both paths and the output."""
        w = np.arange(64 * 16, dtype=np.float32).reshape(64, 16) % 7 - 3
        x = np.arange(4 * 64, dtype=np.float32).reshape(4, 64) % 5 - 2
        path = model(self.file("layers.onnx"),
                     [helper.make_node("MatMul", ["x", "w"], ["m"]),
                      helper.make_node("Relu", ["m"], ["y"])],
                     [value("x", TensorProto.FLOAT, (4, 64))],
                     [value("y", TensorProto.FLOAT, (4, 16))],
                     initializer=[onnx.numpy_helper.from_array(w, "w")])
        return path, self.array("x.npy", x), np.maximum(x @ w, 0)

    def run_layers(self, env):
        path, x, y = self.layers()
        tenon("run", path, "--input", f"x={x}", "--output", f"y={self.file('out.npy')}", env=env)
        np.testing.assert_array_equal(np.load(self.file("out.npy")), y)
        done = tenon("bench", path, "--repeat", "1", "--json", env=env)
        return json.loads(done.stdout)["compiled"]

    def without_compiler(self, **changes):
        env = {**self.env, "PATH": "/none", "TENON_LLVM": "off", "TENON_TUNED": "off", **changes}
        for name in "CC", "TENON_CC", "TENON_PAIR", "TENON_CPU":
            env.pop(name, None)
        return {**env, **changes}

    def test_an_exported_cache_runs_without_a_compiler(self):
        frozen = self.file("kernels.frozen")
        self.env["TENON_TUNED"] = "off"
        self.run_layers(self.env)
        told = json.loads(tenon("cache", "--export", frozen, "--json", env=self.env).stdout)
        self.assertEqual((told["file"], told["bytes"]), (str(frozen), frozen.stat().st_size))
        self.assertGreaterEqual(told["entries"], 2)
        self.assertGreaterEqual(told["plans"], 1)
        self.assertEqual(self.run_layers(self.without_compiler()), 0)  # the cache itself
        self.env["TENON_CACHE"] = str(self.file("shipped"))
        said = tenon("bench", "add:8x8", env=self.without_compiler(), status=1).stderr
        self.assertIn("no C compiler found", said)
        self.assertIn(f"file     {frozen}\nentries  {told['entries']}, {told['plans']} of",
                      tenon("cache", "--import", frozen, env=self.without_compiler()).stdout)
        self.assertEqual(self.run_layers(self.without_compiler()), 0)
        told = json.loads(tenon("devices", "--json", env=self.without_compiler()).stdout)["devices"][0]
        self.assertEqual((told["absent"], told["pairs"]), (None, ""))
        self.assertIn("kernels: those of the cache alone; new ones need a compiler",
                      tenon("devices", env=self.without_compiler()).stdout)
        said = tenon("bench", "add:8x8", env=self.without_compiler(), status=1).stderr
        self.assertRegex(said, r"\Atenon bench: error: ([^:]*: )?no C compiler found \(tried cc, gcc and clang\)")
        self.assertIn("; the cache lacks a kernel, as of other sizes than those that ran before it was exported, "
                      "or has it with a tuned schedule, whose file (TENON_TUNED) is to be shipped too: run "
                      "this once where a compiler is, with TENON_TUNED=off, and export the cache again "
                      "(tenon cache --export), or install a compiler\n", said)
        self.assertEqual(said.count("\n"), 1)

    def test_a_cache_of_this_machine_alone_is_told_without_an_export(self):
        self.env["TENON_TUNED"] = "off"
        self.run_layers(self.env)
        said = tenon("bench", "add:8x8", env=self.without_compiler(), status=1).stderr
        self.assertRegex(said, r"\Atenon bench: error: ([^:]*: )?no C compiler found \(tried cc, gcc and clang\)")
        self.assertIn("; the cache has kernels of earlier runs, and lacks one, as of other sizes\n", said)
        self.assertNotIn("export", said)

    def test_tuned_schedules_are_told_at_an_export(self):
        tuned, frozen = self.file("tuned"), self.file("kernels.frozen")
        self.env["TENON_TUNED"] = str(tuned)
        tuned.write_text("tenon-tuned-2 d95b2b7e07ebb7a27058d5a2f69483db 368eb02ab2fdeed3 f072e16193618f30 "
                         "367893529cdd42e7 kept lanes:0/3,tile:0/8,order:1/2 39925 31590 "
                         "lanes:0/3,tile:0/8,order:0/2 39837 32740 bc2d657e\n", encoding="ascii")
        self.run_layers(self.env)
        self.assertIn("1 tuned schedule is not in this file",
                      tenon("cache", "--export", frozen, env=self.env).stderr)
        self.env["TENON_TUNED"] = "off"
        self.assertEqual(tenon("cache", "--export", frozen, env=self.env).stderr, "")

    @unittest.skipUnless(os.uname().machine == "x86_64", "levels of x86-64")
    def test_a_cache_of_a_lower_level_and_of_both_pairs(self):
        self.env.update(TENON_CPU="x86-64", TENON_TUNED="off")
        pairs = ["c/cc"]
        self.assertEqual(self.bench(TENON_PAIR="c/cc"), (1, ""))
        self.run_layers({**self.env, "TENON_PAIR": "c/cc"})
        if (TENON.parent / "tenon-llvm.so").exists() and \
                not os.environ.get("TENON_SANITIZE"):
            done = tenon("bench", "softmax:8x8", "--repeat", "1", "--json",
                         env={**self.env, "TENON_PAIR": "llvm/llvm"})
            self.assertEqual(json.loads(done.stdout)["compiled"], 1)
            pairs.append("llvm/llvm")
        frozen = self.file("kernels.frozen")
        tenon("cache", "--export", frozen, env=self.env)
        self.env["TENON_CACHE"] = str(self.file("shipped"))
        tenon("cache", "--import", frozen, env=self.without_compiler())
        for cpu in {}, {"TENON_CPU": "x86-64"}:
            env = self.without_compiler(**cpu)
            self.assertEqual(self.run_layers(env), 0)
            for work in ["add:8x8", "softmax:8x8"][:len(pairs)]:
                done = tenon("bench", work, "--repeat", "1", "--json", env=env)
                self.assertEqual(json.loads(done.stdout)["compiled"], 0)
                self.assertEqual(json.loads(done.stdout)["target"], "x86-64")

    def test_wrong_uses_of_exported_files(self):
        for args in (("--export", "f", "--import", "f"), ("--export", "f", "--clear"),
                     ("--import", "f", "--trim")):
            self.misuse("cache", *args, says="--export and --import stand alone")
        self.assertRegex(
            tenon("cache", "--export", self.file("f"), env=self.env, status=1).stderr,
            r"the cache holds no kernels for (\S+) of this build; run the models with TENON_CPU=\1 first")
        self.assertFalse(self.cache.exists())
        self.env["TENON_TUNED"] = "off"
        self.assertIn("the cache holds no kernels for",
                      tenon("cache", "--export", self.file("f"), env=self.env, status=1).stderr)
        self.file("f").write_text("no cache")
        self.assertIn("is not an exported cache",
                      tenon("cache", "--import", self.file("f"), env=self.env, status=1).stderr)
        self.assertFalse(self.cache.exists())

    def peak(self, n):
        """Returns the peak memory of a second process that runs four layers of n × n weights."""
        weights = [onnx.numpy_helper.from_array(np.full((n, n), 0.5 / n, np.float32), f"w{i}")
                   for i in range(4)]
        nodes = [helper.make_node("MatMul", [f"v{i}", f"w{i}"], [f"v{i + 1}"]) for i in range(4)]
        path = model(self.file(f"{n}.onnx"), nodes, [value("v0", TensorProto.FLOAT, (1, n))],
                     [value("v4", TensorProto.FLOAT, (1, n))], initializer=weights)
        for compiled in True, False:
            told = json.loads(tenon("bench", path, "--repeat", "1", "--json", env=self.env).stdout)
            self.assertEqual(told["compiled"] > 0, compiled)
        return told["peak_bytes"]

    @unittest.skipIf(os.environ.get("TENON_SANITIZE"), "sanitizers use memory of their own")
    def test_weights_are_in_memory_once(self):
        n = 1448
        self.assertLess(self.peak(n) - self.peak(16), 1.1 * 4 * n * n * 4)


class Version(Case):
    def test_version(self):
        header = pathlib.Path("include/tenon/context.h").read_text(encoding="utf-8")
        expected = ".".join(re.search(rf"TN_VERSION_{part} +(\d+)", header).group(1)
                            for part in ("MAJOR", "MINOR", "PATCH"))
        told = json.loads(tenon("version", "--json").stdout)
        self.assertEqual(told["version"], expected)
        self.assertEqual(told["library"], expected)
        self.assertRegex(told["build"], rf"^{re.escape(expected)} [0-9a-f]{{64}}$")
        self.assertIn(f"\nbuild     {told['build']}\n", tenon("version").stdout)
        self.assertIn("CPU", told["backends"])
        self.assertTrue(tenon("--version").stdout.startswith(f"tenon {expected}\n"))
        self.assertEqual(tenon("version").stdout, tenon("--version").stdout)

    def test_what_the_environment_asks_for_must_be_there(self):
        for verb in (("version", "--json"), ("devices", "--json"), ("bench", "add:4x4"),
                     ("run", self.binary())):
            for name in ("TENON_THREADS", "TENON_MATH", "TENON_DUMP", "TENON_DEVICE", "TENON_CPU",
                         "TENON_PAIR", "TENON_BACKEND"):
                with self.subTest(verb=verb, name=name):
                    done = tenon(*verb, status=1, env=environment(**{name: "nonsense"}))
                    self.assertIn("nonsense", done.stderr)

    def test_passes_are_listed_where_there_is_none_of_a_name(self):
        bad = environment(TENON_DUMP=f"{self.folder}:after:nosuch")
        done = tenon("bench", "add:4x4", "--repeat", "1", status=1, env=bad)
        for word in ("nosuch", "normalise", "kernels", "linearise"):
            self.assertIn(word, done.stderr)
        tenon("bench", "add:4x4", "--repeat", "1",
              env=environment(TENON_DUMP=f"{self.folder}:after:linearise"))
        self.assertTrue(list(self.folder.glob("*-linearise.ir")))


class Devices(Case):
    def test_devices(self):
        told = json.loads(tenon("devices", "--json").stdout)
        cpu = told["devices"][0]
        self.assertEqual(cpu["name"], "CPU:0")
        self.assertIsNone(cpu["absent"])
        self.assertNotEqual(cpu["pairs"], "")
        self.assertEqual(cpu["queues"], "threads of this process")
        self.assertEqual(cpu["copies"], "host memory is used in place")
        self.assertGreaterEqual(told["processor"]["usable_cores"], 1)
        caches = told["processor"]["caches"]
        self.assertEqual(set(caches), {"l1_bytes", "l2_bytes", "l3_bytes", "l3_cores", "line_bytes"})
        sizes = [caches[key] for key in ("l1_bytes", "l2_bytes") if caches[key]]
        self.assertEqual(sizes, sorted(sizes))
        used = [c for c in told["compilers"] if c["used"]]
        self.assertEqual(len(used), 1)
        self.assertTrue(os.access(used[0]["path"], os.X_OK))
        text = tenon("devices").stdout
        for device in told["devices"]:
            self.assertIn(device["name"], text)
        self.assertIn(used[0]["path"], text)
        self.assertRegex(text, r"caches +[0-9n].* per core; last level: ")
        self.assertIn("CPU:1 to CPU:15 are the same", cpu["about"])
        tenon("bench", "add:4x4", "--repeat", "1", "--device", "CPU:15")
        tenon("bench", "add:4x4", "--repeat", "1", "--device", "CPU:16", status=1)

    def test_backends_come_from_shared_objects(self):
        plugin = TENON.parent / "tests" / "ref_backend.so"
        other = self.file("not-a-backend.so")
        other.write_bytes(b"nothing")
        work = ("bench", "add:4x4", "--repeat", "1", "--device", "REF:1")
        self.assertIn("unknown device", tenon(*work, status=1).stderr)
        self.assertIn("on REF:1", tenon(*work, "--backend", plugin).stdout)
        self.assertIn("on REF:1", tenon(*work, f"--backend={plugin}", "--backend", plugin).stdout)
        self.assertIn("on REF:1", tenon(*work, env=environment(TENON_BACKEND=str(plugin))).stdout)
        told = json.loads(tenon("devices", "--json", "--backend", plugin).stdout)
        self.assertIn({"name": "REF:0", "pairs": "ir/ref", "absent_pairs": []},
                      [{k: d[k] for k in ("name", "pairs", "absent_pairs")}
                       for d in told["devices"]])
        # One that is linked to nothing gets the functions of the command.
        alone, root = self.file("alone.so"), pathlib.Path(__file__).resolve().parents[2]
        subprocess.run(["cc", "-shared", "-fPIC", "-D_POSIX_C_SOURCE=200809L", f"-I{root / 'include'}", "-o", alone,
                        root / "tests/backend/ref.c", root / "tests/backend/plugin.c"], check=True)
        self.assertIn("on REF:1", tenon(*work, "--backend", alone).stdout)
        copy = self.file("copy.so")  # another object, whose backend has the same name
        shutil.copy(plugin, copy)
        done = tenon("devices", "--backend", plugin, "--backend", copy, status=1)
        self.assertIn(f"{copy}: backend REF is already registered", done.stderr)
        for path in ("/nowhere/backend.so", "backend.so", other):
            self.assertIn(str(path), tenon("devices", "--backend", path, status=1).stderr)
        library = next(TENON.parent.glob("libtenon.so*"))
        done = tenon("devices", "--backend", library, status=1)
        self.assertIn("it has no function tn_backend_get", done.stderr)
        tenon("devices", "--backend", status=2)

    def device(self, name, **variables):
        """Returns a device as `tenon devices` lists it."""
        told = json.loads(tenon("devices", "--json", env=environment(**variables)).stdout)
        return next(d for d in told["devices"] if d["name"] == name)

    def opencl(self, **variables):
        return self.device("OPENCL:0", **variables)

    def need_opencl(self):
        if os.environ.get("TENON_SANITIZE"):
            self.skipTest("drivers of OpenCL do not free their memory")
        if why := self.opencl()["absent"]:
            self.skipTest(f"no OpenCL device: {why}")

    def test_absent_opencl_is_told(self):
        loader = self.file("libOpenCL.so.1")
        loader.write_bytes(b"nothing")
        here = {"LD_LIBRARY_PATH": str(self.folder)}
        self.assertRegex(self.opencl(**here)["absent"],
                         r"^the OpenCL loader is missing \(.*\): install it \(on Debian: ")
        source = self.file("empty.c")
        source.write_text("int nothing;\n")
        subprocess.run(["cc", "-shared", "-o", loader, source], check=True)
        self.assertRegex(self.opencl(**here)["absent"],
                         r"^the OpenCL loader has no clGetPlatformIDs \(OpenCL 1\.2 needed\)")
        source.write_text("int clGetPlatformIDs(void) { return -1001; }\n" + "".join(
            f"void {name}(void) {{}}\n" for name in OPENCL_FUNCTIONS if name != "clGetPlatformIDs"))
        subprocess.run(["cc", "-shared", "-fno-builtin", "-o", loader, source], check=True)
        self.assertRegex(self.opencl(**here)["absent"],
                         r"finds no device \(CL_PLATFORM_NOT_FOUND_KHR\): install the driver of one")
        work = ("bench", "add:4x4", "--repeat", "1", "--device", "OPENCL")
        failed = tenon(*work, status=1, env=environment(**here)).stderr
        self.assertIn("device OPENCL:0: the OpenCL loader finds no device", failed)
        self.assertIn("on CPU:0", tenon(*work[:-2], env=environment(**here)).stdout)

    def test_failures_of_opencl_drivers_are_told(self):
        self.need_opencl()
        if os.uname().machine != "x86_64":
            self.skipTest("the loader of this test is made for x86-64")
        real = next(line.split()[-1] for line in subprocess.run(
            ["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout.splitlines()
            if "libOpenCL.so.1 " in line)
        source = self.file("faulty.c")
        source.write_text(FAULTY_OPENCL.replace("LIST", ", ".join(
            f'"{name}"' for name in OPENCL_FUNCTIONS)) + "".join(
            f'__asm__(".pushsection .text\\n.globl {name}\\n.type {name}, @function\\n'
            f'{name}: jmp *targets+{8 * i}(%rip)\\n.popsection");\n' for i, name in enumerate(OPENCL_FUNCTIONS)))
        subprocess.run(["cc", "-shared", "-fPIC", "-o", self.file("libOpenCL.so.1"), source],
                       check=True)
        # The weight is so large that it is read from the file where it is used: into the device.
        w = onnx.numpy_helper.from_array(np.ones((1024, 64), np.float32), "w")
        path = model(self.file("sum.onnx"), [helper.make_node("Add", ["x", "w"], ["y"])],
                     [value("x", TensorProto.FLOAT, [1024, 64])],
                     [value("y", TensorProto.FLOAT, [1024, 64])], initializer=[w])
        work = ("run", path, "--profile", "--device", "OPENCL")

        def run(fault, result, status):
            return tenon(*work, status=status, env=environment(
                LD_LIBRARY_PATH=str(self.folder), REAL_OPENCL=real, FAULT=fault, RESULT=str(result)))

        self.assertIn("on OPENCL:0", run("", 0, 0).stdout)
        # Without binaries, sources are kept.
        self.assertIn("on OPENCL:0", run("clGetProgramInfo", -30, 0).stdout)
        for fault, result, words in (
                ("clCreateContext", 0, "clCreateContext"),
                ("clCreateCommandQueue", 0, "clCreateCommandQueue"),
                ("clCreateBuffer", 0, "clCreateBuffer"),
                ("clEnqueueMapBuffer", 0, "clEnqueueMapBuffer"),
                ("clBuildProgram", -11, "clBuildProgram .*CL_BUILD_PROGRAM_FAILURE"),
                ("clCreateKernel", 0, "clCreateKernel|no loadable kernel"),
                ("clSetKernelArg", -51, "clSetKernelArg of kernel .*CL_INVALID_ARG_SIZE"),
                ("clEnqueueNDRangeKernel", -4,
                 "clEnqueueNDRangeKernel of kernel .*CL_MEM_OBJECT_ALLOCATION_FAILURE"),
                ("clEnqueueWriteBuffer", -5, "clEnqueueWriteBuffer fails with CL_OUT_OF_RESOURCES"),
                ("clEnqueueMarkerWithWaitList", -5, "clEnqueueMarkerWithWaitList"),
                ("clFlush", -36, "clFlush fails with CL_INVALID_COMMAND_QUEUE"),
                ("clWaitForEvents", -14, "clWaitForEvents fails with CL_EXEC_STATUS_ERROR")):
            with self.subTest(fault=fault):
                done = run(fault, result, 1)
                self.assertRegex(done.stderr, words)
                self.assertIn("OPENCL:0", done.stderr)

    def test_opencl_kernels_are_kept_on_disk(self):
        self.need_opencl()
        kept = environment(TENON_CACHE=str(self.folder / "cache"), TENON_DEVICE="OPENCL")
        work = ("bench", "add:4x4", "--repeat", "1")
        self.assertIn("on OPENCL:0", tenon(*work, env=kept).stdout)
        self.assertIn("0 compiled", tenon(*work, env=kept).stdout)

    def test_absent_cuda_is_told(self):
        driver = self.file("libcuda.so.1")
        driver.write_bytes(b"nothing")
        here = {"LD_LIBRARY_PATH": str(self.folder), "TENON_NVRTC": ""}
        self.assertRegex(self.device("CUDA:0", **here)["absent"],
                         r"^the CUDA driver is missing \(.*libcuda\.so\.1.*\): install NVIDIA's")
        source = self.file("empty.c")
        source.write_text("int nothing;\n")
        subprocess.run(["cc", "-shared", "-o", driver, source], check=True)
        self.assertRegex(self.device("CUDA:0", **here)["absent"],
                         r"^the CUDA driver has no cuInit \(CUDA 11\.1 needed\)")
        failed = tenon("bench", "add:4x4", "--repeat", "1", "--device", "CUDA", status=1,
                       env=environment(**here)).stderr
        self.assertIn("device CUDA:0: the CUDA driver has no cuInit", failed)

    def stand_in(self, **variables):
        """Returns the environment in which two devices stand in for CUDA's."""
        if os.environ.get("TENON_SANITIZE"):
            self.skipTest("the stand-in driver is not made for sanitizers")
        return environment(**{"LD_LIBRARY_PATH": str(TENON.parent / "tests/cuda"),
                              "TENON_NVRTC": "", "TENON_DEVICE": "CUDA", **variables})

    def test_failures_of_the_cuda_driver_are_told(self):
        work = ("bench", "add:4x4", "--repeat", "1")
        for fault, words in (
                ("", "on CUDA:0"),
                ("cuInit:100", "device CUDA:0: the CUDA driver finds no device"),
                ("cuDeviceGetName:1", "the CUDA driver tells nothing of device 0: CUDA_ERROR_INVALID_VALUE"),
                ("cuDevicePrimaryCtxRetain:2", "cuDevicePrimaryCtxRetain fails with CUDA_ERROR_OUT_OF"),
                ("cuMemAlloc:2", "CUDA:0 .*cuMemAlloc fails with CUDA_ERROR_OUT_OF_MEMORY"),
                ("cuModuleLoadDataEx:209", "cuModuleLoadDataEx fails with CUDA_ERROR_NO_BINARY_FOR"),
                ("cuLaunchKernel:701", "cuLaunchKernel of kernel .* CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"),
                ("cuEventRecord:400:3", "cuEventRecord fails with CUDA_ERROR_INVALID_HANDLE"),
                ("kernel:719", "CUDA:0 .*CUDA_ERROR_LAUNCH_FAILED \\(unspecified launch failure\\)")):
            with self.subTest(fault=fault):
                done = tenon(*work, status=1 if fault else 0, env=self.stand_in(STAND_IN_FAIL=fault))
                self.assertRegex(done.stderr if fault else done.stdout, words)

    def test_graphs_are_explained(self):
        nodes = [helper.make_node("CumSum", ["x", "axis"], ["y"]),
                 helper.make_node("CumSum", ["y", "axis"], ["z"])]
        path = model(self.file("sums.onnx"), nodes, [value("x", TensorProto.FLOAT, [6])],
                     [value("z", TensorProto.FLOAT, [6])],
                     initializer=[onnx.numpy_helper.from_array(np.array(0), "axis")])
        for fault, words in (
                ("", r"\n2 kernels of CUDA:0 in 1 graph\n"),
                ("cuGraphInstantiate:801", r"\n2 kernels of CUDA:0 in no graph: .*cuGraphInstantiate fails"),
                ("cuGraphLaunch:801", r"\n2 kernels of CUDA:0 in no graph: .*cuGraphLaunch fails")):
            with self.subTest(fault=fault):
                done = tenon("explain", path, env=self.stand_in(STAND_IN_FAIL=fault))
                self.assertRegex(done.stdout, words)

    def test_cuda_kernels_are_kept_on_disk(self):
        kept = self.stand_in(TENON_CACHE=str(self.folder / "cache"))
        work = ("bench", "add:4x4", "--repeat", "1")
        self.assertIn("1 compiled", tenon(*work, env=kept).stdout)
        self.assertIn("0 compiled", tenon(*work, env=kept).stdout)
        # A device that is lost says nothing against a kernel.
        done = tenon(*work, status=1, env={**kept, "STAND_IN_FAIL": "cuModuleLoadDataEx:700"})
        self.assertRegex(done.stderr, "cuModuleLoadDataEx fails with CUDA_ERROR_ILLEGAL_ADDRESS")
        self.assertIn("0 compiled", tenon(*work, env=kept).stdout)
        # Cached kernels need the driver alone.
        kept["TENON_NVRTC"] = "/nowhere/libnvrtc.so.12"
        self.assertIn("0 compiled", tenon(*work, env=kept).stdout)
        self.assertIn("NVRTC, the compiler of CUDA C, is missing (/nowhere/libnvrtc.so.12)",
                      tenon("bench", "add:5x4", env=kept, status=1).stderr)
        self.assertIn("is missing (/nowhere/libnvrtc.so.12): install CUDA's toolkit",
                      tenon("devices", env=kept).stdout)

    def test_a_machine_without_a_compiler_is_told(self):
        self.file("env").symlink_to(shutil.which("env"))
        without = environment(PATH=str(self.folder), CC="", TENON_LLVM="off")
        done = tenon("devices", env=without)
        self.assertIn("cannot be used", done.stdout)
        told = json.loads(tenon("devices", "--json", env=without).stdout)
        self.assertIn("gcc", told["devices"][0]["absent"])
        self.assertIn("LLVM would do too, but TENON_LLVM switches it off", told["devices"][0]["absent"])
        self.assertEqual(told["compilers"], [])

    @unittest.skipIf(os.environ.get("TENON_SANITIZE"), "kernels of C are instrumented")
    @unittest.skipUnless((TENON.parent / "tenon-llvm.so").exists(), "there is no LLVM module")
    def test_llvm_is_named_among_compilers(self):
        only = environment(PATH=str(self.folder), CC="", TENON_CC="", TENON_PAIR="")
        told = json.loads(tenon("devices", "--json", env=only).stdout)["compilers"]
        self.assertEqual([(k["used"], k["version"].split()[0]) for k in told], [(True, "LLVM")])
        self.assertEqual(json.loads(tenon("version", "--json", env=only).stdout)["compiler"],
                         told[0]["version"])
        for pair, first in ("c/cc", False), ("llvm/llvm", True):
            told = json.loads(tenon("devices", "--json", env=environment(TENON_PAIR=pair)).stdout)
            self.assertEqual([k["used"] for k in told["compilers"]],
                             [True] + [False] * (len(told["compilers"]) - 1))
            self.assertEqual(told["compilers"][0]["version"].startswith("LLVM"), first)

    def test_a_compiler_that_does_not_do_is_named(self):
        work = ("bench", "add:4x4", "--repeat", "1")
        for words in ("gcc -m32", "gcc -S", "gcc -flto", "gcc -no-such-word"):
            for name in ("CC", "TENON_CC"):
                with self.subTest(words=words, name=name):
                    done = tenon(*work, status=1, env=environment(**{name: words}))
                    self.assertIn(f'"{words}" ({name})', done.stderr)
        tenon(*work, env=environment(CC="gcc -m32", TENON_CC="gcc"))
        done = tenon("devices", env=environment(CC="gcc -m32", TENON_CC="no-such-cc",
                                                TENON_LLVM="off"))
        self.assertIn('the C compiler "no-such-cc" (TENON_CC) does not start', done.stdout)
        done = tenon(*work, status=1, env=environment(TENON_CC="no-such-cache gcc"))
        self.assertIn('"no-such-cache gcc" (TENON_CC)', done.stderr)
        self.assertIn('there is no program "no-such-cache"', done.stderr)

    def test_a_compiler_ends_with_the_command(self):
        script, begun = self.file("slow"), self.file("begun")
        script.write_text('#!/bin/sh\n[ "$1" = --version ] && exec gcc --version\n'
                          f"sleep 1000 & echo >{begun}; wait\n")
        script.chmod(0o700)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number), \
                    subprocess.Popen([TENON, "bench", "add:4x4"], stderr=subprocess.PIPE,
                                     env=environment(TENON_CC=str(script))) as process:
                wait_until(begun.exists)
                process.send_signal(number)
                process.communicate(timeout=100)
                self.assertEqual(process.returncode, -number)
                wait_until(lambda: not any_runs(script))
            begun.unlink()

    def test_signals_that_are_ignored_stay_so(self):
        def ignore():
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        with subprocess.Popen([TENON, "run", self.binary(), "--input=a=-"], stdin=subprocess.PIPE,
                              stderr=subprocess.PIPE, preexec_fn=ignore) as process:
            process.send_signal(signal.SIGHUP)
            self.assertIn(b"is not a .npy file", process.communicate(b"", timeout=100)[1])
            self.assertEqual(process.returncode, 1)

    def test_programs_are_found_without_a_path(self):
        without = environment(PATH="")
        self.assertNotIn("none was found", tenon("version", env=without).stdout)
        tenon("bench", "add:4x4", "--repeat", "1", env=without)

    def test_a_device_that_computes_nothing_is_told(self):
        done = tenon("bench", "add:4x4", "--repeat", "1", env=environment(TENON_DEVICE="NULL"))
        self.assertIn("NULL:0 computes nothing", done.stderr)
        done = tenon("bench", "add:4x4", "--repeat", "1", "--device", "NULL")
        self.assertIn("NULL:0 computes nothing", done.stderr)
        self.assertEqual(tenon("bench", "add:4x4", "--repeat", "1").stderr, "")

    def test_an_unknown_device_is_told(self):
        done = tenon("run", self.binary(), "--device", "ABACUS", status=1)
        self.assertIn('unknown device "ABACUS"', done.stderr)
        self.assertIn("CPU", done.stderr)
        done = tenon("run", self.binary(), "--device", "CPU:one", status=1)
        self.assertIn('device "CPU:one": "one" is no number from 0 to 9999', done.stderr)

    def test_names_of_devices_have_any_case(self):
        self.assertIn(" on CPU:1, ", tenon("bench", "add:4x4", "--repeat", "1", "--device", "cpu:1").stdout)
        self.assertIn("device NULL:0 computes nothing",
                      tenon("bench", "add:4x4", "--repeat", "1", env=environment(TENON_DEVICE="null")).stderr)

    def test_how_data_gets_to_a_device(self):
        self.assertEqual(self.device("NULL:0")["copies"], "directly, to memory that the host addresses")
        plugin = str(TENON.parent / "tests" / "ref_backend.so")
        self.assertIn("through staging memory", self.device("REF:0", TENON_BACKEND=plugin)["copies"])

    def test_other_devices_have_no_share_of_the_peak(self):
        done = tenon("bench", "matmul:64x64x64", "--repeat", "2", "--device", "NULL", "--threads", "1")
        self.assertIn("\npeak     unknown: only this process's processor is measured, not NULL:0\n",
                      done.stdout)
        self.assertNotIn("thread", done.stdout)
        self.assertIn("--threads counts for CPU; NULL:0 decides on its own threads", done.stderr)
        told = json.loads(tenon("bench", "matmul:64x64x64", "--repeat", "2", "--json", "--device",
                                "NULL").stdout)
        self.assertIsNone(told["peak_fraction"])
        self.assertIsNone(told["peak_gflops"])
        run = ("run", self.binary(), "--profile", "--device", "NULL")
        self.assertIn("the peaks are unknown: only this process's processor", tenon(*run).stdout)
        told = json.loads(tenon(*run, "--json").stdout)["profile"]
        self.assertEqual((told["peak_gflops"], told["peak_gbps"]), (None, None))
        self.assertEqual([s["peak_fraction"] for s in told["steps"]], [None] * len(told["steps"]))
        done = tenon("bench", "matmul:64x64x64", "--repeat", "2", "--threads", "1")
        self.assertIn(", 1 thread\n", done.stdout)
        self.assertIn(" of the measured ", done.stdout)
        self.assertEqual(done.stderr, "")


class Inspect(Case):
    def test_what_a_model_holds(self):
        weights = [helper.make_tensor("w", TensorProto.FLOAT, [1, 3], np.zeros(3)),
                   helper.make_tensor("h", TensorProto.FLOAT16, [4], np.zeros(4))]
        nodes = [helper.make_node("Mul", ["x", "w"], ["t"]),
                 helper.make_node("Add", ["t", "x"], ["s"]),
                 helper.make_node("Add", ["s", "x"], ["y"])]
        path = model(self.file("m.onnx"), nodes,
                     [value("x", TensorProto.FLOAT, ["batch", 3]),
                      value("w", TensorProto.FLOAT, [1, 3])],
                     [value("y", TensorProto.FLOAT, ["batch", 3])], initializer=weights)
        told = json.loads(tenon("inspect", path, "--json").stdout)
        self.assertEqual(told["producer"], "maker")
        self.assertEqual(told["opsets"], {"ai.onnx": 17, "other.domain": 3})
        self.assertEqual([i["name"] for i in told["inputs"]], ["x"])
        self.assertEqual(told["inputs"][0]["shape"], ["batch", 3])
        self.assertEqual(told["inputs"][0]["type"], "f32 [batch, 3]")
        self.assertEqual(told["operators"], {"Add": 2, "Mul": 1})
        self.assertEqual(told["parameters"],
                         {"tensors": 2, "elements": 7, "bytes": 20, "external": 0})
        self.assertEqual((told["unsupported"], told["checked"]), ([], "all"))
        text = tenon("inspect", path).stdout
        self.assertIn("supported  yes", text)
        alone = environment(PATH=str(self.folder), CC="", TENON_THREADS="nonsense")
        self.assertEqual(tenon("inspect", path, env=alone).stdout, text)
        for words in ("maker", "ai.onnx 17", "f32 [batch, 3]", "7 in 2 tensors", "2 Add"):
            self.assertIn(words, text)

    def test_limits_hold_and_nothing_else_of_the_environment(self):
        path = self.binary()
        text = tenon("inspect", path).stdout
        others = dict.fromkeys(("TENON_DEVICE", "TENON_PAIR", "TENON_CPU", "TENON_MATH", "TENON_DUMP",
                                "TENON_BACKEND", "TENON_CC", "TENON_VENDOR"), "nonsense")
        wide = environment(TENON_MEMORY="1G", TENON_COMPILE_SECONDS="100", **others)
        self.assertEqual(tenon("inspect", path, env=wide).stdout, text)
        for name, limit, words in (("TENON_MEMORY", "20K", "out of memory"),
                                   ("TENON_MEMORY", "20K", "TENON_MEMORY=20K is too little"),
                                   ("TENON_COMPILE_SECONDS", "0.000001", "longer than 1e-06 s"),
                                   ("TENON_MEMORY", "4 pages", "not a number of bytes"),
                                   ("TENON_COMPILE_SECONDS", "-1", "not a number of seconds")):
            with self.subTest(name=name, limit=limit):
                done = tenon("inspect", path, status=1, env=environment(**{name: limit}))
                self.assertIn(words, done.stderr)
                self.assertEqual(done.stdout, "")

    def test_a_limit_of_memory_says_how_much_of_it_is_in_use(self):
        done = tenon("run", self.binary(), status=1, env=environment(TENON_MEMORY="1M", TENON_CACHE="off"))
        self.assertRegex(done.stderr, r"out of memory \([0-9.]+ [KM]iB\): [0-9.]+ [KM]iB of the limit of 1\.0 MiB are in use\n")

    def test_memory_is_told_before_running(self):
        path = self.binary()
        told = json.loads(tenon("inspect", path, "--memory", "--size=n=8", "--json").stdout)
        self.assertEqual(told["memory"], {"inputs": 2 * 8 * 3 * 4, "outputs": 8 * 3 * 4,
                                          "weights": 0, "scratch": 0, "total": 3 * 8 * 3 * 4,
                                          "uncounted_arrays": 0, "uncounted_loops": 0})
        done = tenon("inspect", path, "--memory")
        self.assertIn("memory     36 B: inputs 24 B, outputs 12 B, weights 0 B", done.stdout)
        self.assertNotIn("not counted", done.stdout)
        self.assertIn("default to n = 1", done.stderr)
        self.assertNotIn("memory", tenon("inspect", path).stdout)
        self.assertNotIn("memory", json.loads(tenon("inspect", path, "--json").stdout))

    def test_memory_follows_from_given_inputs(self):
        path = model(self.file("m.onnx"), [helper.make_node("Reshape", ["x", "s"], ["y"])],
                     [value("x", TensorProto.FLOAT, ["n"]), value("s", TensorProto.INT64, [2])],
                     [value("y", TensorProto.FLOAT, None)])
        told = tenon("inspect", path, "--memory", "--input=s=[2, 3]", "--input=x=6", "--json").stdout
        memory = json.loads(told)["memory"]
        self.assertEqual((memory["inputs"], memory["outputs"]), (6 * 4 + 2 * 8, 6 * 4))
        self.misuse("inspect", path, "--input=x=6", says="--input needs --memory")
        self.misuse("inspect", path, "--memory", "--input=q=6", says='the model has no input "q"')

    def test_memory_follows_from_given_lengths_and_sizes(self):
        listed = self.file("list.onnx")
        graph = helper.make_graph(
            [helper.make_node("ConcatFromSequence", ["q"], ["y"], axis=0)], "g",
            [helper.make_tensor_sequence_value_info("q", TensorProto.FLOAT, [2])],
            [value("y", TensorProto.FLOAT, ["n"])])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), listed)
        done = tenon("inspect", listed, "--memory", "--input=q[1]=[3, 4]", "--json")
        self.assertEqual(done.stderr, "")
        self.assertEqual(json.loads(done.stdout)["memory"]["inputs"], 2 * 2 * 4)
        self.assertIn("makes it longer", tenon("inspect", listed, "--memory").stderr)
        sized = model(self.file("sized.onnx"),
                      [helper.make_node("MatMul", ["x", "w"], ["p"]),
                       helper.make_node("SequenceConstruct", ["p", "p"], ["y"])],
                      [value("x", TensorProto.FLOAT, ["n", "m"])],
                      [helper.make_tensor_sequence_value_info("y", TensorProto.FLOAT, None)],
                      initializer=[helper.make_tensor("w", TensorProto.FLOAT, [5, 2], range(10))])
        self.assertNotIn("supported  yes", tenon("inspect", sized, status=1).stdout)
        done = tenon("inspect", sized, "--memory", "--input=x=3x5", "--json")
        self.assertIn("only for the sizes of the given inputs; tenon inspect without --input shows why", done.stderr)
        told = json.loads(done.stdout)
        self.assertEqual((told["memory"]["inputs"], told["problems"]), (3 * 5 * 4, []))
        told = json.loads(tenon("inspect", sized, "--memory", "--input=x=3x4", "--json", status=1).stdout)
        reasons = ["inner sizes differ (a is 3x4, b is 5x2): 4 is not 5"]
        self.assertEqual([p["reason"] for p in told["problems"]], reasons)
        graph = helper.make_graph(
            [helper.make_node("ConcatFromSequence", ["q"], ["c"], axis=0),
             helper.make_node("MatMul", ["x", "w"], ["p"]),
             helper.make_node("SequenceConstruct", ["p", "c"], ["y"])], "g",
            [helper.make_tensor_sequence_value_info("q", TensorProto.FLOAT, ["k"]),
             value("x", TensorProto.FLOAT, ["n", "m"])],
            [helper.make_tensor_sequence_value_info("y", TensorProto.FLOAT, None)],
            [helper.make_tensor("w", TensorProto.FLOAT, [5, 2], range(10))])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), listed)
        told = json.loads(tenon("inspect", listed, "--memory", "--input=q[0]=2", "--input=x=3x4", "--json",
                                status=1).stdout)
        self.assertEqual([p["reason"] for p in told["problems"]], reasons)

    def test_memory_says_what_it_leaves_out(self):
        path = model(self.file("m.onnx"), [helper.make_node("NonZero", ["x"], ["y"])],
                     [value("x", TensorProto.FLOAT, [4])], [value("y", TensorProto.INT64, [1, "k"])])
        told = json.loads(tenon("inspect", path, "--memory", "--json").stdout)["memory"]
        self.assertGreaterEqual(told["uncounted_arrays"], 1)
        self.assertEqual((told["outputs"], told["uncounted_loops"]), (0, 0))
        self.assertRegex(tenon("inspect", path, "--memory").stdout,
                         r"\n {11}not counted: \d+ arrays? whose sizes a run computes\n")
        path = self.growing()
        told = json.loads(tenon("inspect", path, "--memory", "--json").stdout)["memory"]
        self.assertEqual(told["uncounted_loops"], 1)
        self.assertRegex(tenon("inspect", path, "--memory").stdout,
                         r"\n {11}not counted: (\d+ arrays? .*, )?what 1 loop of the host needs\n")

    def test_all_that_is_not_supported_is_told_at_once(self):
        nodes = [helper.make_node("Twist", ["x"], ["a"], "first"),
                 helper.make_node("Tanh", ["a"], ["b"]),
                 helper.make_node("Twist", ["b"], ["c"], "second"),
                 helper.make_node("Turn", ["c"], ["y"], "third", domain="other.domain")]
        path = model(self.file("m.onnx"), nodes, [value("x", TensorProto.FLOAT, [3])],
                     [value("y", TensorProto.FLOAT, [3])])
        done = tenon("inspect", path, status=1)
        for words in ("Twist", "first", "second", "Turn", "other.domain", "third"):
            self.assertIn(words, done.stdout)
        told = json.loads(tenon("inspect", path, "--json", status=1).stdout)
        self.assertEqual(len(told["unsupported"]), 2)
        self.assertEqual(told["operators"],
                         {"Twist": 2, "Tanh": 1, "other.domain.Turn": 1})

    def test_what_cannot_be_loaded_is_not_supported(self):
        three = value("y", TensorProto.FLOAT, None)
        for inputs, says in (
                ([value("x", TensorProto.STRING, [3])], "'x' is a tensor of strings"),
                ([value("x", TensorProto.FLOAT, None)], "'x' is not a tensor of known rank"),
                ([value("x", TensorProto.FLOAT, [1] * 17)], "'x' has 17 dimensions"),
                ([value("x", TensorProto.FLOAT, [2, 3]), value("z", TensorProto.FLOAT, [4])],
                 "Add")):
            with self.subTest(says=says):
                path = model(self.file("m.onnx"),
                             [helper.make_node("Add", [inputs[0].name, inputs[-1].name], ["y"])],
                             inputs, [three])
                self.assertIn(says, tenon("run", path, status=1).stderr)
                done = tenon("inspect", path, status=1)
                self.assertIn(says, done.stdout)
                self.assertNotIn("supported  yes", done.stdout)
                told = json.loads(tenon("inspect", path, "--json", status=1).stdout)
                self.assertEqual(len(told["unsupported"]), 1)
                self.assertFalse(told["unsupported"][0].startswith(str(path)))

    def broken(self, nodes, inputs, opset=17, **kwargs):
        """Makes a model whose outputs are those of all nodes."""
        return model(self.file("broken.onnx"), nodes, inputs,
                     [value(name, TensorProto.FLOAT, None) for n in nodes for name in n.output],
                     opset=opset, **kwargs)

    def test_all_problems_are_told_at_once(self):
        node = helper.make_node
        x, y = value("x", TensorProto.FLOAT, [2, 3]), value("y", TensorProto.FLOAT, [2, 5])
        text = onnx.TensorProto(name="t", data_type=TensorProto.STRING, dims=[1],
                                string_data=[b"a"])
        cases = (
            ("shapes, and what reads their results",
             [node("MatMul", ["x", "y"], ["a"], "first"), node("Add", ["a", "x"], ["b"], "reads it"),
              node("Concat", ["x", "y"], ["c"], "second", axis=0),
              node("Transpose", ["x"], ["d"], "third", perm=[0, 0]),
              node("Exp", ["x"], ["e"], "right")], [x, y], 17, {},
             [("MatMul", "first", "3 is not 2"), ("Concat", "second", "shape 2x5"),
              ("Transpose", "third", "axis 0 is listed twice")]),
            ("operators, attributes, numbers of inputs",
             [node("Gelu", ["x"], ["a"], "first", domain="other.domain"),
              node("Exp", ["x"], ["b"], "second", nothing=1),
              node("MatMul", ["x"], ["c"], "third"), node("Gelu", ["x"], ["d"], "fourth",
                                                          domain="other.domain")], [x], 17, {},
             [("Gelu", "first", "of this domain are not supported"),
              ("Exp", "second", "unknown attribute 'nothing'"),
              ("MatMul", "third", "expected 2 inputs, got 1")]),
            ("types, ranks, new operators, constants",
             [node("Gelu", ["x"], ["a"], "first"), node("Neg", ["s"], ["b"]),
              node("Neg", ["r"], ["c"]), node("Exp", ["t"], ["d"]), node("Abs", ["x"], ["e"])],
             [x, value("s", TensorProto.STRING, [3]), value("r", TensorProto.FLOAT, None)], 8,
             {"initializer": [text]},
             [("Gelu", "first", "newer than the model's opset"),
              (None, None, "'r' is not a tensor of known rank"),
              ("Neg", "b", "input 's' is a tensor of strings"),
              ("Exp", "d", "input 't' is a tensor of strings")]))
        for title, nodes, inputs, opset, more, expected in cases:
            with self.subTest(title):
                path = self.broken(nodes, inputs, opset, **more)
                done = tenon("inspect", path, status=1)
                told = json.loads(tenon("inspect", path, "--json", status=1).stdout)
                self.assertEqual(len(told["problems"]), len(expected), told["problems"])
                for p, line, (op, name, says) in zip(told["problems"], told["unsupported"], expected):
                    self.assertEqual((p["operator"], p["nodes"][:1]), (op, [name] if name else []))
                    self.assertIn(says, p["reason"])
                    self.assertIn(f"  {line}\n", done.stdout)
                    for part in (p["reason"], p["nearest"], op, name):
                        self.assertIn(part or "", line)
        self.assertIn("MatMul node 'first' (opset 17): ", tenon(
            "inspect", self.broken(cases[0][1], [x, y]), status=1).stdout)

    def test_the_nearest_supported_form_is_told(self):
        x = value("x", TensorProto.FLOAT, [2, 3])
        node = helper.make_node

        def told(nodes, inputs, opset=17):
            path = self.broken(nodes, inputs, opset)
            return json.loads(tenon("inspect", path, "--json", status=1).stdout)["problems"]

        gelu, new = told([node("Gelu", ["x"], ["a"], domain="other.domain"),
                          node("Attention", ["x"], ["b"])], [x], 8)
        self.assertEqual((gelu["domain"], gelu["opset"], gelu["newest"]), ("other.domain", 3, None))
        self.assertIn("ai.onnx has an operator of this name from opset 20 on", gelu["nearest"])
        self.assertIn("supported from opset 23 on", new["nearest"])
        self.assertEqual((new["opset"], new["version"]), (8, None))
        self.assertGreaterEqual(new["newest"], 25)
        kind, = told([node("Neg", ["s"], ["a"])], [value("s", TensorProto.COMPLEX64, [2])])
        self.assertRegex(kind["nearest"], r"\Atypes are f32, .*bool, f16")
        shape, = told([node("MatMul", ["x", "x"], ["a"])], [x])
        self.assertEqual((shape["opset"], shape["version"], shape["newest"]), (17, 13, 13))
        new, = told([node("Neg", ["x"], ["a"])], [x], 99)
        self.assertIn("the newest supported opset is", new["reason"])

    def test_minima_of_sizes_are_no_problems(self):
        pool = helper.make_node("MaxPool", ["p"], ["q"], kernel_shape=[3, 3])
        path = self.broken([pool, helper.make_node("MatMul", ["x", "x"], ["a"], "wrong")],
                           [value("p", TensorProto.FLOAT, [1, 1, "h", "w"]),
                            value("x", TensorProto.FLOAT, [2, 3])])
        told = json.loads(tenon("inspect", path, "--json", status=1).stdout)
        self.assertEqual([p["nodes"] for p in told["problems"]], [["wrong"]])

    def test_elements_of_inputs_are_no_problems(self):
        path = self.broken([helper.make_node("MatMul", ["x", "x"], ["a"], "wrong"),
                            helper.make_node("Reshape", ["x", "s"], ["y"]),
                            helper.make_node("Add", ["y", "x"], ["z"])],
                           [value("x", TensorProto.FLOAT, [2, 3]), value("s", TensorProto.INT64, [2])])
        told = json.loads(tenon("inspect", path, "--json", status=1).stdout)
        self.assertEqual([p["nodes"] for p in told["problems"]], [["wrong"]])

    def test_facts_and_variants(self):
        told = lambda *args: json.loads(tenon("inspect", *args, "--json").stdout)
        path = self.binary()
        self.assertEqual(told(path)["facts"], [{"name": "n", "kind": "size", "of": ["a:0", "b:0"]}])
        self.assertEqual(told(path)["variants"], "sizes")
        text = tenon("inspect", path).stdout
        self.assertIn("\nfacts      n (a:0, b:0)\nvariants   one for the sizes of the first run", text)
        self.assertEqual((told(path, "--size=n=4")["facts"], told(path, "--size=n=4")["variants"]),
                         ([], "one"))
        path = model(self.file("m.onnx"), [helper.make_node("Reshape", ["x", "s"], ["y"])],
                     [value("x", TensorProto.FLOAT, ["n", 3]), value("s", TensorProto.INT64, [2])],
                     [value("y", TensorProto.FLOAT, ["a", "b"])])
        self.assertEqual([f["kind"] for f in told(path)["facts"]], ["size", "elements"])
        self.assertEqual(told(path)["variants"], "values")
        text = tenon("inspect", path).stdout
        self.assertIn("\nfacts      n (x:0), elements of s\nvariants   one for each set of elements", text)
        self.assertIn("\n           from an input's third value on, one for all that", text)

    def halved(self):
        """y = x as rows of two: its sizes are known exactly at each run."""
        two = helper.make_tensor("two", TensorProto.INT64, [1], [2])
        nodes = [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Div", ["s", "two"], ["h"]),
                 helper.make_node("Concat", ["h", "two"], ["to"], axis=0),
                 helper.make_node("Reshape", ["x", "to"], ["y"], "halving")]
        return model(self.file("halved.onnx"), nodes, [value("x", TensorProto.FLOAT, ["n"])],
                     [value("y", TensorProto.FLOAT, ["h", 2])], initializer=[two])

    def test_sizes_that_cannot_be_open_are_told(self):
        path, because = self.halved(), "sizes are known exactly at each run, because of Reshape node 'halving'"
        text = tenon("inspect", path).stdout
        self.assertIn("\nvariants   one for each set of sizes, which is compiled when", text)
        self.assertIn(f"\n           {because}: shape n has n elements", text)
        self.assertIn("\nsupported  yes\n", text)
        told = json.loads(tenon("inspect", path, "--json").stdout)
        self.assertEqual((told["variants"], told["problems"]), ("sizes", []))
        self.assertIn("'n' varies", told["exact_sizes"])
        self.assertIsNone(json.loads(tenon("inspect", path, "--json", "--size=n=4").stdout)["exact_sizes"])
        done = tenon("run", path)  # of sizes that fit
        self.assertIn("the sizes of the model are known exactly at each run; tenon inspect shows why", done.stderr)
        self.assertIn("input x: varying sizes default to n = 2\n", done.stderr)
        self.assertIn("y: f32 [1, 2]", done.stdout)
        failed = tenon("run", path, "--size=n=..1", status=1).stderr
        self.assertIn("the sizes of the model are known exactly at each run; tenon inspect shows why", failed)
        self.assertIn(f"{path}: Reshape node 'halving': shape 1 has 1 elements", failed)
        self.assertIn("--size NAME=SPEC fixes", failed.splitlines()[-1])
        told = json.loads(tenon("run", path, "--json", "--input=x=8").stdout)
        self.assertEqual(told["outputs"][0]["shape"], [4, 2])
        data = self.file("x.npy")
        np.save(data, np.arange(6, dtype=np.float32))
        told = json.loads(tenon("run", path, "--json", f"--input=x={data}", "--size=n=2..9").stdout)
        self.assertEqual(told["outputs"][0]["shape"], [3, 2])
        even = model(self.file("even.onnx"), [helper.make_node("MatMul", ["x", "x"], ["y"], "squaring")],
                     [value("x", TensorProto.FLOAT, ["a", "b"])], [value("y", TensorProto.FLOAT, None)])
        self.assertIn("\nsupported  yes\n", tenon("inspect", even, "--size=a=2..6").stdout)
        done = tenon("inspect", even, "--memory")
        self.assertIn("sizes that are known when the model runs; fix them by --size, "
                      "for example --size a=1 --size b=1\n", done.stderr)
        self.assertIn("for example --size n=2\n", tenon("inspect", path, "--memory").stderr)
        self.assertIn("\nsupported  yes\n", done.stdout)
        scaled = model(self.file("scaled.onnx"), [
            helper.make_node("MatMul", ["x", "x"], ["z"], "squaring"),
            helper.make_node("Mul", ["z", "s"], ["y"], "scaling")],
            [value("x", TensorProto.FLOAT, ["a", "b"]), value("s", TensorProto.FLOAT, [])],
            [value("y", TensorProto.FLOAT, None)])
        told = json.loads(tenon("run", scaled, "--json", "--input=x=ones:2x2", "--input=s=[3]").stdout)
        self.assertEqual(told["outputs"][0]["first"], [6] * 4)
        page = self.file("page.html")
        tenon("explain", even, "-o", page)
        self.assertIn("Note: sizes are known exactly at each run, because of MatMul node &#39;squaring&#39;",
                      page.read_text().replace("'", "&#39;"))
        self.assertIn("\nsizes are known exactly at each run, because of MatMul node 'squaring'",
                      tenon("explain", even).stdout)

    def growing(self):
        """y is x three times doubled in length, by a loop of the host."""
        f32 = TensorProto.FLOAT
        steps = helper.make_graph(
            [helper.make_node("Concat", ["s", "s"], ["t"], axis=0), helper.make_node("Identity", ["on"], ["goes"])],
            "steps", [value("i", TensorProto.INT64, []), value("on", TensorProto.BOOL, []), value("s", f32, ["n"])],
            [value("goes", TensorProto.BOOL, []), value("t", f32, ["m"])])
        return model(self.file("growing.onnx"),
                     [helper.make_node("Constant", [], ["k"], value_int=3),
                      helper.make_node("Loop", ["k", "", "x"], ["y"], "growth", body=steps)],
                     [value("x", f32, [2])], [value("y", f32, ["m"])])

    def test_loops_of_the_host(self):
        """A loop whose state grows is listed with the reason, and so is its step explained."""
        path = self.growing()
        listed, = json.loads(tenon("inspect", path, "--json").stdout)["host_loops"]
        self.assertRegex(listed, r"\ALoop node 'growth': a loop that the host runs \(state 'x' has shape 2")
        self.assertIn("\nloops      Loop node 'growth': a loop that the host runs", tenon("inspect", path).stdout)
        explained = tenon("explain", path).stdout
        self.assertIn("a loop that the host runs (", explained)
        self.assertIn("\nbodies of loops that the host runs are plans of their own", explained)
        self.assertIn("[16]", tenon("run", path, "--input", "x=ones").stdout)
        self.assertIn("equal", tenon("check", path).stdout)
        self.assertEqual(json.loads(tenon("inspect", self.binary(), "--json").stdout)["host_loops"], [])
        self.assertNotIn("loops that the host runs", tenon("explain", self.binary()).stdout)

    def test_nested_loops_of_the_host(self):
        """A loop in the body of another is listed behind it; one whose body is for each shape says so."""
        f32 = TensorProto.FLOAT

        def loop(name, number, body, inputs, rank):
            steps = helper.make_graph(
                [*body, helper.make_node("Identity", ["on" + number], ["goes" + number])], "steps",
                [value("i" + number, TensorProto.INT64, []), value("on" + number, TensorProto.BOOL, []),
                 value("s" + number, f32, rank)],
                [value("goes" + number, TensorProto.BOOL, []), value("t" + number, f32, rank)])
            return helper.make_node("Loop", inputs, ["t" + str(int(number) - 1)], name, body=steps)
        grown = helper.make_node("Concat", ["s2", "s2"], ["t2"], axis=0)
        k = helper.make_node("Constant", [], ["k"], value_int=2)
        path = model(self.file("m.onnx"),
                     [k, loop("outer", "1", [loop("inner", "2", [grown], ["k", "", "s1"], ["n"])],
                              ["k", "", "x"], ["n"])],
                     [value("x", f32, [2])], [value("t0", f32, ["m"])])
        outer, inner = json.loads(tenon("inspect", path, "--json").stdout)["host_loops"]
        self.assertRegex(outer, r"\ALoop node 'outer': a loop that the host runs \(")
        self.assertRegex(inner, r"\ALoop node 'inner': a loop that the host runs in each step of another \(")
        self.assertIn("[32]", tenon("run", path, "--input", "x=ones").stdout)
        flat = [helper.make_node("Constant", [], ["axis"], value_ints=[-1]),
                helper.make_node("Reshape", ["s1", "axis"], ["r"]),
                helper.make_node("Concat", ["r", "r"], ["t1"], axis=0)]
        path = model(self.file("r.onnx"), [k, loop("flat", "1", flat, ["k", "", "x"], None)],
                     [value("x", f32, [2, 3])], [value("t0", f32, ["m"])])
        listed, = json.loads(tenon("inspect", path, "--json").stdout)["host_loops"]
        self.assertIn("a loop that the host runs, with a plan for each shape of its states (", listed)
        self.assertIn("[24]", tenon("run", path, "--input", "x=ones").stdout)
        self.assertIn("equal", tenon("check", path).stdout)

    def test_operators_of_nested_graphs_count(self):
        inner = helper.make_graph([helper.make_node("Tanh", ["x"], ["z"])], "inner", [],
                                  [value("z", TensorProto.FLOAT, [3])])
        node = helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=inner)
        path = model(self.file("m.onnx"), [node],
                     [value("c", TensorProto.BOOL, []), value("x", TensorProto.FLOAT, [3])],
                     [value("y", TensorProto.FLOAT, [3])])
        done = subprocess.run([TENON, "inspect", path, "--json"], capture_output=True, text=True,
                              check=False)
        self.assertEqual(json.loads(done.stdout)["operators"], {"Tanh": 2, "If": 1})

    def test_names_cannot_steer_the_terminal(self):
        name = "x\x1b[31m\n\u202e\x07"
        path = model(self.file("m.onnx"), [helper.make_node("Tanh", [name], ["y"])],
                     [value(name, TensorProto.FLOAT, ["b\x1b]0;t\x07"])],
                     [value("y", TensorProto.FLOAT, [3])])
        text = tenon("inspect", path).stdout
        self.assertFalse(re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", text))
        self.assertIn(r"x\x1b[31m\n\xe2\x80\xae\x07", text)
        self.assertEqual(json.loads(tenon("inspect", path, "--json").stdout)["inputs"][0]["name"],
                         name)

    def test_a_folder_in_the_place_of_external_data_is_told(self):
        weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4], data_location=1)
        weight.external_data.add(key="location", value=".")
        path = model(self.file("m.onnx"), [helper.make_node("Add", ["x", "w"], ["y"])],
                     [value("x", TensorProto.FLOAT, [4])], [value("y", TensorProto.FLOAT, [4])],
                     initializer=[weight])
        self.assertIn("a folder, not a file", tenon("run", path, status=1).stderr)

    def test_files_of_external_data_need_not_be_there(self):
        weight = onnx.numpy_helper.from_array(np.zeros((40, 40), np.float32), "w")
        path = model(self.file("m.onnx"), [helper.make_node("Add", ["x", "w"], ["y"])],
                     [value("x", TensorProto.FLOAT, [40])], [value("y", TensorProto.FLOAT, None)],
                     initializer=[weight])
        onnx.save(onnx.load(path), path, save_as_external_data=True, location="data.bin")
        self.assertEqual(json.loads(tenon("inspect", path, "--json").stdout)["checked"], "all")
        self.file("data.bin").unlink()
        told = json.loads(tenon("inspect", path, "--json").stdout)
        self.assertEqual(told["parameters"]["external"], 1)
        self.assertEqual(told["parameters"]["bytes"], 6400)
        self.assertEqual((told["unsupported"], told["checked"]), ([], "operators"))
        self.assertIn("supported  all operators;", tenon("inspect", path).stdout)

    def test_outputs_of_another_type_than_the_file_says(self):
        nodes = [helper.make_node("Add", ["x", "x"], [f"y{i}"]) for i in range(6)]
        path = model(self.file("m.onnx"), nodes, [value("x", TensorProto.FLOAT, ["n", 3])],
                     [value("y0", TensorProto.FLOAT, ["n", 4]),
                      value("y1", TensorProto.INT64, ["m", 3]),
                      value("y2", TensorProto.FLOAT, [3]),
                      value("y3", TensorProto.FLOAT, ["m", "k"]),
                      value("y4", TensorProto.FLOAT, [7, 3]),
                      value("y5", TensorProto.FLOAT, None)])
        wrong = ["f32 [n, 3], but the file declares f32 [n, 4]",
                 "f32 [n, 3], but the file declares i64 [m, 3]",
                 "f32 [n, 3], but the file declares f32 [3]"]
        told = tenon("inspect", path)
        self.assertEqual(told.stderr, "")
        self.assertEqual(re.findall(r"(?m)^  y\d  (.*)$", told.stdout),
                         [*wrong, "f32 [m, k]", "f32 [7, 3]", "f32 of any shape"])
        outputs = json.loads(tenon("inspect", path, "--json").stdout)["outputs"]
        self.assertEqual(outputs[0], {"name": "y0", "type": "f32 [n, 3]", "dtype": "f32",
                                      "shape": ["n", 3], "declared": "f32 [n, 4]"})
        self.assertNotIn("declared", outputs[3])
        said = tenon("run", path).stderr
        for i, words in enumerate(wrong):
            self.assertIn(f"tenon run: output y{i} is {words}\n", said)
        self.assertEqual(said.count("but the file declares"), len(wrong))

    def test_what_is_no_model_is_told(self):
        self.file("junk").write_bytes(b"\xff" * 100)
        self.assertIn("junk", tenon("inspect", self.file("junk"), status=1).stderr)
        self.assertIn("none.onnx", tenon("inspect", self.file("none.onnx"), status=1).stderr)
        self.assertIn("a folder, not a file", tenon("inspect", self.folder, status=1).stderr)


class Check(Case):
    """Tests of the comparison of compiled and interpreted results. What the search for a node finds
    is tested with seeded faults in tests/unit/test_find_difference.c."""

    def products(self, n=2):
        """Makes a model whose long sums the compiler and the interpreter round differently."""
        weights = np.random.default_rng(0).standard_normal((300, 300)).astype(np.float32) / 17
        nodes, last = [], "x"
        for i in range(n):
            nodes += [helper.make_node("MatMul", [last, "w"], [f"p{i}"], f"product {i}"),
                      helper.make_node("Relu", [f"p{i}"], [f"r{i}"])]
            last = f"r{i}"
        return model(self.file("products.onnx"), nodes, [value("x", TensorProto.FLOAT, ["n", 300])],
                     [value(last, TensorProto.FLOAT, ["n", 300])],
                     initializer=[onnx.numpy_helper.from_array(weights, "w")])

    def test_equal_results(self):
        path = self.products()
        done = tenon("check", path, "--input=x=3x300", "--seed=7")
        self.assertRegex(done.stdout, r"\Aseed +7\noutput +type +difference +relative +tolerance  ")
        self.assertRegex(done.stdout, r"\nr1 +f32 \[3, 300\] .* 0\.001  0 of 900\n")
        self.assertIn("\nequal      1 output within the tolerance\n", done.stdout)
        told = json.loads(tenon("check", path, "--json", "--size=n=2").stdout)
        self.assertEqual((told["equal"], told["seed"], told["first"]), (True, 0, None))
        self.assertEqual([(o["name"], o["shape"], o["beyond"], o["elements"])
                          for o in told["outputs"]], [("r1", [2, 300], 0, 600)])
        file = self.array("x.npy", np.ones((2, 300), np.float32))
        told = json.loads(tenon("check", path, "--json", f"--input=x={file}").stdout)
        self.assertEqual((told["equal"], told["seed"]), (True, None))

    def test_values_of_nodes(self):
        path = self.products()
        told = json.loads(tenon("check", path, "--nodes", "--json").stdout)
        self.assertEqual([(v["name"], v["node"], v["operator"], v["equal"]) for v in told["nodes"]],
                         [("p0", "product 0", "MatMul", True), ("r0", "r0", "Relu", True),
                          ("p1", "product 1", "MatMul", True), ("r1", "r1", "Relu", True)])
        done = tenon("check", path, "--nodes")
        self.assertRegex(done.stdout, r"\nMatMul p1 +f32 \[1, 300\] ")
        self.assertIn("equal      1 output within the tolerance, and 4 node values\n", done.stdout)

    def test_differences_end_with_1(self):
        path = self.products()
        for how in ((), ("--bisect",), ("--nodes",)):
            with self.subTest(how=how):
                done = tenon("check", path, "--tolerance=0", *how, status=1)
                self.assertRegex(done.stdout, r"\nfirst      MatMul node 'product 0' of products.onnx: "
                                 r"p0 is \S+ at \[\d+, \d+\], not \S+; \d+ of 300 beyond the "
                                 r"tolerance, by up to ")
                self.assertIn("\ncause      from equal inputs the node sums differently", done.stdout)
                self.assertNotIn("equal      ", done.stdout)
                told = json.loads(tenon("check", path, "--tolerance=0", "--json", *how,
                                        status=1).stdout)
                first = told["first"]
                self.assertFalse(told["equal"] or first["equal"])
                self.assertEqual((first["node"], first["operator"], first["name"], first["cause"]),
                                 ("product 0", "MatMul", "p0", "sums"))

    def test_bisection_takes_few_runs(self):
        path = self.products(40)
        told = json.loads(tenon("check", path, "--tolerance=0", "--json", "--bisect",
                                status=1).stdout)
        self.assertEqual(told["first"]["node"], "product 0")
        self.assertLess(told["first"]["runs"], 6)
        shown = on_terminal("check", str(path), "--tolerance=0", "--bisect", TERM="xterm")
        self.assertRegex(shown, r"\rrun [12], \d+ node values left\x1b\[K")

    def test_types_shapes_and_special_numbers(self):
        with_nan = self.array("x.npy", np.array([np.nan, np.inf, -np.inf, -1, 0, 2], np.float32))
        path = model(self.file("m.onnx"),
                     [helper.make_node("Sqrt", ["x"], ["y"]),
                      helper.make_node("Greater", ["x", "x"], ["z"]),
                      helper.make_node("Slice", ["x", "from", "to"], ["none"])],
                     [value("x", TensorProto.FLOAT, ["n"])],
                     [value("y", TensorProto.FLOAT, None), value("z", TensorProto.BOOL, None),
                      value("none", TensorProto.FLOAT, None)],
                     initializer=[helper.make_tensor("from", TensorProto.INT64, [1], [0]),
                                  helper.make_tensor("to", TensorProto.INT64, [1], [0])])
        told = json.loads(tenon("check", path, f"--input=x={with_nan}", "--nodes", "--json").stdout)
        y, z, none = told["outputs"]
        self.assertEqual((y["nans"], y["expected_nans"], y["infinities"]), (3, 3, 1))
        self.assertEqual((z["type"], z["tolerance"], z["equal"]), ("bool", 0, True))
        self.assertEqual((none["shape"], none["elements"], none["equal"]), ([0], 0, True))
        self.assertTrue(told["equal"])
        for elem, tolerance in ((TensorProto.FLOAT16, 0.02), (TensorProto.BFLOAT16, 0.1),
                                (TensorProto.DOUBLE, 1e-9), (TensorProto.INT8, 0)):
            told = json.loads(tenon("check", self.binary("Add", elem), "--json").stdout)
            self.assertEqual((told["equal"], told["outputs"][0]["tolerance"]), (True, tolerance))
        self.assertEqual(json.loads(tenon("check", self.binary(), "--input=a=0x3", "--json").stdout)
                         ["outputs"][0]["elements"], 0)

    def test_elements_that_decide_on_shapes(self):
        path = model(self.file("m.onnx"),
                     [helper.make_node("Reshape", ["x", "s"], ["t"]),
                      helper.make_node("Exp", ["t"], ["y"])],
                     [value("x", TensorProto.FLOAT, [2, 3]), value("s", TensorProto.INT64, [2])],
                     [value("y", TensorProto.FLOAT, ["a", "b"])])
        told = json.loads(tenon("check", path, "--input=s=[3, 2]", "--nodes", "--json").stdout)
        self.assertEqual([v["shape"] for v in told["nodes"]], [[3, 2], [3, 2]])
        self.assertTrue(told["equal"])

    def test_failures_name_nodes(self):
        path = model(self.file("m.onnx"),
                     [helper.make_node("Compress", ["x", "c"], ["kept"], axis=0),
                      helper.make_node("Add", ["kept", "w"], ["y"], name="sum")],
                     [value("x", TensorProto.FLOAT, [3]), value("c", TensorProto.BOOL, [3]),
                      value("w", TensorProto.FLOAT, [3])], [value("y", TensorProto.FLOAT, ["n"])])
        done = tenon("check", path, "--input=c=[1, 0, 1]", status=1)
        self.assertRegex(done.stderr, r"m\.onnx: .*'sum'.*: 2 is not 3|m\.onnx: .*'sum'.*: 3 is not 2")
        self.assertEqual(done.stdout, "")

    def test_sequences_are_left_out(self):
        path = model(self.file("m.onnx"),
                     [helper.make_node("SplitToSequence", ["x"], ["s"], axis=0, keepdims=1),
                      helper.make_node("ConcatFromSequence", ["s"], ["c"], axis=0),
                      helper.make_node("Exp", ["c"], ["y"])],
                     [value("x", TensorProto.FLOAT, [2, 3])], [value("y", TensorProto.FLOAT, None)])
        told = json.loads(tenon("check", path, "--nodes", "--json").stdout)
        self.assertEqual([v["name"] for v in told["nodes"]], ["c", "y"])

    def test_bodies_belong_to_their_nodes(self):
        body = helper.make_graph(
            [helper.make_node("Add", ["state", "outer"], ["next"]),
             helper.make_node("Identity", ["goes"], ["on"])], "body",
            [value("i", TensorProto.INT64, []), value("goes", TensorProto.BOOL, []),
             value("state", TensorProto.FLOAT, [3])],
            [value("on", TensorProto.BOOL, []), value("next", TensorProto.FLOAT, [3])])
        path = model(self.file("m.onnx"),
                     [helper.make_node("Exp", ["x"], ["outer"]),
                      helper.make_node("Loop", ["trips", "", "x"], ["y"], body=body)],
                     [value("x", TensorProto.FLOAT, [3])], [value("y", TensorProto.FLOAT, [3])],
                     initializer=[helper.make_tensor("trips", TensorProto.INT64, [], [4])])
        told = json.loads(tenon("check", path, "--nodes", "--json").stdout)
        self.assertEqual([v["name"] for v in told["nodes"]], ["outer", "y"])
        self.assertTrue(told["equal"])

    def test_sizes_of_the_inputs_are_kept(self):
        path = self.binary(b=("m", 3))
        done = tenon("check", path, "--input=a=4x3", "--input=b=4x3", "--nodes")
        self.assertIn("only for the sizes of the given inputs", done.stderr)
        self.assertRegex(done.stdout, r"\nSub y +f32 \[4, 3\] ")

    def test_wrong_uses(self):
        path = self.binary()
        for args, says in ((("--tolerance=-1",), "--tolerance must be a nonnegative number"),
                           (("--nodes", "--bisect"), "--nodes and --bisect cannot be combined"),
                           (("--input=c=ones",), 'the model has no input "c"')):
            self.misuse("check", path, *args, says=says)
        self.misuse("check", "-", says="it cannot be standard input")
        done = tenon("check", self.file("none.onnx"), status=1)
        self.assertEqual(done.stdout, "")
        self.assertIn("none.onnx", done.stderr)


class Sizes(Case):
    def differing(self):
        """Makes a model that is consistent only where n and m are equal, or one is 1."""
        return self.binary(b=("m", 3))

    def test_models_are_loaded_with_the_sizes_that_are_given(self):
        path = self.differing()
        self.assertIn("known exactly at each run; tenon inspect", tenon("run", path).stderr)
        told = json.loads(tenon("run", path, "--size=n=2..", "--size=m=3..", "--json").stdout)
        a, b = (i["shape"] for i in told["inputs"])
        self.assertEqual(a, b)
        self.assertGreaterEqual(a[0], 3)
        self.assertIn("Sub node 'node': shapes 2x3 and 3x3",
                      tenon("run", path, "--size=n=2..2", "--size=m=3..", status=1).stderr)
        for sizes, shape in ((("n=4", "m=4"), [4, 3]), (("n=m",), [1, 3]), (("m=n",), [1, 3]),
                             (("n=m", "m=5"), [5, 3]), (("n=m", "n=2..8"), [2, 3]),
                             (("a:0=b:0", "b:0=7"), [7, 3]), (("n=0..8", "m=n"), [1, 3]),
                             (("n=0", "m=0"), [0, 3])):
            with self.subTest(sizes=sizes):
                given = [f"--size={size}" for size in sizes]
                done = tenon("run", path, *given, "--json")
                told = json.loads(done.stdout)
                self.assertEqual([i["shape"] for i in told["inputs"]], [shape, shape])
                self.assertEqual(told["outputs"][0]["shape"], shape)

    def test_what_a_size_that_varies_is_taken_as_is_told(self):
        path = self.binary()
        self.assertIn("default to n = 1\n", tenon("run", path, "--size", "n=0..8").stderr)
        self.assertIn("default to n = 2\n", tenon("run", path, "--size", "n=2..8").stderr)
        self.assertIn("default to n = 2\n", tenon("run", path, "--size", "n=2..").stderr)
        self.assertIn("default to n = 1\n", tenon("run", path, "--size", "n=..8").stderr)
        self.assertEqual(tenon("run", path, "--size", "n=2").stderr, "")

    def test_a_size_that_one_input_tells_is_the_others_too(self):
        path = self.binary()
        for given in ("a=4x3", "b=ones:4x3"):
            done = tenon("run", path, f"--input={given}", "--json")
            self.assertEqual([i["shape"] for i in json.loads(done.stdout)["inputs"]], [[4, 3]] * 2)
            self.assertEqual(done.stderr, "")

    def test_sizes_of_one_name_are_alike_unless_inputs_say_otherwise(self):
        path = model(self.file("m.onnx"), [helper.make_node("Neg", ["a"], ["y"]),
                                           helper.make_node("Abs", ["b"], ["z"])],
                     [value("a", TensorProto.FLOAT, ["n", 3]), value("b", TensorProto.FLOAT, ["n"])],
                     [value("y", TensorProto.FLOAT, None), value("z", TensorProto.FLOAT, None)])
        for given, shapes in ((["a=4x3"], [[4, 3], [4]]), (["b=5"], [[5, 3], [5]]),
                              (["a=4x3", "b=5"], [[4, 3], [5]]), ([], [[1, 3], [1]])):
            done = tenon("run", path, "--json", *[f"--input={g}" for g in given])
            told = json.loads(done.stdout)
            self.assertEqual([i["shape"] for i in told["inputs"]], shapes)
            self.assertEqual([o["shape"] for o in told["outputs"]], shapes)
        told = json.loads(tenon("run", path, "--json", "--size=n=6").stdout)
        self.assertEqual([o["shape"] for o in told["outputs"]], [[6, 3], [6]])
        page = self.file("page.html")
        for b, sizes in (("4", "n = 4"), ("5", "n = 4, n = 5")):
            tenon("explain", path, "-o", page, "--input=a=4x3", f"--input=b={b}")
            self.assertRegex(page.read_text(), rf"\b{sizes}\b(?!, n)")

    def test_inputs_keep_within_what_is_given(self):
        path = self.binary()
        ones = ("--input=a=ones:4x3", "--input=b=ones:4x3", "--json")
        told = json.loads(tenon("run", path, "--size=n=2..8", *ones).stdout)
        self.assertEqual(told["outputs"][0]["shape"], [4, 3])
        for size in ("n=3", "n=5..8", "n=0"):
            self.assertIn("input a", tenon("run", path, f"--size={size}", *ones, status=1).stderr)

    def test_variants_are_chosen(self):
        path = self.binary()
        for policy, n_open in (("auto", 0), ("steady", 0), ("exact", 0), ("one", 1)):
            for verb in ("run", "bench", "explain"):
                said = tenon(verb, path, "--input=a=4x3", "-vv", f"--variants={policy}").stderr
                self.assertIn(f"variant 0, {n_open} of 1 sizes open", said)

    def test_a_value_is_likely(self):
        path = self.binary()
        for spec in ("4..@64", "@64", "1..64@64", "..8@1"):
            told = json.loads(tenon("run", path, f"--size=n={spec}", "--json", "--input=a=5x3",
                                    "--variants=one").stdout)
            self.assertEqual(told["outputs"][0]["shape"], [5, 3])
        for spec in ("1..8@9", "4..8@2", "1..8@", "@0", "4@5", "@x", "1..8@2@3"):
            self.misuse("run", path, f"--size=n={spec}",
                        says=f'--size n must be a number from 0 to 999999999, a nonempty range '
                             f'MIN..MAX, MIN.. or ..MAX, a value @LIKELY within it, or the name of '
                             f'another size, not "{spec}"')

    def test_bench_feeds_them(self):
        path = model(self.file("m.onnx"), [helper.make_node("MatMul", ["x", "w"], ["y"])],
                     [value("x", TensorProto.FLOAT, ["n", 5]),
                      value("w", TensorProto.FLOAT, [5, "k"])],
                     [value("y", TensorProto.FLOAT, None)])
        for sizes, operations in ((("n=6", "k=3"), 2 * 6 * 5 * 3), (("n=7..9",), 2 * 7 * 5)):
            done = tenon("bench", path, "--json", "--repeat", "1",
                         *[f"--size={size}" for size in sizes])
            told = json.loads(done.stdout)
            self.assertAlmostEqual(told["gflops"] * told["best_ms"] * 1e6 / operations, 1, places=5)

    def test_inspect_shows_them(self):
        path = self.differing()
        done = tenon("inspect", path)
        self.assertIn("f32 [m, 3]", done.stdout)
        self.assertIn("known exactly at each run, because of Sub node 'node'", done.stdout)
        for sizes, shape in ((("n=4", "m=4"), [4, 3]), (("n=m",), ["m", 3])):
            told = json.loads(tenon("inspect", path, "--json",
                                    *[f"--size={size}" for size in sizes]).stdout)
            self.assertEqual([i["shape"] for i in told["inputs"]], [shape, shape])
        path = model(self.file("m.onnx"), [helper.make_node("Add", ["x", "w"], ["s"]),
                                           helper.make_node("Concat", ["s", "s"], ["y"], axis=0)],
                     [value("w", TensorProto.FLOAT, [1]), value("x", TensorProto.FLOAT, [None])],
                     [value("y", TensorProto.FLOAT, [None])],
                     initializer=[helper.make_tensor("w", TensorProto.FLOAT, [1], [1.0])])
        for size, x, y in ((None, None, None), ("x:0=4", 4, 8), ("x:0=1..4", "x:0", "2*x:0")):
            told = json.loads(tenon("inspect", path, "--json",
                                    *[f"--size={size}"] * bool(size)).stdout)
            self.assertEqual([told[p][0]["shape"] for p in ("inputs", "outputs")], [[x], [y]])

    def test_what_operators_need_bounds_sizes(self):
        path = model(self.file("m.onnx"),
                     [helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[3, 3], name="node")],
                     [value("x", TensorProto.FLOAT, ["n", 1, "height", "width"])],
                     [value("y", TensorProto.FLOAT, None)])
        done = tenon("run", path, "--json")
        self.assertIn("height = 3, width = 3", done.stderr)
        self.assertEqual(json.loads(done.stdout)["outputs"][0]["shape"], [1, 1, 1, 1])
        self.assertIn("sizes      n, height=3.., width=3..8\n",
                      tenon("inspect", path, "--size=width=..8").stdout)
        most = 999999999
        self.assertEqual(json.loads(tenon("inspect", path, "--json").stdout)["sizes"],
                         [{"name": name, "min": least, "max": most}
                          for name, least in (("n", 0), ("height", 3), ("width", 3))])
        self.assertIn("height must be from 3",
                      tenon("run", path, "--input=x=1x1x2x4", status=1).stderr)
        said = tenon("run", path, "--size=height=2..", status=1).stderr
        self.assertIn("give it a min of 3)", said)
        error, hint = said.splitlines()  # the hint comes last
        self.assertIn("error: ", error)
        self.assertIn("--size NAME=SPEC fixes, bounds or equates a size: NAME=8, NAME=3..64, NAME=OTHER", hint)
        self.assertNotIn("tn_model_desc", said)

    def test_what_does_not_fit_for_all_sizes_is_loaded_for_those_of_the_inputs(self):
        path = self.differing()
        array = self.array("b.npy", np.ones((4, 3), np.float32))
        for verb in ("run", "bench", "explain"):
            done = tenon(verb, path, "--input=a=ones:4x3", f"--input=b={array}")
            self.assertIn("only for the sizes of the given inputs", done.stderr)
            self.assertNotIn("--size", done.stderr)
            self.assertNotIn("--variants", done.stderr)
        self.assertIn("; --variants has no effect\n",
                      tenon("run", path, "--input=a=4x3", "--input=b=4x3", "--variants=one").stderr)
        told = json.loads(tenon("run", path, "--input=a=ones:4x3", f"--input=b={array}",
                                "--json").stdout)
        self.assertEqual(told["outputs"][0]["shape"], [4, 3])
        self.assertIn("5 is not 4", tenon("run", path, "--input=a=5x3", f"--input=b={array}",
                                          status=1).stderr)
        flat = self.array("flat.npy", np.ones(3, np.float32))
        for verb, args, says in (
                ("run", ("a=4x4", "b=4x3"), "input a: axis 1 has size 4, not 3, its fixed size"),
                ("bench", ("a=4x3", f"b={flat}"), f"input b ({flat}) has rank 1, not 2: its shape is 3, not mx3"),
                ("explain", ("a=4x3x1", "b=4x3"), "input a has rank 3, not 2: its shape is 4x3x1, not nx3"),
                ("run", ("a=9x3", "b=9x3", "--size=n=2..8"),
                 "input a: axis 0 has size 9, but n must be from 2 to 8"),
                ("run", ("a=9x3", "b=9x3", "--size=n=2"),
                 "input a: axis 0 has size 9, not 2, its fixed size")):
            with self.subTest(verb=verb, args=args):
                given = [x if x.startswith("--") else f"--input={x}" for x in args]
                self.assertIn(f"error: {says}\n", tenon(verb, path, *given, status=1).stderr)
        self.misuse("run", path, "--input=c=4x3", says='the model has no input "c"')
        for given, shape in (("a=4x3", [4, 3]), ("a=ones", [1, 3])):
            done = tenon("run", path, f"--input={given}", "--json")
            self.assertIn("default to m = 1", done.stderr)
            self.assertEqual(json.loads(done.stdout)["outputs"][0]["shape"], shape)
        sizes = ("--size=n=2..", "--size=m=3")
        said = tenon("run", path, "--input=a=4x3", *sizes, status=1).stderr  # n is given
        self.assertIn("Sub node 'node': shapes 4x3 and 3x3 do not broadcast", said)
        self.assertNotIn("--size", said)
        self.assertIn("default to n = 3", tenon("run", path, "--input=a=ones", *sizes).stderr)

    def test_sizes_are_named_where_they_may_be_why(self):
        product = [helper.make_node("MatMul", ["x", "w"], ["y"], name="node")]
        path = model(self.file("m.onnx"), product,
                     [value("x", TensorProto.FLOAT, ["n", 5]),
                      value("w", TensorProto.FLOAT, [6, "k"])],
                     [value("y", TensorProto.FLOAT, None)])
        failed = tenon("run", path, status=1).stderr
        self.assertIn("5 is not 6", failed)
        self.assertNotIn("--size", failed)

    def test_sizes_must_be_the_models(self):
        path = self.binary()
        for verb in ("run", "bench", "inspect"):
            for size, says in (("q=4", "no input has a size 'q'; sizes that vary: 'n'"),
                               ("n=q", "no input has a size 'q'"),
                               ("a:2=4", "no input has a size 'a:2'"),
                               ("a:1=4", "the file fixes axis 1 of input 'a' to 3; one that is to vary must be")):
                with self.subTest(verb=verb, size=size):
                    self.misuse(verb, path, "--size", size, says=f"--size: {path}: ")
                    self.misuse(verb, path, "--size", size, says=says)
        self.misuse("run", path, "--size=n=4", "--size=n=5", says="the range 5 … 5 of size 'n' contradicts")
        self.misuse("run", self.binary(a=(1, 3), b=(1, 3)), "--size=batch=8",
                    says="no input has a size 'batch': the file fixes all sizes; one that is to vary "
                         "must be exported as dynamic")

    def test_the_last_equals_sign_ends_the_name(self):
        path = self.binary(a=("n=m", 3), b=("n=m", 3))
        told = json.loads(tenon("run", path, "--size=n=m=4", "--json").stdout)
        self.assertEqual(told["outputs"][0]["shape"], [4, 3])


class Run(Case):
    def sources(self, path, threads):
        """Returns the C functions of a model's kernels, which the compiler reads in any groups."""
        script, seen = self.file("gcc-seen"), self.file(f"seen-{threads}")
        seen.mkdir()
        script.write_text('#!/bin/sh\n[ "$1" = --version ] && exec gcc --version\n'
                          f'cat > {seen}/$$.c\nexec gcc "$@" < {seen}/$$.c\n')
        script.chmod(0o700)
        tenon("run", path, f"--threads={threads}",
              env=environment(TENON_CACHE="off", TENON_CC=str(script)))
        found = [re.findall(r"^[^\n]*\btn_[0-9a-f]{32}(?:_body)?\([^;\n]*\{\n.*?^\}",
                            file.read_text(), re.M | re.S) for file in seen.glob("*.c")]
        return sorted(function for functions in found for function in functions)

    def test_code_is_the_same_for_any_threads(self):
        nodes, x = [], "x"
        for i in range(12):  # kernels of different sizes, some with sums and some with exponentials
            w = f"w{i}"
            nodes += [helper.make_node("MatMul", [x, w], [f"p{i}"]),
                      helper.make_node(("Relu", "Sigmoid", "Softmax")[i % 3], [f"p{i}"], [f"y{i}"])]
            x = f"y{i}"
        sizes = [24 + 8 * i for i in range(13)]
        path = model(self.file("many.onnx"), nodes,
                     [value("x", TensorProto.FLOAT, [40, sizes[0]])] +
                     [value(f"w{i}", TensorProto.FLOAT, sizes[i:i + 2]) for i in range(12)],
                     [value(f"y{i}", TensorProto.FLOAT, None) for i in range(12)])
        one, two, four = (self.sources(path, threads) for threads in (1, 2, 4))
        self.assertGreater(len(one), 12)
        self.assertEqual(one, two)
        self.assertEqual(one, four)

    def test_arrays_in_any_order(self):
        path = self.binary()
        a = np.arange(6, dtype=np.float32).reshape(2, 3)
        b = np.array([[1, 1, 1], [5, 5, 5]], np.float32)
        inputs = [f"--input=a={self.array('a.npy', a)}", f"--input=b={self.array('b.npy', b)}"]
        for order in (inputs, inputs[::-1]):
            done = tenon("run", path, *order, "--output", f"y={self.file('y.npy')}")
            self.assertEqual(done.stdout, "")
            y = np.load(self.file("y.npy"))
            self.assertEqual(y.dtype, np.float32)
            np.testing.assert_array_equal(y, a - b)

    def test_every_type_goes_through(self):
        for elem, dtype in ((TensorProto.FLOAT, "f4"), (TensorProto.DOUBLE, "f8"),
                            (TensorProto.FLOAT16, "f2"), (TensorProto.INT64, "i8"),
                            (TensorProto.INT32, "i4"), (TensorProto.INT8, "i1"),
                            (TensorProto.UINT8, "u1")):
            with self.subTest(dtype=dtype):
                path = self.binary("Mul", elem)
                a = np.array([[1, 2, 3], [4, 5, 6]], dtype)
                args = [f"--input=a={self.array('a.npy', np.asfortranarray(a))}",
                        f"--input=b={self.array('b.npy', a.astype('>' + dtype))}"]
                tenon("run", path, *args, f"--output=y={self.file('y.npy')}")
                y = np.load(self.file("y.npy"))
                self.assertEqual(y.dtype, np.dtype(dtype))
                np.testing.assert_array_equal(y, a * a)

    def test_files_are_converted_to_the_inputs_type(self):
        path = self.copy(TensorProto.FLOAT, [3])
        file = self.array("x.npy", np.array([1, -2, 300], np.int16))
        tenon("run", path, f"--input=x={file}", f"--output=y={self.file('y.npy')}")
        y = np.load(self.file("y.npy"))
        self.assertEqual(y.dtype, np.float32)
        np.testing.assert_array_equal(y, [1, -2, 300])

    def test_files_that_hold_something_else_are_told(self):
        path = self.copy(TensorProto.FLOAT, [3])
        np.savez(self.file("x.npz"), x=np.zeros(3, np.float32))
        for file, says in ((self.file("x.npz"), "is a .npz archive"),
                           (self.array("c.npy", np.zeros(3, np.complex64)),
                            "complex numbers ('<c8')"),
                           (self.array("s.npy", np.array(["a", "b"])), "strings ('<U1')")):
            self.assertIn(says, tenon("run", path, f"--input=x={file}", status=1).stderr)

    def test_bits_of_bf16(self):
        path = self.binary("Add", TensorProto.BFLOAT16, a=(2,), b=(2,))
        bits = np.array([0x3F80, 0xC000], np.uint16)  # 1, -2
        file = self.array("a.npy", bits)
        tenon("run", path, f"--input=a={file}", f"--input=b={file}",
              f"--output=y={self.file('y.npy')}")
        np.testing.assert_array_equal(np.load(self.file("y.npy")), [0x4000, 0xC080])

    def test_elements(self):
        path = self.file("reshape.onnx")
        model(path, [helper.make_node("Reshape", ["x", "s"], ["y"])],
              [value("x", TensorProto.FLOAT, [2, 3]), value("s", TensorProto.INT64, [2])],
              [value("y", TensorProto.FLOAT, ["a", "b"])])
        self.assertIn("s  i64 [2], its elements decide on shapes", tenon("inspect", path).stdout)
        done = tenon("run", path, "--input=s=[3, 2]", "--input=x=[[1, 2, 3], [4, 5, 6.5]]")
        self.assertIn("y: f32 [3, 2]", done.stdout)
        self.assertIn("1 2 3 4 5 6.5", done.stdout)
        self.assertEqual(done.stderr, "")
        self.assertIn("input s: its elements decide on shapes or branches, and are ones",
                      tenon("run", path, "--input=s=ones", status=1).stderr)
        self.assertIn("for example --input 's=[2, 2]'\n", tenon("run", path, status=1).stderr)
        for wrong in ("[2.5, 1]", "[1e20, 1]"):
            self.assertIn("is no element of s, which has type i64",
                          tenon("run", path, f"--input=s={wrong}", status=2).stderr)
        for wrong in ("[3", "[[1, 2], [3]]", "[1, [2]]", "[1 2]", "[1]x"):
            self.assertIn("is no list of elements", tenon("run", path, f"--input=s={wrong}",
                                                          status=2).stderr)

    def test_example_elements_have_the_shape_of_their_input(self):
        flat = [helper.make_node("Constant", [], ["all"], value_ints=[-1]),
                helper.make_node("Reshape", ["s", "all"], ["f"]), helper.make_node("Expand", ["x", "f"], ["y"])]
        for sizes, elements in (([2, 1], "[[2], [2]]"), ([1, 2], "[[2, 2]]"), ([1, 1, 1], "[[[2]]]"),
                                ([], "[2]"), (["n"], "[2]"), ([3, 2], "[…]")):
            with self.subTest(sizes=sizes):
                path = model(self.file("m.onnx"), flat, [value("x", TensorProto.FLOAT, [1]),
                                                         value("s", TensorProto.INT64, sizes)],
                             [value("y", TensorProto.FLOAT, None)])
                said = tenon("run", path, "--input=s=ones").stderr
                self.assertIn(f"for example --input 's={elements}'\n", said)
                if "…" not in elements:
                    self.assertEqual(tenon("run", path, f"--input=s={elements}").stderr.count("decide"), 0)

    def test_an_input_without_a_rank_is_told_as_such(self):
        path = model(self.file("m.onnx"), [helper.make_node("Relu", ["x"], ["y"])],
                     [value("x", TensorProto.FLOAT, None)], [value("y", TensorProto.FLOAT, None)])
        for verb in (("run",), ("inspect", "--memory")):
            done = tenon(*verb, path, "--input=x=2x3", status=1)
            self.assertIn("input 'x' is not a tensor of known rank", done.stdout + done.stderr)
            self.assertNotIn("no input has a size", done.stdout + done.stderr)

    def test_strings(self):
        path = self.file("strings.onnx")
        model(path, [helper.make_node("StringConcat", ["a", "b"], ["c"])],
              [value("a", TensorProto.STRING, ["n"]), value("b", TensorProto.STRING, ["n"])],
              [value("c", TensorProto.STRING, ["n"])], opset=20)
        self.assertIn("a  string [n]\n", tenon("inspect", path).stdout)
        given = ['--input=a=["x, ", "é"]', r'--input=b=["\"y\\", "]"]']
        self.assertEqual(tenon("run", path, *given).stdout,
                         'c: string [2]\n  "x, \\"y\\\\" "é]"\n')
        done = json.loads(tenon("run", path, *given, "--json").stdout)
        self.assertEqual([done["outputs"][0][k] for k in ("type", "min", "first")],
                         ["string", None, ['x, "y\\', "é]"]])
        self.assertIn("c       string [2]", tenon("check", path, *given).stdout)
        self.assertIn('  "" ""', tenon("run", path, "--input=a=2").stdout)
        for says, status, wrong in (
                ("are strings: give them in quotes", 2, ["--input=a=[1]"]),
                ("are strings: give them in quotes", 2, ['--input=a=["x", 1]']),
                ("is no list of elements", 2, ['--input=a=["x]']),
                ("are not read from files", 2, [f"--input=a={self.array('a.npy', np.zeros(2))}"]),
                ("not written to files", 1, [f"--output=c={self.file('c.npy')}"])):
            self.assertIn(says, tenon("run", path, *wrong, status=status).stderr)
        self.assertIn("are no strings, but f32",
                      tenon("run", self.copy(TensorProto.FLOAT, [1]), '--input=x=[["a"]]',
                            status=2).stderr)

    def test_sequences(self):
        path = model(self.file("sequence.onnx"),
                     [helper.make_node("SequenceInsert", ["s", "x"], ["o"])],
                     [helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, ["n"]),
                      value("x", TensorProto.FLOAT, ["n"])],
                     [helper.make_tensor_sequence_value_info("o", TensorProto.FLOAT, None)])
        done = tenon("run", path, "--input=s[1]=[3, 4]", "--input=x=[5, 6]", "--input=s[0]=[1, 2]")
        self.assertEqual(re.findall(r"^  ([0-9].*)", done.stdout, re.M), ["1 2", "3 4", "5 6"])
        self.assertEqual(done.stderr, "")
        alone = tenon("run", path, "--input=x=[5, 6]")
        self.assertIn("o[1]: f32 [2]", alone.stdout)
        self.assertNotIn("o[2]", alone.stdout)
        self.assertIn("the sequence has one tensor, s[0]", alone.stderr)
        self.assertIn("2 outputs within", tenon("check", path).stdout)
        self.assertIn("supported  yes", tenon("inspect", path).stdout)
        self.assertIn("the model has no input \"s[x]\"",
                      tenon("run", path, "--input=s[x]=1", status=2).stderr)

    def test_storage_types(self):
        path = self.copy(TensorProto.INT4, [3])
        file = self.array("x.npy", np.array([1, 15, 7], np.uint8))   # 1, -1, 7
        done = tenon("run", path, f"--input=x={file}")
        self.assertIn("1 -1 7", done.stdout)
        tenon("run", path, f"--input=x={file}", f"--output=y={self.file('y.npy')}")
        np.testing.assert_array_equal(np.load(self.file("y.npy")), [1, 15, 7])
        tenon("run", path, f"--input=x={file}", f"--output-dir={self.file('out')}")
        written = self.file("out") / "output_0.pb"
        packed = onnx.TensorProto.FromString(written.read_bytes())
        self.assertEqual(packed.raw_data, b"\xf1\x07")
        np.testing.assert_array_equal(onnx.numpy_helper.to_array(packed).astype(int), [1, -1, 7])
        written.rename(self.file("out") / "input_0.pb")
        again = tenon("run", path, f"--input-dir={self.file('out')}")
        self.assertEqual(again.stdout, done.stdout)

    def test_bools(self):
        path = self.copy(TensorProto.BOOL, [3])
        x = np.array([True, False, True])
        done = tenon("run", path, f"--input=x={self.array('x.npy', x)}")
        self.assertIn("true false true", done.stdout)
        tenon("run", path, f"--input=x={self.file('x.npy')}", f"--output=y={self.file('y.npy')}")
        np.testing.assert_array_equal(np.load(self.file("y.npy")), x)

    def test_names_with_equals_signs(self):
        path = model(self.file("m.onnx"), [helper.make_node("Sub", ["a", "a=b"], ["y=z"])],
                     [value("a", TensorProto.FLOAT, [2]), value("a=b", TensorProto.FLOAT, [2])],
                     [value("y=z", TensorProto.FLOAT, [2])])
        tenon("run", path, "--input=a=ones", "--input=a=b=zeros",
              f"--output=y=z={self.file('y.npy')}")
        np.testing.assert_array_equal(np.load(self.file("y.npy")), [1, 1])

    def test_sizes_that_vary_are_1_and_it_says_so(self):
        done = tenon("run", self.binary(), "--json")
        self.assertIn("input a: varying sizes default to n = 1", done.stderr)
        self.assertEqual(json.loads(done.stdout)["outputs"][0]["shape"], [1, 3])

    def test_sizes_of_windows_fit(self):
        """Of a model whose sizes are known exactly, sizes that are not given are as small as fits."""
        nodes = [helper.make_node("MaxPool", ["x"], ["z"], kernel_shape=[5, 3]),
                 helper.make_node("MaxPool", ["z"], ["y"], kernel_shape=[3, 3], strides=[2, 2],
                                  auto_pad="SAME_UPPER")]
        path = model(self.file("m.onnx"), nodes, [value("x", TensorProto.FLOAT, ["n", 2, "h", "w"])],
                     [value("y", TensorProto.FLOAT, None)])
        self.assertIn("input x: varying sizes default to n = 1, h = 5, w = 3\n", tenon("run", path).stderr)

    def test_the_only_size_that_fits_weights_is_chosen(self):
        weights = helper.make_tensor("w", TensorProto.FLOAT, [5, 2], [1.0] * 10)
        path = model(self.file("m.onnx"), [helper.make_node("MatMul", ["x", "w"], ["y"])],
                     [value("x", TensorProto.FLOAT, ["n", "k"])],
                     [value("y", TensorProto.FLOAT, None)], initializer=[weights])
        done = tenon("run", path, "--json")
        self.assertIn("input x: varying sizes default to n = 1, k = 5\n", done.stderr)
        self.assertEqual(json.loads(done.stdout)["outputs"][0]["shape"], [1, 2])
        unknown = tenon("run", path, "--output=q=y.npy", status=2).stderr
        self.assertNotIn("hint: --size", unknown)

    def test_integers_that_are_drawn_are_told(self):
        w = onnx.numpy_helper.from_array(np.arange(6, dtype=np.float32).reshape(3, 2), "w")
        path = model(self.file("m.onnx"), [helper.make_node("Gather", ["w", "ids"], ["y"])],
                     [value("ids", TensorProto.INT64, [2])], [value("y", TensorProto.FLOAT, [2, 2])],
                     initializer=[w])
        note = ("tenon run: input ids: its integers are drawn from 0 and 1; give others by --input "
                "ids=FILE.npy, or few as 'ids=[…]'\n")
        self.assertEqual(tenon("run", path).stderr, note)
        self.assertEqual(tenon("run", path, "--input=ids=2").stderr, note)
        for given in ("random", "random:2", "ones", "[2, 0]"):
            self.assertEqual(tenon("run", path, f"--input=ids={given}").stderr, "")
        self.assertEqual(tenon("run", self.copy(TensorProto.BOOL, [2])).stderr, "")

    def test_fills_and_shapes(self):
        path = self.binary()
        done = tenon("run", path, "--input", "a=ones:4x3", "--input", "b=zeros:4x3", "--json")
        self.assertEqual(done.stderr, "")
        told = json.loads(done.stdout)
        self.assertEqual([i["from"] for i in told["inputs"]], ["ones", "zeros"])
        y = told["outputs"][0]
        self.assertEqual((y["shape"], y["min"], y["max"], y["mean"]), ([4, 3], 1, 1, 1))
        self.assertEqual(y["first"], [1] * 8)
        shaped = json.loads(tenon("run", path, "--input=a=5x3", "--input=b=5x3", "--json").stdout)
        self.assertEqual(shaped["outputs"][0]["shape"], [5, 3])

    def test_the_freedoms_of_arithmetic_are_chosen(self):
        path = model(self.file("m.onnx"),
                     [helper.make_node("ReduceSum", ["x"], ["y"], keepdims=0, name="node")],
                     [value("x", TensorProto.FLOAT, [256])], [value("y", TensorProto.FLOAT, None)])
        x = np.ones(256, np.float32)
        x[0], x[-1] = 1e8, -1e8  # in order, each 1 is lost
        x = self.array("x.npy", x)

        def total(*options, **env):
            told = json.loads(tenon("run", path, f"--input=x={x}", "--json", *options,
                                    env=environment(**env)).stdout)
            return told["outputs"][0]["first"]

        self.assertEqual(total("--math=exact"), [0])
        self.assertNotEqual(total("--math=default"), [0])
        self.assertEqual(total("--math=default", TENON_MATH="exact"), total("--math", "sum"))
        self.assertEqual(total("--math=exact", TENON_MATH="nonsense"), [0])
        header = pathlib.Path(__file__).parents[2] / "include/tenon/context.h"
        names = re.findall(r'X\(TN_MATH_\w+, "(\w+)"\)', header.read_text())
        self.assertIn("exact", names)
        for name in names:
            self.assertEqual(total("--math", name), total(TENON_MATH=name))
        for verb in ("run", "bench", "explain", "tune"):
            self.misuse(verb, path, "--math=fats",
                        says='--math is "fats", not one of ' + ", ".join(names) +
                             "; did you mean fast?")
            self.assertIn("Winograd", tenon("help", verb).stdout)

    def test_shapes_that_are_none_are_told(self):
        path = self.binary()
        for given in ("-1x3", "ones:-1x3", "4x" * 40 + "4", "9" * 30, "4x-3"):
            self.misuse("run", path, f"--input=a={given}",
                        says=f'"{given}" is neither a file nor a shape')
        self.assertIn('"4x3.npy"', tenon("run", path, "--input=a=4x3.npy", status=1).stderr)

    def test_random_numbers_depend_on_the_seed(self):
        path = self.copy(TensorProto.FLOAT, [100000])

        def draw(*args):
            tenon("run", path, f"--output=y={self.file('y.npy')}", *args)
            return np.load(self.file("y.npy"))

        x = draw()
        np.testing.assert_array_equal(x, draw("--seed", "0"))
        self.assertFalse(np.array_equal(x, draw("--seed", "1")))
        self.assertFalse(np.array_equal(x, draw("--seed", str(2**64 - 1))))
        self.assertAlmostEqual(x.mean(), 0, delta=0.02)
        self.assertAlmostEqual(x.std(), 1, delta=0.02)

    def test_a_summary_is_of_the_whole_output(self):
        path = self.copy(TensorProto.FLOAT, ["n", "m"])
        x = np.array([[0.5, -3, np.nan], [7, 2, 1]], np.float32)
        file = self.array("x.npy", x)
        told = json.loads(tenon("run", path, "--input", f"x={file}", "--json").stdout)
        y = told["outputs"][0]
        self.assertEqual((y["name"], y["type"], y["shape"]), ("y", "f32", [2, 3]))
        self.assertEqual((y["min"], y["max"], y["mean"], y["nans"]), (-3, 7, 1.5, 1))
        self.assertEqual(y["first"], [0.5, -3, "NaN", 7, 2, 1])
        self.assertIsNone(y["file"])
        text = tenon("run", path, "--input", f"x={file}").stdout
        self.assertIn("y: f32 [2, 3]", text)
        self.assertIn("min -3, max 7, mean 1.5", text)
        self.assertIn("1 of 6 elements are NaN", text)

    def test_what_json_has_no_number_for_is_told_apart(self):
        path = self.copy(TensorProto.FLOAT, ["n"])
        for x, low, high, mean in (([1, np.inf, np.nan, -np.inf], "-Infinity", "Infinity", None),
                                   ([1, np.inf], 1, "Infinity", "Infinity"),
                                   ([np.nan], None, None, None)):
            file = self.array("x.npy", np.array(x, np.float32))
            y = json.loads(tenon("run", path, f"--input=x={file}", "--json").stdout)["outputs"][0]
            names = {np.inf: "Infinity", -np.inf: "-Infinity"}
            self.assertEqual(y["first"], ["NaN" if np.isnan(v) else names.get(v, v) for v in x])
            self.assertEqual((y["min"], y["max"], y["mean"]), (low, high, mean))

    def test_memory_that_is_not_there_is_named(self):
        path = self.copy(TensorProto.FLOAT, ["n", "m"])
        # Sanitizers end the program where an allocator returns NULL.
        done = tenon("run", path, "--input=x=900000000x1000", status=1,
                     env=environment(ASAN_OPTIONS="allocator_may_return_null=1",
                                     TSAN_OPTIONS="allocator_may_return_null=1"))
        self.assertIn('"x", f32 [900000000, 1000], needs 3', done.stderr)

    def test_names_are_quoted(self):
        self.assertIn('cannot open "": ', tenon("run", "", status=1).stderr)

    def test_large_integers_are_exact(self):
        path = self.copy(TensorProto.INT64, [2])
        x = np.array([2**62 + 1, -2**63], np.int64)
        y = json.loads(tenon("run", path, f"--input=x={self.array('x.npy', x)}",
                             "--json").stdout)["outputs"][0]
        self.assertEqual((y["min"], y["max"]), (-2**63, 2**62 + 1))

    def test_floats_are_exact(self):
        for elem, kind in ((TensorProto.DOUBLE, np.float64), (TensorProto.FLOAT, np.float32)):
            info = np.finfo(kind)
            x = np.array([np.pi, -1 / 3, info.max, info.smallest_subnormal], kind)
            told = json.loads(tenon("run", self.copy(elem, [4]),
                                    f"--input=x={self.array('x.npy', x)}", "--json").stdout)
            self.assertEqual(told["outputs"][0]["first"], x.tolist())

    def test_names_must_be_the_models(self):
        path = self.binary()
        self.misuse("run", path, "--input", "c=ones", says='the model has no input "c"')
        self.misuse("run", path, "--output", "z=z.npy", says="(outputs: y)")
        self.misuse("run", path, "--input=a=ones", "--input=a=zeros", says="--input a is specified more than once")
        self.misuse("run", path, "--output=y=1", "--output=y=2", says="--output y is specified more than once")

    def test_what_fails_leaves_no_file(self):
        path, out = self.binary(), self.file("y.npy")
        np.save(self.file("cut.npy"), np.ones((2, 3), np.float32))
        data = self.file("cut.npy").read_bytes()
        self.file("cut.npy").write_bytes(data[:-1])
        for value_, says in (("none.npy", 'there is no file "none.npy" (fills: random, ones, zeros; elements: [1, 2])'),
                             ("onse:2x3", 'there is no file "onse:2x3"; did you mean ones?'), (self.file("cut.npy"), "truncated"),
                             ("ones:2x4", "input a: axis 1 has size 4"),
                             ("ones:2x3x1x1", "input a has rank 4")):
            with self.subTest(value=value_):
                done = tenon("run", path, f"--input=a={value_}", "--input=b=ones:2x3",
                             f"--output=y={out}", status=1)
                self.assertIn(says, done.stderr)
                self.assertEqual(done.stdout, "")
                self.assertFalse(out.exists())
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["binary.onnx", "cut.npy"])

    def test_shapes_that_do_not_fit_are_told_before_anything_is_compiled(self):
        path, cache = self.binary(), self.file("cache")
        flat = self.array("flat.npy", np.ones(3, np.float32))
        for verb in ("run", "bench", "explain"):
            for args, says in (
                    (["a=ones:2x4"], "input a: axis 1 has size 4, not 3, its fixed size"),
                    # more than any memory: must fail before it is filled
                    ([f"a=ones:2x{2**60}"], f"input a: axis 1 has size {2**60}, not 3, its fixed size"),
                    (["a=ones", f"b=1x{2**60}"], f"input b: axis 1 has size {2**60}, not 3, its fixed size"),
                    ([f"a={flat}"], f"input a ({flat}) has rank 1, not 2: its shape is 3, not nx3"),
                    (["a=2x3", "b=4x3"],
                     "input b: axis 0 has size 4, not 2, as n is 2 by axis 0 of input a"),
                    (["a=2x4", "b=4x3"],
                     "input a: axis 1 has size 4, not 3, its fixed size; "
                     "input b: axis 0 has size 4, not 2, as n is 2 by axis 0 of input a"),
                    (["a=9x3", "b=9x3", "--size=n=2..8"],
                     "input a: axis 0 has size 9, but n must be from 2 to 8; "
                     "input b: axis 0 has size 9, but n must be from 2 to 8")):
                with self.subTest(verb=verb, args=args):
                    given = [x if x.startswith("--") else f"--input={x}" for x in args]
                    done = tenon(verb, path, *given, status=1,
                                 env=environment(TENON_CACHE=str(cache)))
                    self.assertIn(f"error: {says}\n", done.stderr)
                    self.assertNotIn("varying sizes default", done.stderr)
                    self.assertFalse(cache.exists() and any(cache.iterdir()))

    def test_what_is_interrupted_leaves_no_file(self):
        path, out = self.copy(TensorProto.FLOAT, ["n"]), self.file("y.npy")
        ask = [TENON, "run", path, "--input=x=ones:50000000", f"--output=y={out}"]
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            with self.subTest(number), \
                    subprocess.Popen(ask, stderr=subprocess.DEVNULL) as process:
                wait_until(lambda: process.poll() is not None or is_writing(process, self.folder))
                process.send_signal(number)
                self.assertIn(process.wait(timeout=100), (-number, 0))  # 0: it ended before the signal
            out.unlink(missing_ok=True)
            self.assertEqual([p.name for p in self.folder.iterdir()], ["copy.onnx"])

    def test_limits_of_files_are_told(self):
        path, out = self.binary(), self.file("y.npy")
        shape = "ones:100000x3"
        done = tenon("run", path, f"--input=a={shape}", f"--input=b={shape}", f"--output=y={out}",
                     status=1, preexec_fn=lambda: limit_files(1000000))
        self.assertIn(f'cannot write "{out}"', done.stderr)
        self.assertIn("the limit is 1000000 bytes", done.stderr)
        self.assertEqual([p.name for p in self.folder.iterdir()], ["binary.onnx"])
        done = tenon("bench", "add:4x4", status=1, env=environment(TENON_PAIR="c/cc"),
                     preexec_fn=lambda: limit_files(1000))
        self.assertIn("the limit is 1000 bytes", done.stderr)

    def test_where_nothing_can_be_written_nothing_is_run(self):
        path = self.binary()
        for target in (self.folder, self.file("none/y.npy")):
            done = tenon("run", path, f"--output=y={target}", status=1)
            self.assertIn(str(target), done.stderr)
            self.assertNotIn("default to", done.stderr)
            self.assertEqual(done.stdout, "")
        self.assertEqual([p.name for p in self.folder.iterdir()], ["binary.onnx"])

    def test_links_are_followed(self):
        path, out, link = self.binary(), self.file("y.npy"), self.file("link")
        link.symlink_to("y.npy")
        for mode in (None, 0o604):
            if mode:
                out.write_bytes(b"old")
                out.chmod(mode)
            tenon("run", path, "--input=a=ones", "--input=b=zeros", f"--output=y={link}")
            self.assertTrue(link.is_symlink())
            self.assertFalse(out.is_symlink())
            np.testing.assert_array_equal(np.load(out), np.ones((1, 3), np.float32))
        self.assertEqual(stat.S_IMODE(out.stat().st_mode), 0o604)

    def test_what_is_no_file_is_written_as_it_is(self):
        path, pipe = self.binary(), self.file("pipe")
        ask = ("run", path, "--input=a=ones", "--input=b=zeros")
        os.mkfifo(pipe)
        with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
            tenon(*ask, f"--output=y={pipe}")
            piped = reader.communicate(timeout=100)[0]
        tenon(*ask, f"--output=y={self.file('y.npy')}")
        self.assertEqual(piped, self.file("y.npy").read_bytes())
        self.assertTrue(stat.S_ISFIFO(pipe.stat().st_mode))
        self.assertEqual(tenon(*ask, "--output=y=/dev/fd/1", text=False).stdout, piped)
        before = os.stat("/dev/null")
        tenon(*ask, "--output=y=/dev/null")
        self.assertEqual(os.stat("/dev/null").st_rdev, before.st_rdev)

    def test_standard_input_and_pipes_are_read_whole(self):
        path = self.binary()
        rows = 40_000  # more than a pipe holds
        a = self.array("a.npy", np.arange(3 * rows, dtype=np.float32).reshape(rows, 3))
        b = f"--input=b=ones:{rows}x3"
        tenon("run", path, f"--input=a={a}", b, f"--output=y={self.file('y.npy')}")
        expected = self.file("y.npy").read_bytes()
        for name in ("-", "/dev/stdin"):
            done = tenon("run", path, f"--input=a={name}", b, "--output=y=-", text=False,
                         input=a.read_bytes())
            self.assertEqual(done.stdout, expected)
            self.assertIn(b"wrote y to standard output", done.stderr)
            self.assertFalse(self.file("-").exists())
            for verb in ("run", "inspect", "bench"):
                self.assertIn(b"y" if verb == "run" else name.encode(),
                              tenon(verb, name, text=False, input=path.read_bytes()).stdout)
        shell = subprocess.run(
            ["bash", "-c", '"$0" run <(cat "$1") --input a=<(cat "$2") "$3" --output y=- | cat',
             TENON, path, a, b], capture_output=True, check=True, timeout=100)
        self.assertEqual(shell.stdout, expected)
        with open(self.file("both"), "wb") as out:
            out.write(b"first")
            out.flush()
            tenon("run", path, f"--input=a={a}", b, f"--output=y={self.file('y.npy')}")
            subprocess.run([TENON, "run", path, f"--input=a={a}", b, "--output=y=-"], stdout=out,
                           stderr=subprocess.DEVNULL, check=True, timeout=100)
        self.assertEqual(self.file("both").read_bytes(), b"first" + expected)

    def test_standard_input_is_read_once_and_output_written_once(self):
        path = self.binary()
        for args in (("-", "--input=a=-"), (path, "--input=a=-", "--input=b=-")):
            done = tenon("run", *args, status=2, text=False, input=path.read_bytes())
            self.assertIn(b"can be read only once", done.stderr)
        self.misuse("run", path, "--output=y=-", "--json", says="is where --json prints")
        self.misuse("run", path, "--output=y=-", "--profile", says="is where --profile prints")
        two = model(self.file("m.onnx"), [helper.make_node("Tanh", ["x"], ["y"]),
                                          helper.make_node("Exp", ["x"], ["z"])],
                    [value("x", TensorProto.FLOAT, [2])],
                    [value("y", TensorProto.FLOAT, [2]), value("z", TensorProto.FLOAT, [2])])
        self.misuse("run", two, "--output=y=-", "--output=z=-", says="the same file")
        done = tenon("run", path, "--output=y=./-", cwd=self.folder)
        self.assertEqual((done.stdout, self.file("-").exists()), ("", True))
        done = tenon("run", path, "--input=a=-", status=1, stdin=subprocess.DEVNULL)
        self.assertIn("not a regular file", done.stderr)
        self.assertIn("file is empty", tenon("run", "-", status=1, input="").stderr)

    def test_what_is_printed_to_a_file_is_not_replaced(self):
        path, printed = self.binary(), self.file("printed")
        for args, says in (
                ((), "is where results are printed"),
                (("--json",), "is where --json prints"),
                (("--output=y=y.npy", "--profile"), "is where --profile prints"),
                (("--output=y=-",), "are the same file")):
            with self.subTest(args=args), printed.open("w") as out:
                done = tenon("run", path, *args, "--trace", printed, status=2, stdout=out,
                             cwd=self.folder)
                self.assertIn(says, done.stderr)
        with printed.open("w") as out:
            tenon("run", path, "--output=y=y.npy", "--trace", printed, stdout=out, cwd=self.folder)
        self.assertIn("traceEvents", printed.read_text())

    def test_two_outputs_are_two_files(self):
        path = model(self.file("m.onnx"), [helper.make_node("Tanh", ["x"], ["y"]),
                                           helper.make_node("Exp", ["x"], ["z"])],
                     [value("x", TensorProto.FLOAT, [2])],
                     [value("y", TensorProto.FLOAT, [2]), value("z", TensorProto.FLOAT, [2])])
        self.file("link").symlink_to("a.npy")
        for other in ("a.npy", "./a.npy", self.file("a.npy"), "link"):
            done = tenon("run", path, "--output=y=a.npy", f"--output=z={other}", status=2,
                         cwd=self.folder)
            self.assertIn("the same file", done.stderr)
            self.assertFalse(self.file("a.npy").exists())
        tenon("run", path, "--output=y=/dev/null", "--output=z=/dev/null")
        tenon("run", path, "--output=y=a.npy", "--output=z=b.npy", cwd=self.folder)
        self.assertFalse(np.array_equal(np.load(self.file("a.npy")), np.load(self.file("b.npy"))))

    def test_what_is_read_is_not_replaced(self):
        path = self.binary()
        a = self.array("a.npy", np.ones((1, 3), np.float32))
        weights = model(self.file("w.onnx"), [helper.make_node("Mul", ["x", "w"], ["y"])],
                        [value("x", TensorProto.FLOAT, [512])],
                        [value("y", TensorProto.FLOAT, [512])],
                        initializer=[onnx.numpy_helper.from_array(np.ones(512, np.float32), "w")])
        onnx.save(onnx.load(weights), weights, save_as_external_data=True, location="w.bin")
        self.file("link").symlink_to("binary.onnx")
        self.file("hard").hardlink_to(path)
        before = {p.name: p.read_bytes() for p in self.folder.iterdir()}
        for target, args, what in (
                ("binary.onnx", (path,), "is the model"),
                ("./binary.onnx", (path,), "is the model"),
                ("link", (path,), "is the model"),
                ("hard", (path,), "is the model"),
                ("binary.onnx", ("link",), "is the model"),
                ("a.npy", (path, f"--input=a={a}"), "is the file of input a"),
                ("w.bin", (weights,), "is a file of the model's weights"),
                ("w.bin", ("w.onnx",), "is a file of the model's weights")):
            with self.subTest(target=target, args=args):
                done = tenon("run", *args, f"--output=y={target}", status=2, cwd=self.folder)
                self.assertIn(f'--output: "{target}" {what}', done.stderr)
        self.assertEqual({p.name: p.read_bytes() for p in self.folder.iterdir()}, before)

    def test_files_are_written_with_the_users_mode(self):
        path, out = self.binary(), self.file("y.npy")
        tenon("run", path, f"--output=y={out}", umask=0o027)
        self.assertEqual(stat.S_IMODE(out.stat().st_mode), 0o640)

    def test_a_model_that_is_not_supported_is_told_with_all_it_lacks(self):
        nodes = [helper.make_node("Twist", ["x"], ["a"], "first"),
                 helper.make_node("Turn", ["a"], ["y"], "second")]
        path = model(self.file("m.onnx"), nodes, [value("x", TensorProto.FLOAT, [3])],
                     [value("y", TensorProto.FLOAT, [3])])
        done = tenon("run", path, status=1)
        for words in ("m.onnx", "Twist", "first", "Turn", "second"):
            self.assertIn(words, done.stderr)
        self.assertFalse(done.stderr.endswith("\n\n"))

    def test_threads(self):
        path = self.binary()
        results = {tenon("run", path, "--threads", n, "--input=a=64x3", "--input=b=64x3").stdout
                   for n in (1, 2, 3)}
        self.assertEqual(len(results), 1)

    def test_no_threads_are_one_for_each_core(self):
        given = self.binary(), "--input=a=8x3", "--input=b=8x3", "--repeat=1", "--json"

        def threads(*options, **env):
            done = tenon("bench", *given, *options, env=environment(**env))
            return json.loads(done.stdout)["threads"]

        cores = threads(TENON_THREADS="0")
        self.assertEqual(threads("--threads=0"), cores)
        self.assertEqual(threads("--threads=0", TENON_THREADS=str(cores + 1)), cores)
        self.assertEqual(threads(TENON_THREADS=str(cores + 1)), cores + 1)


class Chain(Case):
    STEP_KEYS = {"name", "kernel", "ms", "share", "operations", "bytes", "gflops", "gbps",
                 "peak_fraction", "peak", "steps", "times"}

    def chain(self):
        """Makes a model of a product and a long chain of sums, which are two kernels, with names
        that must be escaped in output."""
        nodes = [helper.make_node("MatMul", ["a", "b"], ["p"], "scope/pro\x1b[31mduct"),
                 helper.make_node("Mul", ["p", "p"], ["q"], "scope/<b>&square"),
                 helper.make_node("ReduceSum", ["q"], ["y"], "scope/sum")]
        return model(self.file("chain.onnx"), nodes,
                     [value("a", TensorProto.FLOAT, ("n", 48)),
                      value("b", TensorProto.FLOAT, [48, 64])],
                     [value("y", TensorProto.FLOAT, None)])

    def run_chain(self, *args):
        return tenon("run", self.chain(), "--input=a=32x48", *args)


class Loops(Case):
    def scan(self):
        """Makes a model of a loop that adds each row's product with a matrix to a state."""
        body = helper.make_graph(
            [helper.make_node("Add", ["s", "r"], ["t"]), helper.make_node("MatMul", ["t", "w"], ["u"])],
            "body", [value("s", TensorProto.FLOAT, [3, 4]), value("r", TensorProto.FLOAT, [3, 4])],
            [value("u", TensorProto.FLOAT, [3, 4])])
        return model(self.file("scan.onnx"),
                     [helper.make_node("Scan", ["a", "x"], ["y"], body=body, num_scan_inputs=1)],
                     [value("a", TensorProto.FLOAT, [3, 4]), value("w", TensorProto.FLOAT, [4, 4]),
                      value("x", TensorProto.FLOAT, ["n", 3, 4])],
                     [value("y", TensorProto.FLOAT, None)])

    def test_each_step_counts(self):
        told = json.loads(tenon("bench", self.scan(), "--json", "--repeat", "1",
                                "--size=n=7").stdout)
        self.assertAlmostEqual(told["gflops"] * told["best_ms"] * 1e6 / (7 * 2 * 3 * 4 * 4), 1,
                               places=5)

    def test_profile_tells_the_loop(self):
        told = json.loads(tenon("run", self.scan(), "--input=x=7x3x4", "--profile",
                                "--json").stdout)["profile"]
        loop = [s for s in told["steps"] if s["steps"]]
        self.assertEqual([s["kernel"] for s in loop], [None])
        self.assertTrue(0 <= loop[0]["share"] < 1)  # without its body
        self.assertAlmostEqual(sum(s["share"] for s in told["steps"]), 1, 1)
        body = [s for s in told["steps"] if s["times"] == 7]
        self.assertEqual(len(body), loop[0]["steps"])
        self.assertAlmostEqual(sum(s["ms"] for s in told["steps"] if s["times"] == 1),
                               told["steps_ms"])
        self.assertGreaterEqual(sum(s["operations"] for s in body), 7 * 2 * 3 * 4 * 4)
        explained = tenon("explain", self.scan(), "--input=x=7x3x4").stdout
        self.assertIn("a loop of the next", explained)


class Profile(Chain):
    def test_every_step_is_told_of(self):
        told = json.loads(self.run_chain("--profile", "--json").stdout)["profile"]
        self.assertEqual(set(told), {"runs", "ms", "steps_ms", "peak_gflops", "peak_gbps",
                                     "steps"})
        self.assertTrue(1 <= told["runs"] <= 10)
        self.assertGreater(told["peak_gflops"], 0)
        self.assertGreater(told["peak_gbps"], 0)
        for step in told["steps"]:
            self.assertEqual(set(step), self.STEP_KEYS)
            self.assertGreater(step["ms"], 0)
            self.assertAlmostEqual(step["gflops"], step["operations"] / step["ms"] / 1e6, 3)
            self.assertIn(step["peak"], ("compute", "memory"))
        self.assertAlmostEqual(sum(s["ms"] for s in told["steps"]), told["steps_ms"])
        self.assertAlmostEqual(sum(s["share"] for s in told["steps"]), 1)
        names = ", ".join(s["name"] for s in told["steps"])
        for name in ("<b>&square", "sum"):
            self.assertIn(name, names)
        self.assertNotIn("scope/", names)
        least = 2 * 32 * 48 * 64 + 2 * 32 * 64
        self.assertGreaterEqual(sum(s["operations"] for s in told["steps"]), least)
        self.assertGreaterEqual(sum(s["bytes"] for s in told["steps"]),
                                4 * (32 * 48 + 48 * 64 + 1))

    def test_nodes_without_names_are_called_by_their_operators(self):
        nodes = [helper.make_node("MatMul", ["a", "b"], ["12"]),
                 helper.make_node("Tanh", ["12"], ["13"], "named"),
                 helper.make_node("Relu", ["13"], ["14"])]
        path = model(self.file("m.onnx"), nodes, [value("a", TensorProto.FLOAT, [8, 8]),
                                                  value("b", TensorProto.FLOAT, [8, 8])],
                     [value("14", TensorProto.FLOAT, [8, 8])])
        told = json.loads(tenon("run", path, "--profile", "--json").stdout)["profile"]
        self.assertEqual([s["name"] for s in told["steps"]], ["MatMul, named, Relu"])

    def test_the_table_is_text(self):
        said = self.run_chain("--profile").stdout
        self.assertIn("GFLOP/s", said)
        self.assertIn("pro\\x1b[31mduct", said)
        self.assertIn("all run on CPU:0, queue compute", said)
        self.assertNotIn("\x1b", said)
        self.assertRegex(said, r"steps take [0-9.]+ .?s of a run's [0-9.]+ .?s, the median of \d+ runs?\n")
        self.assertNotIn("GFLOP/s", self.run_chain().stdout)

    def test_traces_hold_all_steps_of_all_runs(self):
        path = self.file("trace.json")
        done = self.run_chain("--profile", "--json", "--trace", path)
        told = json.loads(done.stdout)["profile"]
        self.assertIn(f"wrote the trace to {path}", done.stderr)
        events = json.loads(path.read_text())["traceEvents"]
        spans = [e for e in events if e["ph"] == "X"]
        runs = [e for e in spans if e["name"] in ("first run", "run")]
        self.assertEqual(len(runs), told["runs"] + 1)
        self.assertEqual([e["name"] for e in spans if e["tid"] == 1][:3],
                         ["load", "inputs", "compile"])
        names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
        self.assertEqual(names[1], "command")
        self.assertIn("CPU:0 compute", names.values())
        self.assertIn("CPU:0 host", names.values())
        steps = [e for e in spans if names[e["tid"]] == "CPU:0 compute"]
        copies = [e["name"] for e in spans if names[e["tid"]] == "CPU:0 host"]
        self.assertTrue(copies)
        self.assertTrue(all(re.match("copy of (in|out)put ", name) for name in copies))
        self.assertEqual(len(steps), len(runs) * len(told["steps"]))
        for step in steps:
            self.assertTrue(any(r["ts"] <= step["ts"] and
                                step["ts"] + step["dur"] <= r["ts"] + r["dur"] + 0.01
                                for r in runs))
        self.run_chain("--trace", path)
        events = json.loads(path.read_text())["traceEvents"]
        self.assertEqual(sum(e["name"] == "first run" for e in events), 1)
        self.assertEqual(sum(e["name"] == "run" for e in events), 0)

    def test_traces_take_no_files_place(self):
        path = self.chain()
        before = path.read_bytes()
        self.misuse("run", path, "--trace", path, says="is the model and would be overwritten")
        self.misuse("run", path, "--trace", "-", says="--trace must be a file, not -")
        y = self.file("y.npy")
        self.misuse("run", path, f"--output=y={y}", "--trace", y, says="are the same file")
        a = self.array("a.npy", np.ones((2, 48), np.float32))
        self.misuse("run", path, f"--input=a={a}", "--trace", a, says="the file of input a")
        nowhere = self.file("none") / "trace.json"
        self.assertIn(str(nowhere.parent), tenon("run", path, "--trace", nowhere, status=1).stderr)
        self.assertEqual(path.read_bytes(), before)
        self.assertFalse(y.exists())


class Page(html.parser.HTMLParser):
    """Parses an HTML page: checks that tags are closed, collects links and text."""
    VOID = {"meta"}
    IMPLIED = {"td", "th", "dt", "dd", "tr"}

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.ids, self.links, self.words = [], [], set(), [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        attrs = dict(attrs)
        self.ids |= {attrs["id"]} if "id" in attrs else set()
        self.links += [attrs[k] for k in ("href", "src") if k in attrs]
        if tag not in self.VOID and tag not in self.IMPLIED:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.IMPLIED and self.open.pop() != tag:
            raise AssertionError(f"</{tag}> closes nothing")

    def handle_data(self, data):
        self.words.append(data)


class Explain(Chain):
    def explain(self, *args, **kwargs):
        return tenon("explain", self.chain(), "--input=a=32x48", *args, **kwargs)

    def test_text_has_steps_reasons_and_schedules(self):
        said = self.explain().stdout
        self.assertIn("of peak", said)
        self.assertIn("\nstep 1: ", said)
        self.assertIn("reduce add f32 [32, 64]", said)
        self.assertRegex(said, r"stored: a graph output")
        self.assertRegex(said, r"computed in its reader: \S+ .s \(in place .*\); stored: ")
        self.assertRegex(said, r"loops +write:")
        self.assertRegex(said, r"schedule +[A-Z]+ ")
        self.assertNotIn("\x1b", said)

    def test_pieces_of_concatenations_are_counted(self):
        nodes = [helper.make_node("MatMul", ["a", "b"], ["p"]),
                 helper.make_node("MatMul", ["a", "c"], ["q"]),
                 helper.make_node("Concat", ["p", "q", "d"], ["y"], axis=1)]
        path = model(self.file("joined.onnx"), nodes,
                     [value("a", TensorProto.FLOAT, [32, 48]),
                      value("d", TensorProto.FLOAT, [32, 8]),
                      value("b", TensorProto.FLOAT, [48, 64]),
                      value("c", TensorProto.FLOAT, [48, 32])],
                     [value("y", TensorProto.FLOAT, None)])
        said = tenon("explain", path).stdout
        self.assertIn("2 pieces written into larger arrays", said)
        self.assertIn("1 piece copied into larger arrays", said)
        self.assertEqual(said.count("copies    1 piece of larger arrays"), 1)
        self.assertEqual(said.count("writes    1 piece of larger arrays"), 2)
        self.assertEqual(said.count("stored: a piece of a larger array"), 3)
        page = self.file("joined.html")
        tenon("explain", path, "-o", page)
        with open(page, encoding="utf-8") as file:
            text = file.read()
            self.assertEqual(text.count("Writes 1 piece of larger arrays."), 2)
            self.assertEqual(text.count("Copies 1 piece of larger arrays."), 1)
        self.assertNotIn("piece", self.explain().stdout)

    def test_kernels_in_no_graph_have_a_reason(self):
        why = r"\d kernels? of CPU:0 in no graph: its backend has no graphs"
        self.assertRegex(self.explain().stdout, f"\n{why}\n")
        page = self.file("graphs.html")
        self.explain("-o", page)
        self.assertRegex(page.read_text(encoding="utf-8"), f" {why}\\. ")

    def test_one_kernel_has_its_source(self):
        said = self.explain("--kernel", "1").stdout
        self.assertIn("kernel    1\n", said)
        self.assertNotIn("of peak", said)
        self.assertRegex(said, r"(?s)(void \w+|define void @\w+)\(.*\{.*\}")
        if shutil.which("cc") and "define void" not in said:  # it compiles on its own
            subprocess.run(["cc", "-Werror=implicit-function-declaration", "-c", "-x", "c", "-",
                            "-o", self.file("kernel.o")], input=said, text=True, check=True,
                           capture_output=True)
        self.misuse("explain", self.chain(), "--input=a=2x48", "--kernel", "99",
                    says="chain.onnx has ")
        self.misuse("explain", self.chain(), "--kernel", "0", says="--kernel must be a number")
        self.misuse("explain", self.chain(), "--kernel=1", "-o", self.file("x.html"),
                    says="--kernel and --output cannot be combined")

    def test_the_page_is_whole_and_holds_nothing_foreign(self):
        path = self.file("page.html")
        done = self.explain("-o", path)
        self.assertEqual(done.stdout, "")
        self.assertIn(f"wrote the page to {path}", done.stderr)
        text = path.read_text(encoding="utf-8")
        page = Page(text)
        self.assertEqual(page.open, [])
        self.assertTrue({"svg", "table", "details", "pre", "style"} <= set(page.tags))
        self.assertEqual(page.tags.count("b"), sum(i.startswith("step-") for i in page.ids))
        for link in page.links:
            self.assertIn(link, {f"#{i}" for i in page.ids})
        for foreign in ("http:", "https:", "url(", "@import"):
            self.assertNotIn(foreign, text)
        self.assertNotIn("\x1b", text)
        self.assertIn("<b>&square", "".join(page.words))
        self.assertIn("prefers-color-scheme:dark", text)
        self.assertIn("width=device-width", text)

    def test_numbers_have_units_that_suit_them(self):
        path = model(self.file("small.onnx"), [helper.make_node("MatMul", ["a", "b"], ["y"])],
                     [value("a", TensorProto.FLOAT, ["n", 3]), value("b", TensorProto.FLOAT, [3, "n"])],
                     [value("y", TensorProto.FLOAT, None)])
        page = self.file("page.html")
        tenon("explain", path, "-o", page, "--input=a=2x3", "--input=b=3x2")
        text = page.read_text(encoding="utf-8")
        row = re.search(r"<tbody>\n(<tr>.*</tr>)\n", text).group(1)
        self.assertRegex(row, r"<td>[0-9.]+ (ns|µs|ms)<td class=\"bar\">")
        self.assertRegex(row, r"<td>24<td>64 B<td>[0-9.]+<td>[0-9.]+<td>\d+ % (memory|compute)</tr>")
        self.assertRegex(text, r"Steps take [0-9.]+ (ns|µs|ms) of a run's [0-9.]+ (ns|µs|ms);")
        self.assertRegex(text, r"1 · [0-9.]+ (ns|µs|ms) · 100.0 %</text>")
        said = tenon("run", path, "--profile", "--input=a=2x3", "--input=b=3x2").stdout
        self.assertRegex(said, r"(?m)^ +1 +1 +[0-9.]+ (ns|µs|ms) 100.0 % +[0-9.]+ +[0-9.]+ ")

    def test_the_page_tells_what_sizes_that_vary_were(self):
        page = self.file("page.html")
        self.explain("-o", page)
        self.assertIn(" Sizes that vary: n = 32.</p>", page.read_text(encoding="utf-8"))
        path = self.binary(a=("n<", "n<"), b=("m", None))
        said = tenon("explain", path, "-o", page, "--size=m=n<", "--size=b:1=n<").stderr
        self.assertIn("input a: varying sizes default to n< = 1\n", said)
        self.assertIn("Sizes that vary: n&lt; = 1.", page.read_text(encoding="utf-8"))
        tenon("explain", self.binary(a=(2, 3), b=(2, 3)), "-o", page)
        self.assertNotIn("Sizes that vary", page.read_text(encoding="utf-8"))

    def test_boxes_of_the_drawing_lie_apart(self):
        nodes, last = [helper.make_node("MatMul", ["x", "x"], ["v0"])], "v0"
        for i in range(1, 9):  # each reads the first and the one before, in separate kernels
            nodes += [helper.make_node("MatMul", [last, "v0"], [f"v{i}"]),
                      helper.make_node("MatMul", ["v0", last], [f"w{i}"])]
            last = f"v{i}"
        nodes.append(helper.make_node("Add", [last, "w1"], ["y"]))
        path = model(self.file("net.onnx"), nodes, [value("x", TensorProto.FLOAT, [256, 256])],
                     [value(n, TensorProto.FLOAT, None) for n in ("y", "w4", "w8")])
        page = self.file("page.html")
        tenon("explain", path, "-o", page)
        text = page.read_text(encoding="utf-8")
        boxes = [tuple(map(int, b)) for b in
                 re.findall(r'</title><rect x="(\d+)" y="(\d+)" width="(\d+)" height="(\d+)"', text)]
        self.assertEqual(len(boxes), text.count("<details id="))
        self.assertGreater(len(boxes), 5)
        wide, high = map(int, re.search(r'<svg width="(\d+)" height="(\d+)"', text).groups())
        for i, (x, y, w, h) in enumerate(boxes):
            self.assertTrue(x >= 0 and y >= 0 and x + w <= wide and y + h <= high)
            for x2, y2, w2, h2 in boxes[:i]:
                self.assertTrue(x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y)

    def test_what_is_read_is_not_replaced(self):
        path = self.chain()
        before = path.read_bytes()
        self.misuse("explain", path, "-o", path, says="is the model and would be overwritten")
        self.misuse("explain", path, "-o", "-", says="--output must be a file, not -")
        self.misuse("explain", path, "-o", says="--output requires a value")
        self.misuse("explain", path, "-x", says="unknown option -x")
        self.assertEqual(path.read_bytes(), before)
        nowhere = self.file("none") / "page.html"
        self.assertIn(str(nowhere.parent), tenon("explain", path, "-o", nowhere, status=1).stderr)
        self.assertIn("none.onnx", tenon("explain", self.file("none.onnx"), status=1).stderr)


class Bench(Case):
    def bench(self, what, *args):
        done = tenon("bench", what, "--json", "--warmup", "1", "--repeat", "5", *args)
        told = json.loads(done.stdout)
        self.assertEqual(set(told), BENCH_KEYS)
        self.assertEqual(told["runs"], 5)
        self.assertEqual(told["name"], str(what))
        self.assertEqual(told["device"], "CPU:0")
        times = [told[k] for k in ("best_ms", "median_ms", "p90_ms", "p99_ms")]
        self.assertEqual(times, sorted(times))
        self.assertGreater(times[0], 0)
        self.assertGreaterEqual(told["mean_ms"], times[0])
        self.assertGreaterEqual(told["compiled"], 0)
        self.assertLessEqual(told["compiled"], told["kernels"])
        self.assertGreater(told["peak_bytes"], 1 << 20)
        return told

    def test_contractions_have_a_rate(self):
        for what, operations in (("matmul:48x32x64", 2 * 48 * 32 * 64),
                                 ("matmul:16x16x16:f16", 2 * 16**3),
                                 ("matmul:16x16x16:bf16", 2 * 16**3),
                                 ("conv:1,4,8,8,6,3,2,1", 2 * 6 * 4 * 4 * 4 * 9),
                                 ("attention:2x8x4", 4 * 2 * 8 * 8 * 4)):
            with self.subTest(what=what):
                told = self.bench(what)
                self.assertAlmostEqual(told["gflops"] * told["best_ms"] * 1e6 / operations, 1,
                                       places=5)
                self.assertGreater(told["peak_gflops"], 0.1)
                self.assertAlmostEqual(told["peak_fraction"] * told["peak_gflops"] / told["gflops"],
                                       1, places=5)
                self.assertGreaterEqual(told["kernels"], 1)

    def test_integers_have_no_share_of_the_floating_peak(self):
        for what in ("matmul:16x16x16:i8", "conv:1,2,6,6,2,3,1,1:i8"):
            told = self.bench(what)
            self.assertGreater(told["gflops"], 0)
            self.assertIsNone(told["peak_fraction"])

    def test_the_rest_has_traffic(self):
        for what, moved in (("softmax:32x40", 2 * 32 * 40 * 4), ("gelu:32x40", 2 * 32 * 40 * 4),
                            ("layernorm:32x40", 2 * 32 * 40 * 4 + 2 * 40 * 4),
                            ("add:32x40", 3 * 32 * 40 * 4), ("add:32x40:i8", 3 * 32 * 40),
                            ("sum:32x40:0", 32 * 40 * 4 + 40 * 4),
                            ("sum:32x40:-1:bf16", 32 * 40 * 2 + 32 * 2),
                            ("sum:32x40:1:i8", 32 * 40 + 32 * 8),
                            ("transpose:32x40:f16", 2 * 32 * 40 * 2), ("copy:4096", 2 * 4096)):
            with self.subTest(what=what):
                told = self.bench(what)
                self.assertIsNone(told["gflops"])
                self.assertIsNone(told["peak_fraction"])
                self.assertAlmostEqual(told["gbps"] * told["best_ms"] * 1e6 / moved, 1, places=5)

    def test_models(self):
        told = self.bench(self.binary(), "--input=a=8x3", "--input=b=8x3", "--threads", "1")
        self.assertEqual(told["threads"], 1)
        self.assertGreater(told["compile_ms"], 0)
        self.assertGreaterEqual(told["kernels"], 1)
        self.assertIsNone(told["gbps"])
        self.assertIsNone(told["gflops"])

    def test_contractions_of_models_count(self):
        weights = [onnx.numpy_helper.from_array(np.ones(s, np.float32), n)
                   for n, s in (("w", (6, 2, 3, 3)), ("v", (4, 5)))]
        nodes = [helper.make_node("Conv", ["x", "w"], ["t"], pads=[1, 1, 1, 1]),
                 helper.make_node("MatMul", ["t", "v"], ["u"]),
                 helper.make_node("Mul", ["u", "u"], ["s"]),
                 helper.make_node("ReduceSum", ["s"], ["y"])]
        path = model(self.file("m.onnx"), nodes, [value("x", TensorProto.FLOAT, ["n", 2, 7, 4])],
                     [value("y", TensorProto.FLOAT, None)], initializer=weights)
        told = self.bench(path, "--input=x=3x2x7x4")
        operations = 2 * 3 * 6 * 7 * 4 * (2 * 9) + 2 * 3 * 6 * 7 * 4 * 5
        self.assertAlmostEqual(told["gflops"] * told["best_ms"] * 1e6 / operations, 1, places=5)
        self.assertGreater(told["peak_fraction"], 0)

    def test_compilations_are_told_by_pass_and_kernel(self):
        done = tenon("bench", "softmax:64x100", "--json", "--compile", "--repeat=1")
        told = json.loads(done.stdout)
        self.assertEqual(set(told), BENCH_KEYS | {"compile"})
        passes = {p["name"]: p for p in told["compile"]["passes"]}
        for name in ("normalise", "kernels", "choose", "lower", "linearise", "render", "compiler"):
            self.assertGreater(passes[name]["ms"], 0)
        self.assertLessEqual(sum(p["ms"] for p in passes.values()), told["compile_ms"])
        self.assertGreater(passes["lower"]["nodes"], 0)
        self.assertGreater(passes["simplify"]["rules"] + passes["normalise"]["rules"] +
                           passes["decompose"]["rules"], 0)
        kernels = told["compile"]["kernels"]
        self.assertEqual(len(kernels), told["kernels"])
        self.assertGreater(kernels[0]["nodes"], 0)
        said = tenon("bench", "softmax:64x100", "--compile", "--repeat=1").stdout
        self.assertRegex(said, r"(?m)^ +[0-9.]+ +\d+ +\d+  linearise$")
        self.assertNotIn("linearise", tenon("bench", "softmax:64x100", "--repeat=1").stdout)

    def test_no_runs_need_come_before(self):
        told = json.loads(tenon("bench", "add:4x4", "--json", "--warmup", "0", "--repeat",
                                "1").stdout)
        self.assertEqual(told["runs"], 1)
        self.assertIsNone(told["sd_ms"])

    def test_one_run_deviates_from_no_other(self):
        text = tenon("bench", "add:4x4", "--repeat", "1").stdout
        self.assertRegex(text, r"(?m)^mean     [\d.e-]+ (ns|µs|ms|s), 1 run$")

    def test_bytes_may_have_units(self):
        told = json.loads(tenon("bench", "copy:64k", "--json", "--repeat", "1").stdout)
        self.assertAlmostEqual(told["gbps"] * told["best_ms"] * 1e6 / (2 * 65536), 1, places=5)

    def test_a_missing_model_is_told(self):
        self.assertIn("none.onnx", tenon("bench", "none.onnx", status=1).stderr)

    def test_text(self):
        text = tenon("bench", "matmul:8x8x8", "--repeat", "3").stdout
        for words in ("matmul:8x8x8 on CPU:0", "compile", "best", "±", "3 runs", "p99", "GFLOP/s",
                      "GB/s", "of the measured", "memory"):
            self.assertIn(words, text)
        times = re.findall(r"(?m)(?:^best +|^p50 +|, p9\d )([\d.]+) (ns|µs|ms|s)\b", text)
        self.assertEqual(len(times), 4)
        for number, unit in times:
            self.assertTrue(unit == "ns" or 1 <= float(number) <= 1000, (number, unit))


class Tune(Case):
    """Tests of tuning. Which schedules are faster is the machine's affair: the tests check what is
    recorded, kept and used."""
    MEASURED = {"faster", "slower", "equal", "wrong", "failed"}

    def setUp(self):
        super().setUp()
        self.tuned = self.file("tuned")
        self.env = environment(TENON_CACHE=str(self.file("cache")), TENON_TUNED="")
        nodes = [helper.make_node("Conv", ["a", "w"], ["c"], pads=[1, 1, 1, 1]),
                 helper.make_node("MatMul", ["c", "b"], ["y"])]
        self.model = model(self.file("product.onnx"), nodes,
                           [value("a", TensorProto.FLOAT, ("n", 24, 30, 30)),
                            value("w", TensorProto.FLOAT, [40, 24, 3, 3]),
                            value("b", TensorProto.FLOAT, [30, 160])],
                           [value("y", TensorProto.FLOAT, None)])

    def tune(self, *args, **kwargs):
        return tenon("tune", self.model, "--input=a=2x24x30x30", "--threads=1", *args,
                     **{"env": self.env, **kwargs})

    def tune_some(self, *args, status=0, **kwargs):
        """Tunes for as long as it takes to measure some schedules: longer with sanitizers, or on a
        machine that does other work too."""
        for seconds in (3, 12, 48):
            done = self.tune(f"--for={seconds}s", *args, status=None, **kwargs)
            if "time ran out before any" not in done.stderr:
                break
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def start(self):
        return subprocess.Popen([TENON, "tune", self.model, "--input=a=2x24x30x30", "--threads=1",
                                 "--for=1h", "-o", self.tuned],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=self.env)

    def records(self, path=None):
        """Returns the fields of each line, after a check that nothing was measured twice."""
        lines = (path or self.tuned).read_text(encoding="ascii").splitlines()
        records = [line.split(" ") for line in lines]
        for fields in records:
            self.assertEqual((fields[0], len(fields)), ("tenon-tuned-2", 13))
        measured = [tuple(r[1:4] + [r[6]]) for r in records if r[5] in self.MEASURED]
        self.assertEqual(len(measured), len(set(measured)))
        return records

    def test_text(self):
        text = self.tune_some("-o", self.tuned).stdout
        self.assertRegex(text, r"(?m)^kernels    2 with other schedules, [0-2] faster with one, [0-2] kept$")
        self.assertRegex(text, r"(?m)^schedules  \d+ predicted, \d+ measured$")
        self.assertRegex(text, r"(?m)^run        (\S+ \S+, unchanged|[\d.]+ % faster \(\S+ \S+ → \S+ \S+\))$")
        self.assertIn(f"file       {self.tuned}\n", text)
        self.assertTrue(self.records())
        kept, measured = (int(re.search(rf"(\d+) {word}\n", text)[1]) for word in ("kept", "measured"))
        self.assertEqual(bool(re.search(r"(?m)^kept       none: ", text)), not kept and measured > 0)

    def test_why_nothing_is_kept_is_told(self):
        small = model(self.file("small.onnx"), [helper.make_node("Relu", ["a"], ["y"])],
                      [value("a", TensorProto.FLOAT, [2])], [value("y", TensorProto.FLOAT, [2])])
        said = tenon("tune", small, "--for=5s", "-o", self.tuned, env=self.env).stdout
        self.assertIn("kept       none: no kernel has other schedules\n", said)

    def test_what_was_measured_of_a_library_is_told(self):
        library = TENON.parent / "tests" / "vendor" / "libstand_in_blas.so"
        if not library.exists():
            self.skipTest("no stand-in for OpenBLAS")
        plain = model(self.file("plain.onnx"), [helper.make_node("MatMul", ["a", "b"], ["y"])],
                      [value("a", TensorProto.FLOAT, [48, 33]), value("b", TensorProto.FLOAT, [33, 80])],
                      [value("y", TensorProto.FLOAT, [48, 80])])
        for vendor in "on", "off":
            with self.subTest(vendor):
                self.tuned.unlink(missing_ok=True)
                env = {**self.env, "TENON_VENDOR": vendor, "TENON_OPENBLAS": str(library)}
                said = tenon("tune", plain, "--for=12s", "--threads=1", "-o", self.tuned, env=env).stdout
                told = re.search(r"(?m)^library    openblas measured for 1 kernel, faster for ([01])$", said)
                self.assertEqual(bool(told), vendor == "on", said)
                kept = any(r[5] == "kept" and r[6] == "library:openblas" for r in self.records())
                self.assertEqual(", 1 of them by openblas\n" in said, kept, said)

    def test_too_little_time_is_told(self):
        for seconds in (1, 3):
            done = self.tune(f"--for={seconds}s", "--json", "-o", self.tuned)
            self.assertEqual("time ran out before any" in done.stderr,
                             not json.loads(done.stdout)["measured"])

    def test_json_and_the_file_in_the_cache(self):
        told = json.loads(self.tune_some("--json").stdout)
        self.assertEqual(set(told), {"name", "kernels", "predicted", "measured", "faster", "kept",
                                     "before_ms", "after_ms", "file", "library", "library_measured",
                                     "library_faster", "library_kept"})
        self.assertIsNone(told["library"])
        self.assertEqual(told["file"], str(self.file("cache") / "tuned"))
        self.assertEqual(told["kernels"], 2)
        self.assertGreater(told["predicted"], told["measured"])
        self.assertGreater(told["measured"], 0)
        self.assertLessEqual(told["after_ms"], told["before_ms"])
        verdicts = [r[5] for r in self.records(self.file("cache") / "tuned")]
        self.assertEqual(verdicts.count("kept"), told["kept"])
        tenon("cache", "--clear", env=self.env)  # it is no entry of the cache
        self.assertTrue(self.file("cache").joinpath("tuned").exists())

    def test_a_later_call_goes_on(self):
        first = json.loads(self.tune_some("--json", "-o", self.tuned).stdout)
        again = json.loads(self.tune("--for=3s", "--json", "-o", self.tuned).stdout)
        verdicts = [r[5] for r in self.records()]  # nothing twice
        self.assertEqual(sum(v in self.MEASURED - {"equal", "failed"} for v in verdicts),
                         first["measured"] + again["measured"])

    def test_what_was_tuned_is_used_without_a_compiler(self):
        self.tune_some("-o", self.tuned)
        ask = ("bench", self.model, "--input=a=2x24x30x30", "--threads=1", "--repeat=1", "--json")
        told = json.loads(tenon(*ask, env={**self.env, "TENON_TUNED": str(self.tuned)}).stdout)
        self.assertEqual(told["compiled"], 0)
        kept = any(r[5] == "kept" for r in self.records())
        for tuned, is_told in ((str(self.tuned), kept), ("off", False)):
            text = tenon("explain", self.model, "--input=a=2x24x30x30", "--threads=1",
                         env={**self.env, "TENON_TUNED": tuned}).stdout
            self.assertEqual("the schedule was found by measuring" in text, is_told)

    def test_the_log_tells_whether_tuned_schedules_are_used(self):
        self.tune_some("-o", self.tuned)
        kept = len({tuple(r[1:4]) for r in self.records() if r[5] == "kept"})
        run = ("run", self.model, "--input=a=2x24x30x30", "--threads=1")
        told = tenon(*run, "-v", env={**self.env, "TENON_TUNED": str(self.tuned)}).stderr
        self.assertIn(f"tuned schedules of {kept} kernel", told)
        self.assertEqual(": tuned schedules for " in told, kept > 0)
        none = self.file("nowhere")
        told = tenon(*run, env={**self.env, "TENON_TUNED": str(none)}).stderr
        self.assertIn(f'there is no file of tuned schedules "{none}"', told)
        told = self.tune("--for=1s", "-o", none).stderr  # makes it
        self.assertNotIn("there is no file", told)
        self.assertIn(f"tenon tune: tuning {self.model} for 1s; measurements go to {none}\n", told)

    def test_a_kill_loses_one_line_at_most(self):
        for lines in (2, 5):
            with self.start() as process:
                wait_until(lambda: self.tuned.exists() and
                           self.tuned.read_text(encoding="ascii").count("\n") >= lines)
                process.kill()
                process.communicate(timeout=100)
        self.assertGreaterEqual(len(self.records()), 5)
        with open(self.tuned, "ab") as file:
            file.write(b"tenon-tuned-2 0123")  # as half a line
        self.tune_some("-o", self.tuned)
        whole = self.tuned.read_text(encoding="ascii").split("\n")
        self.assertIn("tenon-tuned-2 0123", whole)
        self.tuned.write_text("\n".join(x for x in whole if x != "tenon-tuned-2 0123"))
        self.records()

    def test_an_interrupt_keeps_what_was_found(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            self.tuned.unlink(missing_ok=True)
            with self.subTest(number), self.start() as process:
                wait_until(lambda: self.tuned.exists() and self.tuned.stat().st_size)
                process.send_signal(number)
                text, said = process.communicate(timeout=100)
                self.assertEqual(process.returncode, 0, said)
                self.assertIn("ended early", said)
                self.assertRegex(text, r"(?m)^run        .*(unchanged$|% faster )")
                found = {r[5] for r in self.records()}
                self.assertTrue("faster" not in found or found & {"kept", "dropped"})

    def test_the_state_is_shown_on_a_terminal(self):
        said = on_terminal("tune", self.model, "--input=a=2x24x30x30", "--threads=1", "--for=3s", "-o",
                           self.tuned, TERM="xterm", TENON_CACHE=str(self.file("cache")))
        self.assertRegex(said, r"\d of 2 kernels faster, \d+ schedules? measured, "
                               r"run (unchanged|[\d.]+ % faster), 0:0\d left\x1b\[K")

    def test_wrong_times_are_told(self):
        for wrong in ("10", "m", "-5s", "0s", "1.5m", "5 m", "10d", "12345678s", "5ms"):
            with self.subTest(wrong):
                self.misuse("tune", self.model, f"--for={wrong}", says="--for must be a time such as")

    def test_files_that_cannot_be_used_are_told(self):
        other = self.file("letter")
        other.write_text("Dear all,\n")
        for path, says in ((other, "it begins with something else"), (self.folder, "letter"),
                           (self.file("none/tuned"), "none/tuned")):
            with self.subTest(path):
                done = self.tune("--for=1s", "-o", path, status=1)
                self.assertIn(says if path != self.folder else str(path), done.stderr)
        self.assertEqual(other.read_text(), "Dear all,\n")
        done = self.tune("--for=1s", "-o", self.model, status=2)
        self.assertIn("is the model and would be overwritten", done.stderr)
        done = self.tune("--for=1s", status=1, env={**self.env, "TENON_TUNED": "off"})
        self.assertIn("there is no file of tuned schedules", done.stderr)

    def test_a_full_disk_is_told(self):
        self.tuned.write_text("tenon-tuned-2\n" * 200000)  # larger than what the compiler writes
        size = 100 + self.tuned.stat().st_size
        done = self.tune_some("-o", self.tuned, status=1, preexec_fn=lambda: limit_files(size))
        self.assertIn("cannot be written", done.stderr)
        self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
