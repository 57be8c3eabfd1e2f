"""Driver of tinygrad: an ONNX file in its own importer, captured once and replayed."""
from importlib.metadata import version as version_of

from tinygrad import Device, Tensor, TinyJit
from tinygrad.nn.onnx import OnnxRunner

from worker import Work


class Side:
    def __init__(self, settings):
        self.device = Device[Device.DEFAULT]

    def version(self):
        return version_of("tinygrad")

    def prepare(self, task, inputs):
        runner = OnnxRunner(task["model"])
        operands = {name: Tensor(x).realize() for name, x in inputs.items()}
        captured = TinyJit(lambda **x: next(iter(runner(x).values())).realize())
        last = []

        def run():
            last[:] = [captured(**operands)]
            self.device.synchronize()

        for _ in range(2):  # the second call captures
            run()
        return Work(run, lambda: last[0].numpy())
