#!/usr/bin/env python3
"""Checks that no comment, docstring, heading or item of a list begins with a pronoun, "What" or
"That": a reader who finds it by itself has to know its subject.

    scripts/check-words.py [ROOT]
"""

import pathlib
import re
import sys

WORDS = r"(What|That|It|Its|This|These|They|Their|Those|Them|Which|We|You)\b"
C = [r"/\*\*?<?\s*" + WORDS, r"//\s*" + WORDS]
SCRIPT = [r'"""' + WORDS, r"(?<!#\n)(?:\A|\n[^#\n]*\n|\n\n)[ \t]*#[ \t]+" + WORDS]
PAGE = [r"^[ \t]*(?:[-*]|\d+\.|#+|\|)[ \t]+" + WORDS, r"(?:\A|\n[ \t]*\n)" + WORDS]
FOLDERS = ("src", "include", "tests", "tools", "scripts", "bench", "examples", "cmake", "docs")
PATTERNS = {".c": C, ".h": C, ".cpp": C, ".def": C, ".rules": C, ".py": SCRIPT, ".sh": SCRIPT,
            ".cmake": SCRIPT, ".txt": SCRIPT, ".md": PAGE}


def findings(path):
    text = path.read_text(errors="replace")
    for pattern in PATTERNS[path.suffix]:
        for found in re.finditer(pattern, text, re.MULTILINE):
            at = found.start(1)
            yield text.count("\n", 0, at) + 1, text[at:at + 60].split("\n")[0]


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    files = sorted(root.glob("*.md"))
    for folder in FOLDERS:
        files += sorted(f for f in (root / folder).rglob("*") if f.suffix in PATTERNS)
    wrong = [f"{f.relative_to(root)}:{line}: begins without a subject: {text}"
             for f in files for line, text in findings(f)]
    print(*wrong, f"check-words: {len(files)} files, {len(wrong)} wrong", sep="\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
