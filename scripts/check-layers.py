#!/usr/bin/env python3
"""Checks the includes of src/ and tools/ against the order of the layers, and for cycles.

    scripts/check-layers.py [ROOT]

An include in quotes is written from src/ and goes to the same layer or to an earlier one, unless a
layer between them stands for that one; the public <tenon/...> may be included everywhere. A .c file
includes its own header first. No two folders include each other, straight or through others, and no
cycle of modules (a .c with its .h) has more than MOST_IN_CYCLE.
"""

import pathlib
import re
import sys

# Earlier to later.
ORDER = ("base ir rules laws target schedule codegen render device compile runtime tensor formats "
         "tune cli").split()
RANK = {folder: rank for rank, folder in enumerate(ORDER)}

# Earlier layers that a layer must not use directly, but through those between.
HIDDEN = {"formats": {"laws", "target", "schedule", "codegen", "render", "compile", "runtime"},
          "cli": set(ORDER) - {"base", "cli"}}  # a client of the public headers

# Host tools share the tables of the layers that they generate sources for.
TOOL_RANK = {"rulec": RANK["ir"]}

MOST_IN_CYCLE = 3

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
    """Returns the error in a quoted include, or None."""
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


def module_graph(src):
    """Returns the modules, paths without suffix, that each module includes."""
    graph = {}
    for path in sorted(p for p in src.rglob("*") if p.suffix in SOURCES):
        module = path.relative_to(src).with_suffix("").as_posix()
        included = {pathlib.PurePosixPath(name).with_suffix("").as_posix()
                    for _, name, quoted in includes(path) if quoted and (src / name).is_file()}
        graph.setdefault(module, set()).update(included - {module})
    return graph


def cycles(graph):
    """Returns the strongly connected components of more than one vertex (Tarjan, 1972)."""
    order, low, stack, found = {}, {}, [], []

    def visit(vertex):
        order[vertex] = low[vertex] = len(order)
        stack.append(vertex)
        for other in sorted(graph.get(vertex, ())):
            if other not in order:
                visit(other)
                low[vertex] = min(low[vertex], low[other])
            elif other in stack:
                low[vertex] = min(low[vertex], order[other])
        if low[vertex] == order[vertex]:
            component = stack[stack.index(vertex):]
            del stack[-len(component):]
            if len(component) > 1:
                found.append(sorted(component))

    for vertex in sorted(graph):
        if vertex not in order:
            visit(vertex)
    return found


def check_cycles(src):
    """Yields complaints about cycles of modules and of folders."""
    modules, folders = module_graph(src), {}
    for module, included in modules.items():
        folder = module.rpartition("/")[0]
        others = {name.rpartition("/")[0] for name in included} - {folder}
        folders.setdefault(folder, set()).update(others)
    for cycle in cycles(modules):
        if len(cycle) > MOST_IN_CYCLE:
            yield f"{len(cycle)} modules include each other: {', '.join(cycle)}"
    for cycle in cycles(folders):
        yield f"folders include each other: {', '.join(cycle)}"


def main():
    sys.setrecursionlimit(10000)
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
    for complaint in check_cycles(root / "src"):
        print(complaint)
        wrong += 1
    print(f"check-layers: {checked} files, {wrong} wrong", file=sys.stderr)
    return 1 if wrong or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
