"""Checks of an exported network: its operators, and its results in ONNX Runtime."""
import re
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch

from zoo.first_output import tensors

OPERATORS = Path(__file__).resolve().parents[2] / "docs" / "onnx.md"
DEPENDS = 0.05  # least mean change of the results with other inputs, in standard deviations
APART = 3e-4    # largest difference between ONNX Runtime and PyTorch, in standard deviations


def supported():
    """Returns the operators in the table of docs/onnx.md."""
    return set(re.findall(r"^\| ([A-Z]\w*) \|", OPERATORS.read_text(), re.M))


def graphs(graph):
    """Yields a graph and those in its nodes."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from graphs(attribute.g)


def operators(path):
    """Returns the types of a file's operators, with the domain of others than the default one."""
    model = onnx.load(path, load_external_data=False)
    return {f"{n.domain}.{n.op_type}" if n.domain not in ("", "ai.onnx") else n.op_type
            for graph in graphs(model.graph) for n in graph.node}


def run(session, network, sizes, seed):
    return session.run(None, network.inputs(sizes, seed))


def results_faults(session, network, module, sizes):
    """Compares with results of other inputs, and with PyTorch's."""
    declared = [port.shape for port in session.get_outputs()]
    one, other = (run(session, network, sizes, seed) for seed in (1, 2))
    with torch.no_grad():
        expected = tensors(module(*network.tensors(sizes, 1)))
    for i, (a, b, e) in enumerate(zip(one, other, expected, strict=True)):
        deviation = float(a.std())
        if not np.isfinite(a).all():
            yield f"output {i} is not finite"
        elif deviation == 0:
            yield f"output {i} is constant"
        elif float(np.abs(a - b).mean()) < DEPENDS * deviation:
            yield f"output {i} hardly depends on the inputs"
        elif any(isinstance(d, int) and d != n for d, n in zip(declared[i], a.shape, strict=True)):
            yield f"output {i} is declared as {declared[i]} and has the shape {a.shape}"
        elif a.shape != e.shape:
            yield f"output {i} has the shape {a.shape}, PyTorch's {tuple(e.shape)}"
        elif (apart := float(np.abs(a - e.numpy()).max()) / deviation) > APART:
            yield f"output {i} is {apart:.2g} deviations from PyTorch's"


def faults(path, network, several, threads=1):
    """Returns a list of what is wrong with a file; empty if it is good. `several` lists the sizes
    to run it with."""
    unknown = operators(path) - supported()
    if unknown:
        return [f"docs/onnx.md lists no {', '.join(sorted(unknown))}"]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    module = network.build()
    return [fault for sizes in several
            for fault in results_faults(session, network, module, sizes)]
