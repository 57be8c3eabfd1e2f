"""Drivers of C libraries and memory copies, through the shared objects of bench/native."""
import ctypes
import platform
from pathlib import Path

import numpy as np

from worker import RUNS_LEAST, RUNS_MOST, Work, aligned

INT64 = ctypes.c_int64


class Missing(Exception):
    pass


class Times(ctypes.Structure):
    _fields_ = [("enough", INT64), ("least", INT64), ("most", INT64), ("n", INT64), ("sum", INT64),
                ("at", ctypes.POINTER(INT64))]


class Copy(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("threads", ctypes.c_int32), ("bytes", INT64),
                ("source", ctypes.c_void_p), ("target", ctypes.c_void_p)]


def load(build, name):
    path = Path(build).resolve() / "bench" / f"bench_{name}.so"
    if not path.exists():
        raise Missing(f"{path.name} was not built (-DTENON_BENCH=ON, with the library installed)")
    return ctypes.CDLL(str(path))


def times_of(call, enough):
    """Returns times of runs in nanoseconds, measured by call(pointer to Times), which returns 0."""
    at = (INT64 * RUNS_MOST)()
    times = Times(enough, RUNS_LEAST, RUNS_MOST, 0, 0, at)
    status = call(ctypes.byref(times))
    if status:
        raise RuntimeError(f"a run failed with status {status}")
    return list(at[:times.n])


def function_times(build, function, argument):
    """Returns times(enough) of a C function that takes one pointer and returns 0."""
    run = load(build, "native").bench_run_times
    run.argtypes = [ctypes.c_void_p] * 3
    address = ctypes.cast(function, ctypes.c_void_p)
    return lambda enough: times_of(lambda t: run(address, argument, t), enough)


def empty(shape, dtype=np.float32):
    """Makes an array whose pages are mapped."""
    return aligned(np.zeros(shape, dtype))


class Library:
    """A shared object with the functions of native/peer.h."""

    def __init__(self, settings):
        self.build, self.lib = settings["build"], load(settings["build"], settings["argument"])
        self.lib.bench_peer_version.restype = ctypes.c_char_p
        self.lib.bench_peer_make.restype = ctypes.c_void_p
        self.lib.bench_peer_free.argtypes = [ctypes.c_void_p]
        self.lib.bench_peer_run.argtypes = [ctypes.c_void_p]
        self.work = None

    def version(self):
        return self.lib.bench_peer_version().decode()

    def prepare(self, task, inputs):
        self.lib.bench_peer_free(self.work)
        out = empty(task["output"])
        arrays = [x.ctypes.data for x in inputs.values()]
        self.work = self.lib.bench_peer_make(
            task["kind"].encode(), (INT64 * len(task["numbers"]))(*task["numbers"]),
            (ctypes.c_void_p * len(arrays))(*arrays), ctypes.c_void_p(out.ctypes.data))
        if not self.work:
            raise Missing(f"it has no {task['kind']} of these sizes")
        run, held, work = self.lib.bench_peer_run, (inputs, out), self.work

        def run_once():
            if run(work):
                raise RuntimeError("a run failed")

        return Work(run_once, lambda: held[1], function_times(self.build, run, work))


class Copies:
    """Copies as many bytes as a workload reads and writes: its first input, if the workload is a
    copy."""

    KINDS = {"memcpy": 0, "stream": 1}

    def __init__(self, settings):
        self.lib, self.threads = load(settings["build"], "native"), settings["threads"]
        self.kind = self.KINDS[settings["argument"]]
        if not self.lib.bench_copy_has(self.kind):
            raise Missing("this processor has no such stores")
        self.lib.bench_copy_times.argtypes = [ctypes.c_void_p] * 2

    def version(self):
        return " ".join(platform.libc_ver()) if self.kind == self.KINDS["memcpy"] else ""

    def prepare(self, task, inputs):
        size, is_copy = task["bytes"] // 2, task["kind"] == "copy"
        source = next(iter(inputs.values())) if is_copy else aligned(np.ones(size, np.uint8))
        target = aligned(np.zeros_like(source))
        copy = Copy(self.kind, self.threads, size, source.ctypes.data, target.ctypes.data)

        def times(enough, held=(source, target)):
            return times_of(lambda t: self.lib.bench_copy_times(ctypes.byref(copy), t), enough)

        return Work(lambda: times(0), lambda: target if is_copy else None, times)


def Side(settings):
    return (Copies if settings["argument"] in Copies.KINDS else Library)(settings)
