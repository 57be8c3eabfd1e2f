"""Peers of the comparison, and their processes. Each peer runs in a process that is stopped outside
of its turns, so that spinning threads do not disturb others. It runs on as many cores as it may
have threads."""
import multiprocessing
import os
import signal
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import worker

ISAS = {"native": "all that the processor has", "v3": "x86-64-v3, AVX2 and FMA"}
ARRAYS = frozenset({"matmul", "conv", "attention", "softmax", "layernorm", "gelu", "add", "copy"})
MOVING = frozenset({"softmax", "layernorm", "gelu", "add", "copy"})
FILES = frozenset({"network", "model"})


@dataclass(frozen=True)
class Peer:
    name: str
    title: str
    side: str        # module of sides/, and its argument after a colon
    runs: frozenset  # kinds of workloads that it runs
    environment: dict = field(default_factory=dict)  # {threads} and {build} are substituted
    v3: dict | None = None  # variables that limit it to x86-64-v3; None: it cannot be limited
    of_its_own: bool = True  # it computes the workload; False: it moves as many bytes

    def variables(self, threads, isa, build):
        """Returns {name: value, or None to unset the variable}."""
        fill = {"threads": threads, "build": build}
        made = {k: None for peer in PEERS for k in peer.v3 or {}}
        made.update(self.environment)
        if isa == "v3":
            made.update(self.v3 or {})
        return {k: v and v.format(**fill) for k, v in made.items()}


# The first is the reference of the others. Copies are not restricted in instruction sets, as memory
# limits them.
PEERS = (
    Peer("tenon", "Tenon", "tenon", ARRAYS | FILES, {"TENON_THREADS": "{threads}"},
         {"TENON_CPU": "x86-64-v3"}),
    Peer("onednn", "oneDNN", "native:onednn", frozenset({"matmul", "conv"}),
         {"OMP_NUM_THREADS": "{threads}"},
         {"DNNL_MAX_CPU_ISA": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2"}),
    Peer("openblas", "OpenBLAS", "native:openblas", frozenset({"matmul"}),
         {"OPENBLAS_NUM_THREADS": "{threads}"}, {"OPENBLAS_CORETYPE": "Haswell"}),
    Peer("onnxruntime", "ONNX Runtime", "onnxruntime", ARRAYS | FILES),
    Peer("pytorch", "PyTorch", "pytorch", ARRAYS | {"network"}, {"OMP_NUM_THREADS": "{threads}"},
         {"ATEN_CPU_CAPABILITY": "avx2", "DNNL_MAX_CPU_ISA": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2",
          "MKL_ENABLE_INSTRUCTIONS": "AVX2"}),
    Peer("tinygrad", "tinygrad", "tinygrad", ARRAYS - {"copy"},
         {"DEV": "CPU", "CC": "clang-14", "NUM_CPU_THREADS": "{threads}",
          "CACHEDB": "{build}/bench/tinygrad.db"},
         {"DEV": "CPU:CLANG:x86_64,x86-64-v3"}),
    Peer("memcpy", "memcpy", "native:memcpy", MOVING, v3={}, of_its_own=False),
    Peer("stream", "streaming copy", "native:stream", MOVING, v3={}, of_its_own=False),
)
TENON = PEERS[0]
BY_NAME = {peer.name: peer for peer in PEERS}
COPIES = ("memcpy", "stream")


class Failed(Exception):
    """A peer's failure, with the reason."""


def physical_cores():
    """Returns one processor of each core that this process may use."""
    cores = {}
    for cpu in sorted(os.sched_getaffinity(0)):
        path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        cores.setdefault(path.read_text() if path.exists() else cpu, cpu)
    return list(cores.values())


@contextmanager
def environment(variables):
    before = {name: os.environ.get(name) for name in variables}

    def put(values):
        for name, value in values.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    put(variables)
    try:
        yield
    finally:
        put(before)


class Worker:
    """Process of a peer, stopped except during a call."""

    def __init__(self, peer, threads, isa, build):
        side, _, argument = peer.side.partition(":")
        chosen = {"side": side, "argument": argument, "threads": threads, "build": str(build)}
        self.peer, self.dead = peer, ""
        self.pool = ProcessPoolExecutor(
            1, multiprocessing.get_context("spawn"), worker.start,
            (chosen, physical_cores()[:threads]))
        with environment(peer.variables(threads, isa, build)):
            self.process = self.pool.submit(os.getpid).result()
        self.signal(signal.SIGSTOP)

    def signal(self, number):
        try:
            os.kill(self.process, number)
        except ProcessLookupError:
            pass

    def call(self, name, *args, limit=300):
        """Calls a function of worker.py and returns its result. A process that dies, or takes
        longer than `limit` seconds, is not used again."""
        if self.dead:
            raise Failed(self.dead)
        self.signal(signal.SIGCONT)
        try:
            good, value = self.pool.submit(worker.answer, name, *args).result(limit)
        except BrokenProcessPool:
            self.dead = "its process died"
        except TimeoutError:
            self.dead = f"it took more than {limit} s"
            self.signal(signal.SIGKILL)
        except BaseException:  # the user's interrupt: the process's state is unknown
            self.dead = "it was interrupted"
            self.signal(signal.SIGKILL)
            raise
        else:
            self.signal(signal.SIGSTOP)
        if self.dead:
            raise Failed(self.dead)
        if not good:
            raise Failed(value)
        return value

    def close(self):
        """Ends the process; shuts down the pool of a dead one too."""
        if not self.dead:
            self.signal(signal.SIGCONT)
            self.dead = "its process was ended"
        self.pool.shutdown()
