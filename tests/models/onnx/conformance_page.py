"""Writes docs/onnx-operators.md, the results of the onnx package's backend tests, and reads from it
which cases do not pass."""

import collections
import re
from pathlib import Path

import onnx
from onnx import TensorProto

from conformance import COLLECTIONS, FAILED, NOT_COMPARABLE, OUTCOMES, PASSED

PAGE = Path(__file__).resolve().parents[3] / "docs" / "onnx-operators.md"
REASON = re.compile(r"^- (`test_\w+`(?:, `test_\w+`)*) \(([\w ]+)\): ", re.MULTILINE)

TEXT = """\
# ONNX operators: results of the backend tests

The results of the backend tests of the package `onnx` {version}, as
`scripts/onnx-conformance.py` writes them: each case that the package generates or holds, models of
its own and those that ONNX expands from the functions of operators. `onnx.md` lists what operators
take, and why some are not there.

A case passes if the shape, the type and the values of each output are those expected: floats by the
tolerances of the case, all else exactly. It is *not comparable* where the expected values are random
draws; its shapes and types are compared. Of each case that passes, the expectations are corrupted in
shape, type and one value as well, which the comparison has to notice. *Skipped* is what could not be
run. Each case has a process of its own and a limit of time.

{sums}

{refused} of the cases that failed are refused with a message, before anything runs; {other} failed
otherwise.

## Operators

Versions and types are those of the cases' own models; versions of which no case passes, and types of
inputs with which none passes, are in parentheses. Domains other than ONNX's own stand before a name.

| operator | versions | types | all | passed | failed | not comparable | skipped |
|---|---|---|---|---|---|---|---|
{operators}

## Not passed

{reasons}
"""

# Messages of cases that ran and were wrong, or did not end.
OTHERWISE = re.compile(r"^output '|^ends the process|^takes more than")


def short_type(number):
    name = TensorProto.DataType.Name(number).lower()
    for long, short in (("float8", "f8"), ("float4", "f4"), ("bfloat", "bf"), ("uint", "u"),
                        ("int", "i"), ("complex", "c")):
        if name.startswith(long):
            return name.replace(long, short, 1)
    return {"float": "f32", "double": "f64"}.get(name, name.replace("float", "f", 1))


def kind_of(value):
    """Returns the type of a value that a model declares."""
    which = value.type.WhichOneof("value")
    if which != "tensor_type":
        return (which or "unknown").removesuffix("_type")
    return short_type(value.type.tensor_type.elem_type)


def version_of(case):
    """Returns the version of the operator's definition that the case's model uses."""
    opsets = {o.domain or "": o.version for o in case.source.model.opset_import}
    opset = opsets.get(case.domain if case.domain != "ai.onnx" else "")
    if opset is None:
        return None
    try:
        return onnx.defs.get_schema(case.operator, opset, case.domain).since_version
    except onnx.defs.SchemaError:
        return None


def marked(all_of, passed):
    return ", ".join(f"{x}" if x in passed else f"({x})" for x in sorted(all_of))


def counts(results):
    n = collections.Counter(r.outcome for r in results)
    return " | ".join(str(x) for x in [len(results), *[n[o] for o in OUTCOMES]])


def full_name(case):
    return f"{case.domain}.{case.operator}" if case.domain else case.operator


def operator_row(name, pairs):
    versions, types = set(), set()
    versions_passed, types_passed = set(), set()
    for case, result in pairs:
        is_fine = result.outcome in (PASSED, NOT_COMPARABLE)
        version = version_of(case)
        kinds = {kind_of(v) for v in case.source.model.graph.input}
        types |= kinds
        types_passed |= kinds if is_fine else set()
        if version is not None:
            versions.add(version)
            versions_passed |= {version} if is_fine else set()
    return (f"| {name} | {marked(versions, versions_passed)} | {marked(types, types_passed)} | "
            f"{counts([r for _, r in pairs])} |")


def group(pairs, key):
    groups = collections.defaultdict(list)
    for case, result in pairs:
        groups[key(case)].append((case, result))
    return groups


def brief(reason):
    """Returns a reason without names of nodes and advice."""
    reason = re.sub(r": nodes? '[^']*'(, '[^']*')*( and \d+ more)?", ";", reason).rstrip(";")
    reason = re.sub(r"^(\w+) node '[^']*'", r"\1", reason)
    return reason.partition("; make it an initializer")[0].replace("|", "\\|")


def reasons_of(name, pairs):
    """Lists the cases that did not pass, those of one reason together."""
    by_reason = collections.defaultdict(list)
    for case, result in pairs:
        if result.outcome != PASSED:
            by_reason[result.outcome, brief(result.reason)].append(case.name)
    if not by_reason:
        return ""
    lines = [f"- {', '.join(f'`{n}`' for n in names)} ({outcome}): {reason}"
             for (outcome, reason), names in by_reason.items()]
    return f"### {name}\n\n" + "\n".join(lines) + "\n"


def page(cases, results):
    pairs = list(zip(cases, results))
    by_collection = group(pairs, lambda c: c.collection)
    operators = group([p for p in pairs if p[0].collection == "node"], full_name)
    sums = ["| collection | all | passed | failed | not comparable | skipped |", "|---|---|---|---|---|---|"]
    sums += [f"| {c} | {counts([r for _, r in by_collection[c]])} |" for c in COLLECTIONS]
    sums += [f"| **all** | {counts(results)} |"]
    names = sorted(operators, key=lambda n: (n.rpartition(".")[0], n))
    failed = [r for r in results if r.outcome == FAILED]
    other = sum(bool(OTHERWISE.match(r.reason)) for r in failed)
    reasons = [reasons_of(n, operators[n]) for n in names]
    reasons += [reasons_of(c, by_collection[c]) for c in COLLECTIONS[1:]]
    return TEXT.format(version=onnx.__version__, sums="\n".join(sums), refused=len(failed) - other,
                       other=other, operators="\n".join(operator_row(n, operators[n]) for n in names),
                       reasons="\n".join(r for r in reasons if r).rstrip())


def read_outcomes():
    """Returns {name: outcome} of the cases that do not pass, by the page."""
    found = {}
    for names, outcome in REASON.findall(PAGE.read_text()):
        assert outcome in OUTCOMES, outcome
        found.update({n: outcome for n in re.findall(r"`(\w+)`", names)})
    return found
