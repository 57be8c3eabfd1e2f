"""Writes or compares the pages of docs/ that scripts generate: shared by onnx-doc.py and
pipeline-doc.py."""

import difflib
import sys


def settle(page, text, says, otherwise, check):
    """Writes a page, or with `check` compares it and prints the difference, its source `says`, and
    the remedy `otherwise`. Returns an exit status."""
    if not check:
        page.write_text(text)
        return 0
    old = page.read_text() if page.exists() else ""
    if old == text:
        return 0
    name = f"docs/{page.name}"
    sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), text.splitlines(True), name,
                                               says))
    print(f"\n{name} is out of date: {otherwise}")
    return 1
