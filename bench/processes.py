"""Processes of peers. Each peer runs in one that is stopped outside of its turns, so that spinning
threads do not disturb others. Each runs on as many cores as it may have threads."""
import multiprocessing
import os
import signal
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager

import worker
from machine import physical_cores


class Failed(Exception):
    """A peer's failure, with the reason."""


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
