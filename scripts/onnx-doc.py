#!/usr/bin/env python3
"""Writes docs/onnx.md, the list of ONNX operators, from src/formats/onnx.

    scripts/onnx-doc.py            writes the page
    scripts/onnx-doc.py --check    fails if the page is not current
"""

import pathlib
import re
import sys

from generated import settle

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "onnx.md"
SOURCE = ROOT / "src" / "formats" / "onnx"
ROW = re.compile(r'^ONNX_OP\((\w+), "([^"]*)", "([^"]*)", (\d+), (\d+), (\d+)\)$', re.MULTILINE)
MANY = 65535

TEXT = """\
# ONNX operators

What of ONNX can be imported; `scripts/onnx-doc.py` writes this page from
[`ops.def`](../src/formats/onnx/ops.def), and a test fails when it is no longer so. `tenon inspect`
tells of a model file what of it is not supported.

Files have IR version {ir_min} to {ir_max} and an opset of up to {opset}. These {count} operators of the default
domain are there. A version is the opset with which a definition of the operator began; an operator
is imported by the newest one that is not above the file's opset.

| operator | versions | inputs | attributes |
|---|---|---|---|
{rows}
"""


def number(name):
    """The value of an enum's constant."""
    text = "".join((SOURCE / file).read_text() for file in ("import.h", "proto.h"))
    return re.search(rf"\b{name} = (\d+)", text).group(1)


def inputs(least, most):
    if most == MANY:
        return f"{least} or more"
    return f"{least}" if least == most else f"{least} to {most}"


def row(name, versions, attributes, least, most):
    shown = ", ".join(f"`{a}`" for a in attributes.split())
    return f"| {name} | {versions.replace(' ', ', ')} | {inputs(least, most)} | {shown} |"


def page():
    text = (SOURCE / "ops.def").read_text()
    found = ROW.findall(text)
    if len(found) != len(re.findall(r"^ONNX_OP\(", text, re.MULTILINE)):
        sys.exit("onnx-doc: a row of ops.def is not understood")
    rows = [row(name, versions, attributes, int(least), int(most))
            for name, versions, attributes, least, most, _ in sorted(found)]
    return TEXT.format(ir_min=number("ONNX_IR_MIN"), ir_max=number("ONNX_IR_MAX"),
                       opset=number("ONNX_OPSET_MAX"), count=len(rows), rows="\n".join(rows))


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit("usage: onnx-doc.py [--check]")
    return settle(PAGE, page(), "what ops.def says", "run scripts/onnx-doc.py", bool(sys.argv[1:]))


if __name__ == "__main__":
    sys.exit(main())
