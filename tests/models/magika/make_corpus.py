#!/usr/bin/env python3
"""Writes the corpus of files that file type classifiers are compared on: make_corpus.py DIR

The same files come out each time on the same Python, which is all that is needed. Each kind has a
folder; its name is what was meant, and what a classifier says may differ.
"""

import pathlib
import random
import sys

sys.dont_write_bytecode = True  # keeps the source tree clean

import binaries  # noqa: E402
import texts  # noqa: E402

EACH_BINARY = 3
THIN_KINDS = ("ignorefile", "latex", "markdown", "ocaml", "pascal", "r", "rst", "sql", "tsv", "zig")
THIN_AMOUNTS = (100, 400, 700, 1000)
BLOCK = 4096  # bytes that classifiers read at each end of a file


def text_files():
    for order, (kind, (ending, pieces)) in enumerate(texts.load().items()):
        for variant, make in texts.VARIANTS.items():
            rng = random.Random(f"{kind} {variant}")
            name = f"{variant}{ending}" if ending.startswith(".") else f"{variant}-{ending}"
            yield f"{kind}/{name}", make(rng, pieces, order)


def binary_files():
    for kind, make in binaries.KINDS.items():
        for i in range(EACH_BINARY):
            yield f"{kind}/{i}.{kind}", make(random.Random(f"{kind} {i}"))


def thin_files():
    """Makes prose with few traces of a kind, near the thresholds that some kinds have."""
    kinds = texts.load()
    prose = kinds["txt"][1]
    for kind in THIN_KINDS:
        for amount in THIN_AMOUNTS:
            rng = random.Random(f"thin {kind} {amount}")
            _, *middle, _ = kinds[kind][1]
            pieces = [rng.choice(middle), *prose[1:-1], rng.choice(middle)]
            yield f"thin/{kind}-{amount}", texts.compose(rng, pieces, amount).encode()


def edge_files():
    """Makes files of sizes and contents at which the rules around the model change."""
    spaces = b" \t\r\n\v\f"
    code = b"int main(void) { return 0; }\n"
    edges = {
        "empty": b"",
        "one-byte": b"a",
        "seven-bytes": b"abcdefg",
        "eight-bytes": b"abcdefgh",
        "seven-after-space": b"  \n\tabcdefg",
        "eight-after-space": b"  \n\tabcdefgh",
        "seven-before-space": b"abcdefg" + spaces,
        "seven-latin": "größe".encode("latin-1"),
        "short-utf8": "größe".encode(),
        "surrogate": b"\xed\xa0\x80",
        "overlong": b"\xc0\xaf",
        "beyond-unicode": b"\xf4\x90\x80\x80",
        "highest-unicode": b"\xf4\x8f\xbf\xbf",
        "nul": b"\0",
        "seven-nul": bytes(7),
        "eight-nul": bytes(8),
        "many-nul": bytes(9000),
        "spaces": spaces * 3,
        "many-spaces": spaces * 2000,
        "a-block-of-spaces": b" " * BLOCK,
        "code-after-a-block-of-spaces": b" " * BLOCK + code * 50,
        "code-near-the-block's-end": b" " * (BLOCK - 9) + code * 50,
        "seven-at-the-block's-end": b" " * (BLOCK - 7) + code * 50,
        "character-cut-by-the-block": b" " * (BLOCK - 1) + "é".encode() + b"\n" * 20,
        "character-before-the-block's-end": b" " * (BLOCK - 2) + "é".encode() + b"\n" * 20,
        "code-before-a-block-of-spaces": code * 50 + b"\n" * (BLOCK + 1),
        "separators-are-no-space": b"\x1c\x1d\x1e\x1f\x85\xa0" + code * 3,
    }
    for size in (1023, 1024, 1025, 2047, 2048, 2049, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK):
        edges[f"code-{size}"] = (code * (size // len(code) + 1))[:size]
    for name, data in edges.items():
        yield f"edges/{name}", data


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: make_corpus.py DIR")
    folder = pathlib.Path(sys.argv[1])
    count = 0
    for make in (text_files, binary_files, thin_files, edge_files):
        for name, data in make():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            count += 1
    print(f"{count} files in {folder}")


if __name__ == "__main__":
    main()
