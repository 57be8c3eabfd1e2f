"""ONNX files of networks, kept in build/bench/networks under a name that contains a hash of this
package's sources and of the list of families."""
import hashlib
import os
import tempfile
import warnings
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "bench" / "networks"
OPSET = 17


def sources_hash():
    """Hashes the sources that decide what a file contains, and the versions of the libraries."""
    digest = hashlib.sha256()
    for path in sorted([*Path(__file__).parent.glob("*.py"), ROOT / "bench" / "families.txt",
                        *ROOT.glob("bench/requirements/*torch*.txt")]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def path_of(name, sizes, folder=FOLDER):
    """Returns the file of a network; `sizes` are the known sizes, None if they are open."""
    how = "open" if sizes is None else "_".join(f"{k}{v}" for k, v in sorted(sizes.items()))
    return Path(folder) / f"{name}-{how}-{sources_hash()}.onnx"


def write(network, sizes, path):
    """Exports a network; with sizes None, all that have names stay open."""
    inputs = network.inputs(sizes)
    names = [port.name for port in network.ports]
    axes = {p.name: p.open_axes() for p in network.ports} if sizes is None else None
    module = network.build()
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".") as folder, \
            warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        file = Path(folder) / "model.onnx"
        torch.onnx.export(module, inputs, str(file), input_names=names, output_names=["output"],
                          opset_version=OPSET, dynamic_axes=axes, dynamo=False)
        os.replace(file, path)


def export(network, sizes=None, folder=FOLDER):
    """Returns the file of a network, written if it is not there."""
    if sizes is not None:
        sizes = network.sizes | sizes
    path = path_of(network.name, sizes, folder)
    if not path.exists():
        write(network, sizes, path)
    return path
