#!/usr/bin/env python3
"""Compares examples/filetype with the Python package magika and ONNX Runtime.

    compare.py --filetype BIN --model DIR CORPUS

DIR is what scripts/get-magika.sh fills, CORPUS what make_corpus.py fills. Needs magika 1.0.3, whose
feature extraction and rules are the reference; the network's scores are ONNX Runtime's. Exits with
1 on any difference beyond what is allowed, and if the corpus is too small to prove anything.

The network takes a variance as E[x^2] - E[x]^2 over 512 columns. Where a file is nearly all padding
they are nearly equal and the result is rounding noise: ONNX Runtime then differs from itself, run
on one file or on many, by up to 0.02. Such files are counted, must be few, and are held to a
multiple of that difference.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys

import magika
import onnxruntime

PACKAGE = "1.0.3"
SCORE_TOLERANCE = 1e-4
UNSTABLE_FACTOR = 4
UNSTABLE_SHARE = 0.1
TIE = 2e-4  # labels may differ if the two best scores are this close
LEAST_FILES = 300
LEAST_KINDS = 40
BATCHES = (1, 16)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--filetype", required=True, help="the program to test")
    parser.add_argument("--model", required=True, type=pathlib.Path, help="folder of the model")
    parser.add_argument("corpus", type=pathlib.Path, help="folder of files")
    return parser.parse_args()


class Expected:
    """The package's result for a file."""

    def __init__(self, result):
        self.result = result
        self.inputs = self.scores = None  # None unless the model decides
        self.tolerance = SCORE_TOLERANCE

    def is_unstable(self):
        return self.tolerance > SCORE_TOLERANCE


def load_package(model):
    package = magika.Magika(model_dir=model)
    if package.get_module_version() != PACKAGE:
        sys.exit(f"magika {PACKAGE} is needed, not {package.get_module_version()}")
    return package


def add_scores(model, expected):
    """Runs the reference on all files at once, as the package does, and on each alone."""
    session = onnxruntime.InferenceSession(model / "model.onnx", providers=["CPUExecutionProvider"])

    def run_session(rows):
        return session.run(["target_label"], {"bytes": rows})[0].tolist()

    together = run_session([one.inputs for one in expected])
    for one, one.scores in zip(expected, together):
        spread = difference(run_session([one.inputs])[0], one.scores)
        if spread > SCORE_TOLERANCE:
            one.tolerance = UNSTABLE_FACTOR * spread


def reference(model, paths):
    """Returns {path: Expected}."""
    package = load_package(model)
    expected = {}
    for path, result in zip(paths, package.identify_paths(paths)):
        one = expected[str(path)] = Expected(result)
        features = package._get_result_or_features_from_path(path)[1]
        one.inputs = features and features.beg + features.end
    add_scores(model, [one for one in expected.values() if one.inputs])
    return expected


def run(arguments, *options):
    """Returns {path: object} of filetype's lines."""
    command = [arguments.filetype, "--model", str(arguments.model), *options, str(arguments.corpus)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}")
    objects = [json.loads(line) for line in done.stdout.splitlines()]
    return {one["path"]: one for one in objects}


def check_paths(expected, found):
    """Yields a message for each path that only one side reports."""
    for path in sorted(expected.keys() ^ found.keys()):
        yield f"{path}: " + ("not told" if path in expected else "not asked for")


def check_features(expected, found):
    for path, one in expected.items():
        if path in found and found[path].get("features") != one.inputs:
            yield f"{path}: the model's input differs"


def difference(ours, theirs):
    """Returns the largest distance; infinity for missing or non-numeric values."""
    if ours is None or len(ours) != len(theirs):
        return math.inf
    apart = [abs(a - b) for a, b in zip(ours, theirs)]
    return math.inf if any(map(math.isnan, apart)) else max(apart)


def is_tie(scores):
    best, second = sorted(scores or [1, 0])[:-3:-1]
    return best - second <= TIE


def told(result):
    """Returns the line that filetype must print for a package's result, without the score."""
    prediction = result.prediction
    return {
        "label": str(prediction.output.label),
        "description": prediction.output.description,
        "mime_type": prediction.output.mime_type,
        "group": prediction.output.group,
        "is_text": prediction.output.is_text,
        "model_label": str(prediction.dl.label),
        "overwrite_reason": str(prediction.overwrite_reason),
    }


def check_verdict(path, one, got):
    if abs(got["score"] - one.result.score) > one.tolerance:
        yield f"{path}: score {got['score']:.6f}, not {one.result.score:.6f}"
    want = told(one.result)
    said = {key: got.get(key) for key in want}
    if said != want and not is_tie(one.scores):
        yield f"{path}: {said}, not {want}"
    if one.scores is None and "scores" in got:
        yield f"{path}: the model was asked without need"


def check_scores(path, one, got, largest):
    """Records the file's difference in `largest`, by stability."""
    apart = difference(got.get("scores"), one.scores)
    largest[one.is_unstable()] = max(largest[one.is_unstable()], apart)
    if apart > one.tolerance:
        yield f"{path}: the scores differ by {apart:.2e}, allowed is {one.tolerance:.2e}"


def check_batches(arguments, expected, batch):
    found = run(arguments, "--json", "--scores", "--batch", str(batch))
    wrong = list(check_paths(expected, found))
    largest = {False: 0.0, True: 0.0}
    same = 0
    for path in expected.keys() & found.keys():
        one, got = expected[path], found[path]
        same += got["label"] == told(one.result)["label"]
        wrong += check_verdict(path, one, got)
        if one.scores is not None:
            wrong += check_scores(path, one, got, largest)
    print(
        f"batches of {batch}: {same} labels equal, scores differ by {largest[False]:.2e} at most"
        f" ({largest[True]:.2e} where unstable)"
    )
    return wrong


def check_corpus(expected):
    kinds = {told(one.result)["label"] for one in expected.values()}
    scored = sum(one.scores is not None for one in expected.values())
    unstable = sum(one.is_unstable() for one in expected.values())
    print(
        f"{len(expected)} files of {len(kinds)} kinds, {scored} of them through the model,"
        f" {unstable} of these unstable"
    )
    if len(expected) < LEAST_FILES:
        yield f"the corpus has {len(expected)} files, fewer than {LEAST_FILES}"
    if len(kinds) < LEAST_KINDS:
        yield f"the corpus has {len(kinds)} kinds, fewer than {LEAST_KINDS}"
    if unstable > UNSTABLE_SHARE * scored:
        yield f"{unstable} files are unstable, more than {UNSTABLE_SHARE:.0%}"


def main():
    arguments = parse_arguments()
    paths = sorted(path for path in arguments.corpus.rglob("*") if path.is_file())
    expected = reference(arguments.model, paths)
    wrong = list(check_corpus(expected))

    found = run(arguments, "--features")
    features = list(check_features(expected, found))
    wrong += list(check_paths(expected, found)) + features
    print(f"inputs: {len(features)} differ")
    for batch in BATCHES:
        wrong += check_batches(arguments, expected, batch)

    for message in wrong:
        print(message, file=sys.stderr)
    print("FAILED" if wrong else "passed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
