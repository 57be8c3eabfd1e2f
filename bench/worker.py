"""Process of a peer: loads one library and runs the functions below on request, through answer(). A
`task` is a dictionary for a side: `kind`, `numbers`, `output` (a shape), `bytes`, `model` (the path
of an ONNX file), `network` (its name; None: no network), `bounds` (of open sizes)."""
import ctypes
import gc
import importlib
import os
import signal
import time
import warnings

import numpy as np

PR_SET_PDEATHSIG = 1
RUNS_LEAST, RUNS_MOST = 3, 100000

settings = {}  # threads, build (a folder), side (a module of sides/), argument
current = {}   # side, work


class Work:
    """Prepared work: run() does it once, result() returns the last run's array, or a list of arrays
    (None: there is none). times(enough), if a side has it, replaces loop()."""

    def __init__(self, run, result, times=None):
        self.run, self.result = run, result
        self.times = times or (lambda enough: loop(run, enough))


def loop(run, enough):
    """Returns times of runs in nanoseconds, repeated as long as native/clock.h says."""
    times, total, clock = [], 0, time.perf_counter_ns
    while (total < (enough if len(times) >= RUNS_LEAST else 10 * enough)
           and len(times) < RUNS_MOST or not times):
        start = clock()
        run()
        times.append(clock() - start)
        total += times[-1]
    return times


def aligned(array):
    """Copies an array to a multiple of 64, the alignment that all libraries use themselves."""
    room = np.empty(array.nbytes + 64, np.uint8)
    at = -room.ctypes.data % 64
    copy = room[at:at + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def start(chosen, cores):
    """Starts the worker: the process ends with its parent, keeps to its cores, leaves standard
    output alone, and shows each warning of a library once."""
    settings.update(chosen)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.sched_setaffinity(0, cores)
    os.dup2(2, 1)
    warnings.simplefilter("ignore")


def load():
    if "side" not in current:
        module = importlib.import_module("sides." + settings["side"])
        current["side"] = module.Side(settings)
    return current["side"]


def version():
    return load().version()


def peak():
    return load().peak()


def prepare(task, inputs, result):
    """Prepares work, runs it once, and writes its results to a file (.npz); returns true if there
    are some. `inputs`: {name: path}."""
    drop()
    arrays = {name: aligned(np.load(path)) for name, path in inputs.items()}
    current["work"] = load().prepare(task, arrays)
    current["work"].run()
    arrays = current["work"].result()
    if arrays is not None:
        np.savez(result, *(arrays if isinstance(arrays, list) else [arrays]))
    return arrays is not None


def turn(enough):
    """Returns times in nanoseconds; the first run, which fills the caches, is not among them."""
    work = current["work"]
    gc.collect()
    gc.disable()
    try:
        work.run()
        return work.times(enough)
    finally:
        gc.enable()


def drop():
    current.pop("work", None)
    gc.collect()


FUNCTIONS = {f.__name__: f for f in (version, peak, prepare, turn, drop)}


def answer(name, *args):
    """Returns (True, the result of a function above) or (False, the reason of its failure)."""
    try:
        return True, FUNCTIONS[name](*args)
    except Exception as e:  # any exception of a library is the answer
        return False, f"{type(e).__name__}: {e}"[:600]
