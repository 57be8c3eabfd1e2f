#!/usr/bin/env python3
"""Writes a folder of small files of many kinds, with misleading names or none, for scripts/demo.sh.

    scripts/demo-files.py DEST
"""

import bz2
import gzip
import io
import lzma
import math
import pathlib
import shutil
import sqlite3
import struct
import sys
import tarfile
import wave
import zipfile
import zlib

TEXTS = {
    "a-program": "#include <stdio.h>\n\nint main(int argc, char **argv) {\n"
    '  for (int i = 1; i < argc; i++) printf("%s\\n", argv[i]);\n  return 0;\n}\n',
    "a-page": '<!DOCTYPE html>\n<html lang="en">\n<head>\n  <meta charset="utf-8">\n'
    "  <title>Joints</title>\n  <style>body { font-family: serif; margin: 2em; }</style>\n"
    '</head>\n<body>\n  <h1 id="top">Mortise and tenon</h1>\n'
    '  <p>A joint of <em>two</em> pieces, <a href="glue.html">glued</a> or not.</p>\n'
    '  <ul class="parts">\n    <li>the mortise, a hole</li>\n    <li>the tenon, a tongue</li>\n'
    '  </ul>\n  <img src="joint.png" alt="the joint">\n</body>\n</html>\n',
    "a-table": "length,width,price\n" + "".join(f"{n},{n * 2 + 1},{n / 4}\n" for n in range(40)),
    "settings": '{\n  "name": "tenon",\n  "layers": ["base", "ir", "rules"],\n  "depth": 12\n}\n',
    "a-query": "SELECT joint.name, COUNT(*) AS uses\nFROM joint\n"
    "JOIN piece ON piece.joint = joint.id\nWHERE piece.width > 20\n"
    "GROUP BY joint.name\nORDER BY uses DESC;\n",
    "a-class": "package joints;\n\npublic class Tenon {\n  private final int width;\n\n"
    "  public Tenon(int width) {\n    this.width = width;\n  }\n\n"
    "  public int width() {\n    return width;\n  }\n}\n",
    "a-crate": "use std::fmt;\n\n#[derive(Debug)]\nstruct Tenon {\n    width: u32,\n}\n\n"
    "impl fmt::Display for Tenon {\n    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {\n"
    '        write!(f, "{}", self.width)\n    }\n}\n',
    "a-drawing": '<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg" width="90" '
    'height="90">\n  <rect x="10" y="10" width="70" height="30" fill="peru"/>\n</svg>\n',
    "a-note": "# Joints\n\nA *tenon* fits a *mortise*:\n\n- cut the mortise first,\n"
    "- then the tenon, a little wide;\n- plane until it fits.\n\n## Glue\n\nSee `glue.md`.\n",
    "a-letter": "Dear reader,\n\nthe table has come and stands in the hall. One leg was loose; "
    "we took the joint apart, cleaned it and glued it anew, and it holds.\n\nYours\n",
}


def png():
    def chunk(kind, data):
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    side = 64
    rows = b"".join(
        b"\0" + bytes(c for x in range(side) for c in (4 * x, 4 * y, x * y % 256))
        for y in range(side)
    )
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def pdf():
    page = b"BT /F1 24 Tf 72 720 Td (Mortise and tenon) Tj ET"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R\n"
        b"   /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(page), page),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    out, offsets = b"%PDF-1.4\n", []
    for number, text in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, text)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n%s" % (len(objects) + 1, table)
    return out + b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (
        len(objects) + 1,
        start,
    )


def sound(path):
    with wave.open(str(path), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(8000)
        wanted = (int(9000 * math.sin(n / 3)) for n in range(8000))
        out.writeframes(b"".join(struct.pack("<h", value) for value in wanted))


def database(path):
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE joint (id INTEGER PRIMARY KEY, name TEXT)")
        db.executemany("INSERT INTO joint (name) VALUES (?)", [("tenon",), ("dovetail",)])
    db.close()


def archives(dest):
    text = TEXTS["a-letter"].encode() * 20
    with zipfile.ZipFile(dest / "archive-1", "w", zipfile.ZIP_DEFLATED) as out:
        for name, content in TEXTS.items():
            out.writestr(name, content)
    with tarfile.open(dest / "archive-2", "w") as out:
        info = tarfile.TarInfo("letter")
        info.size = len(text)
        out.addfile(info, io.BytesIO(text))
    (dest / "archive-3").write_bytes(gzip.compress(text))
    (dest / "archive-4").write_bytes(bz2.compress(text))
    (dest / "archive-5").write_bytes(lzma.compress(text))


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: demo-files.py DEST")
    dest = pathlib.Path(sys.argv[1])
    dest.mkdir(parents=True, exist_ok=True)
    for name, text in TEXTS.items():
        (dest / name).write_text(text)
    (dest / "a-picture").write_bytes(png())
    (dest / "not-a-picture.png").write_bytes(pdf())
    (dest / "empty").write_bytes(b"")
    sound(dest / "a-sound")
    (dest / "a-database").unlink(missing_ok=True)
    database(dest / "a-database")
    archives(dest)
    shutil.copyfile("/bin/true", dest / "a-command")


if __name__ == "__main__":
    main()
