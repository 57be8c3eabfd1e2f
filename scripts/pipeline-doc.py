#!/usr/bin/env python3
"""Writes docs/pipeline.md from its template and from what the passes do today.

    scripts/pipeline-doc.py BUILD           writes the page
    scripts/pipeline-doc.py --check BUILD   fails if the page is not current

BUILD is a build folder with TENON_TESTS, which has the program tests/docs/pipeline. In the template
{{example}} is the code between [example] and [end] in tests/docs/pipeline.c, {{passes}} the names
in src/ir/core/pass_names.h, {{laws}} and {{words}} tables of the rows of src/laws/laws.def, {{stage
NAME}} the graph after that pass ("laws": the schedule that was chosen); a graph that the pass left
as it was is not repeated.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import textwrap

from generated import settle

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "pipeline.md"
TEMPLATE = ROOT / "docs" / "pipeline.template.md"
PROGRAM = ROOT / "tests" / "docs" / "pipeline.c"
PASSES = ROOT / "src" / "ir" / "core" / "pass_names.h"
LAWS = ROOT / "src" / "laws" / "laws.def"


def example():
    text = PROGRAM.read_text()
    code = re.search(r"/\* \[example\] \*/\n(.*?)\n\s*/\* \[end\] \*/", text, re.DOTALL)
    return f"```c\n{textwrap.dedent(code.group(1))}\n```"


def passes():
    names = re.findall(r'^ *X\(PASS_\w+, "(\w+)"\)', PASSES.read_text(), re.MULTILINE)
    return textwrap.fill(", ".join(f"`{name}`" for name in names), 100)


def laws():
    """Returns a row for each law: its line, its effect, its file."""
    rows = ["| line | what it does | where |", "|---|---|---|"]
    for row in re.findall(r"^LAW\((.*?)\)$", LAWS.read_text(), re.MULTILINE | re.DOTALL):
        arguments, file, about = re.findall(r'"([^"]*)"', row)
        name = row.split(",")[0]
        rows.append(f"| `{name} {arguments}` | {about} | [`{file}`](../src/laws/{file}) |")
    return "\n".join(rows)


def words():
    """Returns a row for each word of the laws' arguments."""
    found = re.findall(r'^LAW_WORD\((\w+), \w+,\s+"([^"]*)"\)$', LAWS.read_text(), re.MULTILINE)
    return "\n".join(["| word | what stands for it |", "|---|---|",
                      *(f"| `{name}` | {about} |" for name, about in found)])


def stages(build):
    """Returns the text after each pass, in order."""
    output = subprocess.run([build / "tests" / "docs_pipeline"], check=True, text=True,
                            stdout=subprocess.PIPE, timeout=60).stdout
    parts = re.split(r"^=== (\w+)\n", output, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def shown(name, texts):
    names = list(texts)
    before = names[names.index(name) - 1] if names.index(name) else None
    if before and texts[before] == texts[name]:
        return "*Nothing changes here.*"
    language = "c" if name == "c" else "text"
    return f"```{language}\n{texts[name].strip()}\n```"


def page(build):
    texts = stages(build)
    text = TEMPLATE.read_text().replace("{{example}}", example()).replace("{{passes}}", passes())
    text = text.replace("{{laws}}", laws()).replace("{{words}}", words())
    return re.sub(r"\{\{stage (\w+)\}\}", lambda m: shown(m.group(1), texts), text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    return settle(PAGE, page(arguments.build.resolve()), "what the passes do",
                  "run scripts/pipeline-doc.py BUILD, and read whether docs/pipeline.template.md "
                  "still says what is so", arguments.check)


if __name__ == "__main__":
    sys.exit(main())
