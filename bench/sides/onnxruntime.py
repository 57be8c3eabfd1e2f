"""Driver of ONNX Runtime, with inputs and outputs bound to memory once."""
import onnxruntime

from worker import Work


class Side:
    def __init__(self, settings):
        self.threads = settings["threads"]

    def version(self):
        return onnxruntime.__version__

    def prepare(self, task, inputs):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self.threads, 1
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(task["model"], options,
                                               providers=["CPUExecutionProvider"])
        bound = session.io_binding()
        for name, x in inputs.items():
            bound.bind_cpu_input(name, x)
        for output in session.get_outputs():
            bound.bind_output(output.name)

        def run(held=inputs):
            session.run_with_iobinding(bound)

        return Work(run, lambda: bound.copy_outputs_to_cpu())
