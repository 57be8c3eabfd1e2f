#!/usr/bin/env python3
"""Writes the models of this folder and what ONNX Runtime computes with them: NAME.onnx and NAME.npz
in models/, for each a network of networks.py by PyTorch's two exporters (NAME.old, NAME.new), or a
predictor of classical.py by skl2onnx (NAME.skl).

    export.py [--keep] [NAME]…        with the packages of requirements.txt; without names, all

Weights and inputs are seeded; other versions of the packages write other files. --keep leaves models
as they are and records anew what ONNX Runtime computes.
"""
import argparse
import contextlib
import io
import logging
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

FOLDER = Path(__file__).parent / "models"
SEED = 3
SIZE_MAX = 150_000  # bytes of a file


def runtime_session(path):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options)


def as_arrays(name, result):
    """A list of maps becomes a matrix of their values and the keys."""
    if not isinstance(result, list):
        return {name: np.asarray(result)}
    keys = list(result[0])
    assert all(list(m) == keys for m in result)
    return {name: np.array([list(m.values()) for m in result], np.float32),
            f"{name}.keys": np.array(keys)}


def record(path, sets, tolerance):
    """Writes the inputs of each set and the results; set i's arrays are i.in.NAME and i.out.NAME."""
    session = runtime_session(path)
    arrays = {"tolerance": np.array(tolerance)}
    wanted = {i.name for i in session.get_inputs()}
    for i, given in enumerate(sets):
        given = {k: v for k, v in given.items() if k in wanted}
        arrays.update({f"{i}.in.{k}": v for k, v in given.items()})
        results = session.run(None, {k: v.astype(object) if v.dtype.kind == "U" else v
                                     for k, v in given.items()})
        for port, result in zip(session.get_outputs(), results):
            for key, array in as_arrays(port.name, result).items():
                array = array.astype(str) if array.dtype == object else array
                arrays[f"{i}.out.{key}"] = array
    target = path.with_suffix(".npz")
    np.savez_compressed(target, **arrays)
    for file in (path, target):
        if file.stat().st_size > SIZE_MAX:
            raise RuntimeError(f"{file.name} has {file.stat().st_size} bytes")


def without_traces(model):
    """Leaves out what tells of the modules and files that nodes come from."""
    def clean(nodes):
        for node in nodes:
            node.doc_string = ""
            del node.metadata_props[:]
            for a in node.attribute:
                clean(a.g.node)
    clean(model.graph.node)
    for function in model.functions:
        clean(function.node)
    return model


@contextlib.contextmanager
def quiet():
    logging.disable(logging.WARNING)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield
    logging.disable(logging.NOTSET)


def to_numpy(given):
    return {k: v.numpy() for k, v in given.items()}


def export_network(network, exporter, path):
    import torch
    torch.manual_seed(SEED)
    module = network.make().eval()
    sets = [network.inputs(*sizes) for sizes in network.sizes]
    example = network.inputs(*network.sizes[-1])
    text = io.BytesIO()
    names = dict(input_names=list(example), output_names=network.outputs)
    if network.opset:
        names["opset_version"] = network.opset
    with torch.no_grad():
        if exporter == "old":
            given = torch.jit.script(module) if network.scripted else module
            torch.onnx.export(given, tuple(example.values()), text, dynamo=False,
                              dynamic_axes={**network.open, **network.open_outputs}, **names)
        else:
            sizes = {}
            shapes = tuple(
                {axis: sizes.setdefault(name, torch.export.Dim.AUTO)
                 for axis, name in network.open[k].items()} if k in network.open else None
                for k in example)
            torch.onnx.export(module, tuple(example.values()), text, dynamo=True,
                              external_data=False, dynamic_shapes=shapes, **names)
    model = without_traces(onnx.load_from_string(text.getvalue()))
    onnx.save(model, path)
    return [to_numpy(given) for given in sets], network.tolerance


def export_predictor(make, path):
    from skl2onnx import convert_sklearn
    model, types, sets, options = make()
    options = {id(model): options} if options else None
    onnx.save(convert_sklearn(model, initial_types=types, options=options,
                              target_opset={"": 22, "ai.onnx.ml": 3}), path)
    return sets, 1e-4


def jobs():
    from classical import MODELS
    for name, make in MODELS.items():
        yield f"{name}.skl", lambda path, m=make: export_predictor(m, path)
    from networks import NETWORKS
    for network in NETWORKS.values():
        for exporter in network.exporters:
            yield (f"{network.name}.{exporter}",
                   lambda path, n=network, e=exporter: export_network(n, e, path))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("name", nargs="*")
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    failed = []
    for name, export in jobs():
        if args.name and name not in args.name and name.rsplit(".", 1)[0] not in args.name:
            continue
        path = FOLDER / f"{name}.onnx"
        try:
            with quiet():
                if args.keep:
                    kept = np.load(path.with_suffix(".npz"))
                    sets = [{k.split(".", 2)[2]: kept[k] for k in kept if k.startswith(f"{i}.in.")}
                            for i in range(3)]
                    record(path, sets, float(kept["tolerance"]))
                else:
                    record(path, *export(path))
            print(name, path.stat().st_size, path.with_suffix(".npz").stat().st_size, flush=True)
        except Exception as e:  # any exception of a library says why it does not export
            failed.append(name)
            if not args.keep:
                for file in (path, path.with_suffix(".npz")):
                    file.unlink(missing_ok=True)
            print(f"{name}: {type(e).__name__}: {' '.join(str(e).split())[-600:]}", flush=True)
    return int(bool(failed))


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    sys.exit(main())
