#!/bin/sh
# Checks that docs/pipeline.md shows the current output of the passes.
exec python3 scripts/pipeline-doc.py --check "$1"
