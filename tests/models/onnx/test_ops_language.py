#!/usr/bin/env python3
"""Tests the ONNX operators whose cases are not in operators.py, as test_ops.py tests the others:
the second half of one long test.

    test_ops_language.py BUILD
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from test_ops import LANGUAGE, main  # noqa: E402

main(sys.argv[1], list(LANGUAGE))
