"""The process of a peer: it loads one library, and does nothing but what it is told.

What is called from outside is answer(). A `task` is a dictionary of what a side needs: `kind`,
`numbers`, `output` (a shape), `bytes`, `model` (the path of an ONNX file).
"""
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
    """Work that is ready: run() does it once, result() is the array of the last run (None: there is
    none). times(enough), where a side has one, is what loop() is for others."""

    def __init__(self, run, result, times=None):
        self.run, self.result = run, result
        self.times = times or (lambda enough: loop(run, enough))


def loop(run, enough):
    """Times of runs in nanoseconds; they go on for as long as native/clock.h says."""
    times, total, clock = [], 0, time.perf_counter_ns
    while (total < (enough if len(times) >= RUNS_LEAST else 10 * enough)
           and len(times) < RUNS_MOST or not times):
        start = clock()
        run()
        times.append(clock() - start)
        total += times[-1]
    return times


def aligned(array):
    """A copy that begins at a multiple of 64, as the arrays of all libraries themselves do."""
    room = np.empty(array.nbytes + 64, np.uint8)
    at = -room.ctypes.data % 64
    copy = room[at:at + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def start(chosen, cores):
    """First of all: the process ends with its parent, keeps to its cores, leaves standard
    output alone, and does not repeat what libraries warn their users of."""
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
    """Gets work ready, does it once, and writes what it gives to a file, if it gives anything;
    true if so. `inputs`: {name: path}."""
    drop()
    arrays = {name: aligned(np.load(path)) for name, path in inputs.items()}
    current["work"] = load().prepare(task, arrays)
    current["work"].run()
    array = current["work"].result()
    if array is not None:
        np.save(result, array)
    return array is not None


def turn(enough):
    """Times in nanoseconds; what the caches held is gone after the first run, which is not one of
    them."""
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
    """(True, what a function above returns) or (False, why it failed)."""
    try:
        return True, FUNCTIONS[name](*args)
    except Exception as e:  # whatever a library raises is its answer
        return False, f"{type(e).__name__}: {e}"[:600]
