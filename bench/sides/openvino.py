"""Driver of OpenVINO: latency first, computing in f32, with inputs and outputs bound to memory
once."""
import openvino

from worker import Work


class Side:
    def __init__(self, settings):
        self.core, self.threads = openvino.Core(), settings["threads"]

    def version(self):
        return openvino.__version__.partition("-")[0]

    def prepare(self, task, inputs):
        compiled = self.core.compile_model(task["model"], "CPU", {
            "PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": self.threads,
            "INFERENCE_PRECISION_HINT": "f32"})
        request = compiled.create_infer_request()
        for name, x in inputs.items():
            request.set_tensor(name, openvino.Tensor(x, shared_memory=True))

        def run(held=inputs):
            request.infer(share_outputs=True)

        return Work(run, lambda: [request.get_output_tensor(i).data.copy()
                                  for i in range(len(compiled.outputs))])
