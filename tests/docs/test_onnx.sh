#!/bin/sh
# docs/onnx.md lists the operators of ops.def.
exec python3 scripts/onnx-doc.py --check
