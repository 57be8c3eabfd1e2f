#!/usr/bin/env python3
"""Checks the includes of src/ and tools/ against the order of the layers.

    scripts/check-layers.py [ROOT]

An include in quotes is written from src/ and goes to the same layer or to an earlier one, unless a
layer between them stands for that one; the public <tenon/...> may be included everywhere. A .c file
includes its own header first.
"""

import pathlib
import re
import sys

# Earlier to later.
ORDER = "base ir rules laws schedule codegen render device runtime tensor formats cli".split()
RANK = {folder: rank for rank, folder in enumerate(ORDER)}

# Earlier layers of which a layer knows nothing: it asks those between.
HIDDEN = {"formats": {"laws", "schedule", "codegen", "render", "runtime"}}

# Host tools share the tables of the layers that they make sources for.
TOOL_RANK = {"rulec": RANK["ir"]}

SOURCES = {".c", ".h", ".def", ".inc"}
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>|(\S+))')
GENERATED = re.compile(r"\.pb\.h$")


def includes(path):
    """Yields (line number, name, quoted) of each include; a macro's name counts as quoted."""
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group().count("\n"), text, flags=re.DOTALL)
    for number, line in enumerate(text.split("\n"), 1):
        if match := INCLUDE.match(line):
            quoted, angled, macro = match.groups()
            yield number, quoted or angled or macro, not angled


def check_quoted(name, src, rank, folder, path):
    """What is wrong with one include in quotes, or None."""
    if not path.is_relative_to(src) and (path.parent / name).is_file():
        return None
    parts = pathlib.PurePosixPath(name).parts
    if parts[0] == "tenon":
        return f'"{name}" is public: include it as <{name}>'
    if ".." in parts or parts[0] not in RANK:
        return f'"{name}" does not start with a layer: write it from src/'
    if not GENERATED.search(name) and not (src / name).is_file():
        return f'"{name}" does not exist in src/'
    if RANK[parts[0]] > rank:
        return f"{folder} may not include {parts[0]}, a later layer"
    if parts[0] in HIDDEN.get(folder, ()):
        return f"{folder} may not include {parts[0]}, which layers between stand for"
    return None


def check_file(path, src, rank, folder):
    """Yields (line, complaint)."""
    found = list(includes(path))
    for number, name, quoted in found:
        if quoted:
            complaint = check_quoted(name, src, rank, folder, path)
        elif not name.startswith("tenon/") and name.split("/")[0] in RANK and "/" in name:
            complaint = f'<{name}> is internal: include it as "{name}"'
        else:
            complaint = None
        if complaint:
            yield number, complaint

    header = path.with_suffix(".h")
    if path.suffix == ".c" and header.is_file():
        own = header.relative_to(src).as_posix() if header.is_relative_to(src) else header.name
        if not found or found[0][1] != own:
            yield found[0][0] if found else 1, f'its own header, "{own}", must come first'


def folders(root):
    """Yields (folder, rank, name) of each folder to check; rank None for one that is no layer."""
    for folder in sorted((root / "src").iterdir()):
        if folder.is_dir():
            yield folder, RANK.get(folder.name), folder.name
    for folder in sorted((root / "tools").iterdir()):
        if folder.is_dir():
            yield folder, TOOL_RANK.get(folder.name), folder.name


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
    root = root if root.is_dir() else root.parent.parent
    checked = wrong = 0
    for folder, rank, name in folders(root):
        files = sorted(p for p in folder.rglob("*") if p.suffix in SOURCES)
        if rank is None:
            print(f"{folder.relative_to(root)}: no layer of this name")
            wrong += 1
            continue
        for path in files:
            checked += 1
            for number, complaint in check_file(path, root / "src", rank, name):
                print(f"{path.relative_to(root)}:{number}: {complaint}")
                wrong += 1
    for path in sorted((root / "src").glob("*.[ch]")):
        print(f"{path.relative_to(root)}: a file outside of every layer")
        wrong += 1
    print(f"check-layers: {checked} files, {wrong} wrong", file=sys.stderr)
    return 1 if wrong or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
