"""ONNX files of networks, kept under names that contain a hash of what decides their contents: this
package's sources, the list of families and the versions of the libraries."""
import hashlib
import os
import tempfile
import warnings
from functools import cache
from pathlib import Path

BENCH = Path(__file__).resolve().parents[1]
FOLDER = BENCH.parent / "build" / "bench" / "networks"
OPSET = 17
KNOWN, OPEN, OUTPUT = "known", "open", "output{}"
TRACED = {"batch": 2}  # an open size is traced with another value than 1, which broadcasts


@cache
def sources_hash():
    digest = hashlib.sha256()
    for path in (*sorted((BENCH / "zoo").glob("*.py")), BENCH / "families.txt",
                 BENCH / "requirements" / "networks.txt", BENCH / "requirements" / "pytorch.txt"):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def path_of(network, sizes, how, folder=FOLDER):
    """Returns the file of a network whose sizes with names are known or stay open."""
    values = "_".join(f"{k}{v}" for k, v in sorted((network.sizes | sizes).items()))
    what = f"{network.model or network.name}-{values if how == KNOWN else OPEN}"
    return Path(folder) / f"{what}-{sources_hash()}.onnx"


def shapes(module, inputs):
    """Returns the shapes of a module's results."""
    import torch
    from zoo.first_output import tensors
    with torch.no_grad():
        return [tuple(t.shape) for t in tensors(module(*inputs))]


def output_axes(module, network, sizes):
    """Returns {output: {axis: name}} of the axes that change with a size. An axis that is equal to
    the size has its name, another one a name of its own."""
    before, axes = shapes(module, network.tensors(sizes)), {}
    for name, value in sizes.items():
        after = shapes(module, network.tensors(sizes | {name: value + 1}))
        for output, (a, b) in enumerate(zip(before, after, strict=True)):
            for axis in (i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y):
                same = (a[axis], b[axis]) == (value, value + 1)
                axes.setdefault(OUTPUT.format(output), {})[axis] = (
                    name if same else f"{OUTPUT.format(output)}_{axis}")
    return axes


def write(network, sizes, how, path):
    """Exports a network by PyTorch's tracing exporter, and removes the files that older sources
    made."""
    import torch
    sizes = network.sizes | (TRACED if how == OPEN else sizes)
    module, inputs = network.build(), network.tensors(sizes)
    axes = {p.name: p.open_axes() for p in network.ports} if how == OPEN else {}
    axes |= output_axes(module, network, sizes) if how == OPEN else {}
    outputs = [OUTPUT.format(i) for i in range(len(shapes(module, inputs)))]
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".") as folder, \
            warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        file = Path(folder) / "model.onnx"
        torch.onnx.export(module, inputs, str(file), input_names=[p.name for p in network.ports],
                          output_names=outputs, opset_version=OPSET, dynamic_axes=axes or None,
                          dynamo=False)
        for old in path.parent.glob(path.name.replace(sources_hash(), "?" * len(sources_hash()))):
            old.unlink()
        os.replace(file, path)


def export(network, sizes=None, how=KNOWN, folder=FOLDER):
    """Returns the file of a network, written if it is not there."""
    path = path_of(network, sizes or {}, how, folder)
    if not path.exists():
        write(network, sizes or {}, how, path)
    return path
