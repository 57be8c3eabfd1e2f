#!/bin/sh
# Checks that docs/onnx.md lists the operators of onnx_operators.def.
exec python3 scripts/onnx-doc.py --check
