#!/bin/sh
# docs/pipeline.md shows what the passes do today.
exec python3 scripts/pipeline-doc.py --check "$1"
