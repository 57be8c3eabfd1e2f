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
KNOWN, OPEN = "known", "open"
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


def write(network, sizes, how, path):
    """Exports a network by PyTorch's tracing exporter, and removes the files that older sources
    made."""
    import torch
    axes = {p.name: p.open_axes() for p in network.ports} if how == OPEN else None
    sizes = TRACED if how == OPEN else sizes
    module, inputs = network.build(), network.tensors(sizes)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".") as folder, \
            warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        file = Path(folder) / "model.onnx"
        torch.onnx.export(module, inputs, str(file), input_names=[p.name for p in network.ports],
                          opset_version=OPSET, dynamic_axes=axes, dynamo=False)
        for old in path.parent.glob(path.name.replace(sources_hash(), "?" * len(sources_hash()))):
            old.unlink()
        os.replace(file, path)


def export(network, sizes=None, how=KNOWN, folder=FOLDER):
    """Returns the file of a network, written if it is not there."""
    path = path_of(network, sizes or {}, how, folder)
    if not path.exists():
        write(network, sizes or {}, how, path)
    return path
