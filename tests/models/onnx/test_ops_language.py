#!/usr/bin/env python3
"""test_ops.py for the rows that are not among operators.py's: its other half.

    test_ops_language.py BUILD
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from test_ops import LANGUAGE, main  # noqa: E402

main(sys.argv[1], list(LANGUAGE))
