"""Generates binary files of many kinds (archives, images, executables, …) with the standard library
or byte by byte, for the corpus that file type classifiers are compared on."""

import bz2
import gzip
import io
import lzma
import marshal
import math
import pathlib
import pickle
import plistlib
import sqlite3
import struct
import tarfile
import tempfile
import wave
import zipfile
import zlib
from importlib.util import MAGIC_NUMBER

import texts


def prose(rng, sentences):
    return " ".join(texts.sentence(rng) for _ in range(sentences)).encode()


def noise(rng, size):
    return rng.getrandbits(8 * size).to_bytes(size, "little") if size else b""


def zipped(members, stored=()):
    """Returns a zip archive; its entries are dated 1980, so it depends on nothing else."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in members:
            method = zipfile.ZIP_STORED if name in stored else zipfile.ZIP_DEFLATED
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return out.getvalue()


def tarred(rng, count):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for i in range(count):
            data = prose(rng, rng.randrange(1, 40))
            info = tarfile.TarInfo(f"{rng.choice(texts.NOUNS)}/{rng.choice(texts.NOUNS)}-{i}.txt")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def make_zip(rng):
    names = [f"{rng.choice(texts.NOUNS)}-{i}.txt" for i in range(rng.randrange(1, 9))]
    return zipped([(name, prose(rng, rng.randrange(1, 60))) for name in names])


def make_gzip(rng):
    return gzip.compress(prose(rng, rng.randrange(1, 400)), mtime=0)


def make_bzip(rng):
    return bz2.compress(prose(rng, rng.randrange(1, 400)))


def make_xz(rng):
    return lzma.compress(prose(rng, rng.randrange(1, 400)))


def make_zlibstream(rng):
    return zlib.compress(prose(rng, rng.randrange(10, 400)), rng.randrange(1, 10))


def make_tar(rng):
    return tarred(rng, rng.randrange(1, 8))


def make_deb(rng):
    control = gzip.compress(tarred(rng, 1), mtime=0)
    members = [("debian-binary", b"2.0\n"), ("control.tar.gz", control)]
    members.append(("data.tar.xz", lzma.compress(tarred(rng, 4))))
    out = b"!<arch>\n"
    for name, data in members:
        out += f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(data):<10}`\n".encode()
        out += data + b"\n" * (len(data) % 2)
    return out


def number_7z(n):
    return bytes([n]) if n < 0x80 else bytes([0x80 | n >> 8, n & 255])


def make_sevenzip(rng):
    """Returns a 7z archive of one file, compressed with LZMA; sizes are below 2^14, the limit of
    number_7z."""
    data = prose(rng, rng.randrange(4, 120))[:12_000]
    spec = {"id": lzma.FILTER_LZMA1, "dict_size": 1 << 16, "lc": 3, "lp": 0, "pb": 2}
    packed = lzma.compress(data, lzma.FORMAT_RAW, filters=[spec])
    name = (rng.choice(texts.NOUNS) + ".txt\0").encode("utf-16-le")
    header = b"\x01\x04\x06\x00\x01\x09" + number_7z(len(packed)) + b"\x00"
    header += b"\x07\x0b\x01\x00\x01\x23\x03\x01\x01\x05\x5d" + struct.pack("<I", 1 << 16)
    header += b"\x0c" + number_7z(len(data)) + b"\x0a\x01" + struct.pack("<I", zlib.crc32(data))
    header += b"\x00\x08\x00\x00\x05\x01\x11" + number_7z(1 + len(name)) + b"\x00" + name
    header += b"\x00\x00"
    start = struct.pack("<QQI", len(packed), len(header), zlib.crc32(header))
    return (
        b"7z\xbc\xaf\x27\x1c\0\4" + struct.pack("<I", zlib.crc32(start)) + start + packed + header
    )


def make_cab(rng):
    """Returns a CAB archive of one file in one folder, compressed as MSZIP in a single block."""
    data = prose(rng, rng.randrange(5, 300))[:32_768]
    squeeze = zlib.compressobj(wbits=-15)
    packed = b"CK" + squeeze.compress(data) + squeeze.flush()
    name = rng.choice(texts.NOUNS).encode() + b".txt\0"
    first_data = 36 + 8 + 16 + len(name)
    total = first_data + 8 + len(packed)
    out = b"MSCF" + struct.pack("<5I2B5H", 0, total, 0, 44, 0, 3, 1, 1, 1, 0, 0, 0)
    out += struct.pack("<IHH", first_data, 1, 1)
    out += struct.pack("<IIHHHH", len(data), 0, 0, 0x5A21, 0x6000, 0x20) + name
    return out + struct.pack("<IHH", 0, len(packed), len(data)) + packed


OFFICE = "http://schemas.openxmlformats.org"


def office(rng, folder, main, kind, body):
    """Returns an Office Open XML package; `main` is the part that its relations lead to."""
    xml = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
    mime = f"application/vnd.openxmlformats-officedocument.{kind}.main+xml"
    types = (
        f'{xml}<Types xmlns="{OFFICE}/package/2006/content-types">'
        '<Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/>'
        f'<Override PartName="/{folder}/{main}" ContentType="{mime}"/></Types>'
    )
    rels = (
        f'{xml}<Relationships xmlns="{OFFICE}/package/2006/relationships">'
        f'<Relationship Id="rId1" Target="{folder}/{main}" '
        f'Type="{OFFICE}/officeDocument/2006/relationships/officeDocument"/></Relationships>'
    )
    core = (
        f'{xml}<cp:coreProperties xmlns:cp="{OFFICE}/package/2006/metadata/core-properties">'
        f"<cp:lastModifiedBy>{rng.choice(texts.PEOPLE)}</cp:lastModifiedBy></cp:coreProperties>"
    )
    app = (
        f'{xml}<Properties xmlns="{OFFICE}/officeDocument/2006/extended-properties">'
        "<Application>Microsoft Office</Application></Properties>"
    )
    members = [("[Content_Types].xml", types), ("_rels/.rels", rels)]
    members += [(f"{folder}/_rels/{main}.rels", rels), (f"{folder}/{main}", xml + body)]
    members += [(f"{folder}/styles.xml", xml + "<styles/>"), (f"{folder}/theme/theme1.xml", xml)]
    return zipped(members + [("docProps/core.xml", core), ("docProps/app.xml", app)])


def make_docx(rng):
    paragraphs = "".join(
        f"<w:p><w:r><w:t>{texts.sentence(rng)}</w:t></w:r></w:p>"
        for _ in range(rng.randrange(3, 99))
    )
    body = f'<w:document xmlns:w="{OFFICE}/wordprocessingml/2006/main"><w:body>{paragraphs}'
    kind = "wordprocessingml.document"
    return office(rng, "word", "document.xml", kind, body + "</w:body></w:document>")


def make_xlsx(rng):
    sheets = "".join(
        f'<sheet name="{rng.choice(texts.NOUNS)}{i}" sheetId="{i}" r:id="rId{i}"/>'
        for i in range(1, rng.randrange(2, 9))
    )
    body = (
        f'<workbook xmlns="{OFFICE}/spreadsheetml/2006/main"><sheets>{sheets}</sheets></workbook>'
    )
    return office(rng, "xl", "workbook.xml", "spreadsheetml.sheet", body)


def make_pptx(rng):
    slides = "".join(f'<p:sldId id="{256 + i}"/>' for i in range(rng.randrange(1, 40)))
    body = (
        f'<p:presentation xmlns:p="{OFFICE}/presentationml/2006/main"><p:sldIdLst>{slides}'
        "</p:sldIdLst></p:presentation>"
    )
    return office(rng, "ppt", "presentation.xml", "presentationml.presentation", body)


def open_document(rng, kind, body):
    mime = f"application/vnd.oasis.opendocument.{kind}"
    manifest = f'<manifest:manifest><manifest:file-entry media-type="{mime}"/></manifest:manifest>'
    content = (
        f"<office:document-content><office:body>{body}</office:body></office:document-content>"
    )
    members = [("mimetype", mime), ("content.xml", content), ("styles.xml", "<office:styles/>")]
    members += [("meta.xml", "<office:document-meta/>"), ("META-INF/manifest.xml", manifest)]
    return zipped(members, stored=("mimetype",))


def make_odt(rng):
    paragraphs = range(rng.randrange(3, 60))
    body = "".join(f"<text:p>{texts.sentence(rng)}</text:p>" for _ in paragraphs)
    return open_document(rng, "text", body)


def make_ods(rng):
    cells = range(rng.randrange(3, 90))
    body = "".join(f"<table:table-cell>{rng.random()}</table:table-cell>" for _ in cells)
    return open_document(rng, "spreadsheet", body)


def make_epub(rng):
    container = (
        '<container><rootfiles><rootfile full-path="OEBPS/content.opf"/></rootfiles></container>'
    )
    members = [("mimetype", "application/epub+zip"), ("META-INF/container.xml", container)]
    members.append(("OEBPS/content.opf", "<package><metadata/></package>"))
    for i in range(rng.randrange(1, 6)):
        body = prose(rng, 30).decode()
        members.append((f"OEBPS/chapter{i}.xhtml", f"<html><body><p>{body}</p></body></html>"))
    return zipped(members, stored=("mimetype",))


def class_file(rng):
    """Returns a Java class with constants only, and no method."""
    name = f"com/example/{rng.choice(texts.NOUNS).capitalize()}"
    words = [name, "java/lang/Object", "Code", "LineNumberTable", "SourceFile", "<init>", "()V"]
    words += [rng.choice(texts.VERBS) + rng.choice(texts.NOUNS).capitalize() for _ in range(60)]
    pool = b"\x07" + struct.pack(">H", 3) + b"\x07" + struct.pack(">H", 4)
    for word in words:
        pool += b"\x01" + struct.pack(">H", len(word)) + word.encode()
    out = struct.pack(">IHHH", 0xCAFEBABE, 0, 52, len(words) + 3) + pool
    return out + struct.pack(">7H", 0x21, 1, 2, 0, 0, 0, 0)


def make_javabytecode(rng):
    return class_file(rng)


def make_jar(rng):
    members = [("META-INF/", ""), ("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\r\n\r\n")]
    for i in range(rng.randrange(2, 9)):
        members.append(
            (f"com/example/{rng.choice(texts.NOUNS).capitalize()}{i}.class", class_file(rng))
        )
    return zipped(members)


def chunk_png(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(rng, width, height):
    step = rng.randrange(1, 9)
    rows = b"".join(
        b"\0" + bytes((x * step + y * c) & 255 for x in range(width) for c in (1, 2, 3))
        for y in range(height)
    )
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    out = b"\x89PNG\r\n\x1a\n" + chunk_png(b"IHDR", head)
    out += chunk_png(b"tEXt", b"Comment\0" + prose(rng, 1))
    return out + chunk_png(b"IDAT", zlib.compress(rows)) + chunk_png(b"IEND", b"")


def make_png(rng):
    return png(rng, rng.randrange(8, 120), rng.randrange(8, 120))


def make_bmp(rng):
    width, height = 4 * rng.randrange(4, 30), rng.randrange(10, 80)
    pixels = bytes((x * y + x) & 255 for y in range(height) for x in range(3 * width))
    head = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, len(pixels), 2835, 2835, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54 + len(pixels), 0, 0, 54) + head + pixels


def make_gif(rng):
    """Returns a GIF with codes of nine bits, with a clear code before the table would grow."""
    width, height = rng.randrange(8, 60), rng.randrange(8, 60)
    palette = noise(rng, 768)
    bits = count = 0
    data = bytearray()
    codes = []
    for i in range(width * height):
        if i % 200 == 0:
            codes.append(256)
        codes.append(i % 256)
    for code in codes + [257]:
        bits |= code << count
        count += 9
        while count >= 8:
            data.append(bits & 255)
            bits, count = bits >> 8, count - 8
    data.append(bits & 255)
    out = b"GIF89a" + struct.pack("<HHBBB", width, height, 0xF7, 0, 0) + palette
    out += b"," + struct.pack("<HHHHB", 0, 0, width, height, 0) + b"\x08"
    for i in range(0, len(data), 255):
        out += bytes([len(data[i : i + 255])]) + data[i : i + 255]
    return out + b"\0;"


def make_ico(rng):
    images = [png(rng, size, size) for size in (16, 32, 48)[: rng.randrange(1, 4)]]
    out = struct.pack("<HHH", 0, 1, len(images))
    offset = 6 + 16 * len(images)
    for size, image in zip((16, 32, 48), images):
        out += struct.pack("<BBBBHHII", size, size, 0, 0, 1, 32, len(image), offset)
        offset += len(image)
    return out + b"".join(images)


def make_tiff(rng):
    width, height = rng.randrange(8, 90), rng.randrange(8, 90)
    pixels = bytes((x * 3 + y * 5) & 255 for y in range(height) for x in range(width))
    tags = [(256, 4, width), (257, 4, height), (258, 3, 8), (259, 3, 1), (262, 3, 1)]
    tags += [(273, 4, 8), (277, 3, 1), (278, 4, height), (279, 4, len(pixels))]
    out = b"II*\0" + struct.pack("<I", 8 + len(pixels)) + pixels + struct.pack("<H", len(tags))
    return out + b"".join(struct.pack("<HHII", t, k, 1, v) for t, k, v in tags) + b"\0\0\0\0"


def make_tga(rng):
    width, height = rng.randrange(16, 90), rng.randrange(16, 90)
    pixels = bytes((x * y + 7 * x) & 255 for y in range(height) for x in range(3 * width))
    head = struct.pack("<BBBHHBHHHHBB", 0, 0, 2, 0, 0, 0, 0, 0, width, height, 24, 32)
    return head + pixels + b"\0" * 8 + b"TRUEVISION-XFILE.\0"


def make_psd(rng):
    width, height = rng.randrange(16, 60), rng.randrange(16, 60)
    pixels = bytes((x ^ y) & 255 for y in range(3 * height) for x in range(width))
    head = b"8BPS" + struct.pack(">H6xHIIHH", 1, 3, height, width, 8, 3)
    block = (
        b"8BIM"
        + struct.pack(">HHI", 1005, 0, 16)
        + struct.pack(">IHHIHH", 72 << 16, 1, 1, 72 << 16, 1, 1)
    )
    return (
        head
        + struct.pack(">I", 0)
        + struct.pack(">I", len(block))
        + block
        + bytes(4)
        + b"\0\0"
        + pixels
    )


def make_wav(rng):
    out = io.BytesIO()
    tone, rate = rng.randrange(200, 2000), rng.choice([8000, 22050, 44100])
    with wave.open(out, "wb") as file:
        file.setnchannels(rng.randrange(1, 3))
        file.setsampwidth(2)
        file.setframerate(rate)
        samples = (int(9000 * math.sin(tone * i / rate)) for i in range(rng.randrange(1000, 9000)))
        file.writeframes(b"".join(struct.pack("<h", s) for s in samples))
    return out.getvalue()


def make_midi(rng):
    track = b"\0\xff\x03\x05piano\0\xff\x51\x03\x07\xa1\x20"
    for _ in range(rng.randrange(30, 400)):
        note = rng.randrange(40, 90)
        track += bytes([0, 0x90, note, 96, rng.randrange(10, 100), 0x80, note, 0])
    track += b"\0\xff\x2f\0"
    return (
        b"MThd"
        + struct.pack(">IHHH", 6, 0, 1, 96)
        + b"MTrk"
        + struct.pack(">I", len(track))
        + track
    )


def make_sqlite(rng):
    db = sqlite3.connect(":memory:")
    table = rng.choice(texts.NOUNS)
    db.execute(f'create table "{table}" (id integer primary key, name text, amount real)')
    rows = [(texts.sentence(rng), rng.random()) for _ in range(rng.randrange(1, 300))]
    db.executemany(f'insert into "{table}" (name, amount) values (?, ?)', rows)
    db.commit()
    if hasattr(db, "serialize"):
        return db.serialize()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "db"
        with sqlite3.connect(path) as file:
            db.backup(file)
        return path.read_bytes()


def make_pdf(rng):
    lines = "".join(f"({texts.sentence(rng)[:80]}) Tj T*\n" for _ in range(rng.randrange(3, 40)))
    page = zlib.compress(f"BT /F1 12 Tf 14 TL 50 800 Td\n{lines}ET".encode("latin-1", "replace"))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R "
        b"/Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(page), page),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    out = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n"
    offsets = []
    for i, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (i, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    start = len(out)
    out += b"xref\n0 6\n0000000000 65535 f \n" + table
    return out + b"trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % start


def make_elf(rng):
    """Returns an x86-64 program with code that returns constants, and a string table."""
    code = b"".join(
        b"\x55\x48\x89\xe5\xb8" + struct.pack("<I", rng.getrandbits(31)) + b"\x5d\xc3\x66\x90"
        for _ in range(rng.randrange(20, 400))
    )
    names = b"\0.text\0.shstrtab\0"
    sections = (0x78 + len(code) + len(names) + 7) & ~7
    out = b"\x7fELF\2\1\1" + bytes(9)
    out += struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0x400078, 64, sections, 0, 64, 56, 1, 64, 3, 2)
    size = 0x78 + len(code)
    out += struct.pack("<IIQQQQQQ", 1, 5, 0, 0x400000, 0x400000, size, size, 4096) + code + names
    out += bytes(sections - len(out)) + bytes(64)
    out += struct.pack("<IIQQQQIIQQ", 1, 1, 6, 0x400078, 0x78, len(code), 0, 0, 16, 0)
    return out + struct.pack("<IIQQQQIIQQ", 7, 3, 0, 0, size, len(names), 0, 0, 1, 0)


def make_pebin(rng):
    """Returns a Windows program of one section."""
    code = b"".join(
        b"\x55\x8b\xec\xb8" + struct.pack("<I", rng.getrandbits(31)) + b"\x5d\xc3\xcc\xcc"
        for _ in range(rng.randrange(40, 400))
    )
    size = (len(code) + 511) & ~511
    dos = b"MZ\x90\0\3\0\0\0\4\0\0\0\xff\xff\0\0\xb8" + bytes(7) + b"@" + bytes(35)
    dos += struct.pack("<I", 0x80) + b"\x0e\x1f\xba\x0e\0\xb4\x09\xcd\x21\xb8\x01\x4c\xcd\x21"
    dos += b"This program cannot be run in DOS mode.\r\r\n$"
    out = dos + bytes(0x80 - len(dos)) + b"PE\0\0"
    out += struct.pack("<HHIIIHH", 0x14C, 1, 0, 0, 0, 224, 0x102)
    out += struct.pack("<HBBIIIIII", 0x10B, 14, 0, size, 0, 0, 0x1000, 0x1000, 0x2000)
    out += struct.pack(
        "<III6HIIIIHH", 0x400000, 4096, 512, 6, 0, 0, 0, 6, 0, 0, 0x3000, 512, 0, 3, 0
    )
    out += struct.pack("<6I", 1 << 20, 4096, 1 << 20, 4096, 0, 16) + bytes(128)
    out += b".text\0\0\0" + struct.pack(
        "<6IHHI", len(code), 0x1000, size, 512, 0, 0, 0, 0, 0x60000020
    )
    return out + bytes(512 - len(out)) + code + bytes(size - len(code))


def make_wasm(rng):
    def section(number, body):
        return bytes([number]) + leb(len(body)) + body

    def leb(n):
        out = b""
        while n >= 0x80:
            out, n = out + bytes([n & 0x7F | 0x80]), n >> 7
        return out + bytes([n])

    count = rng.randrange(4, 60)
    bodies = b"".join(
        b"\x07\x00\x20\x00\x41" + bytes([rng.randrange(64)]) + b"\x6a\x0b" for _ in range(count)
    )
    exports = b"".join(
        bytes([len(name)]) + name + b"\0" + bytes([i])
        for i, name in enumerate(f"{rng.choice(texts.VERBS)}{i}".encode() for i in range(count))
    )
    out = b"\0asm\1\0\0\0" + section(1, b"\x01\x60\x01\x7f\x01\x7f")
    out += section(3, bytes([count]) + bytes(count)) + section(7, bytes([count]) + exports)
    return out + section(10, bytes([count]) + bodies)


def make_pickle(rng):
    rows = [
        {
            "name": texts.sentence(rng),
            "values": [rng.random() for _ in range(9)],
            "id": rng.randrange(99),
        }
        for _ in range(rng.randrange(2, 60))
    ]
    return pickle.dumps({"rows": rows, "set": {1, 2}}, protocol=rng.choice([2, 3, 4]))


def make_pythonbytecode(rng):
    _, pieces = texts.load()["python"]
    code = compile(texts.compose(rng, pieces, rng.randrange(500, 6000)), "module.py", "exec")
    return MAGIC_NUMBER + bytes(12) + marshal.dumps(code)


def npy(rng):
    shape = rng.randrange(2, 30), rng.randrange(2, 30)
    head = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    values = b"".join(struct.pack("<d", rng.gauss(0, 1)) for _ in range(shape[0] * shape[1]))
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode() + values


def make_npy(rng):
    return npy(rng)


def make_npz(rng):
    return zipped([(f"arr_{i}.npy", npy(rng)) for i in range(rng.randrange(1, 6))])


def make_pcap(rng):
    out = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    for i in range(rng.randrange(3, 60)):
        data = prose(rng, 1)
        total = 28 + len(data)
        frame = noise(rng, 12) + b"\x08\0\x45\0" + struct.pack(">HHHBBH", total, i, 0, 64, 17, 0)
        frame += noise(rng, 8) + struct.pack(">HHHH", 5353, 53, 8 + len(data), 0) + data
        out += struct.pack("<IIII", 1_700_000_000 + i, 17 * i, len(frame), len(frame)) + frame
    return out


def make_torrent(rng):
    pieces = noise(rng, 20 * rng.randrange(10, 300))
    name = rng.choice(texts.NOUNS).encode()
    out = b"d8:announce31:http://tracker.example.org/anno13:creation datei1700000000e"
    out += b"4:infod6:lengthi%de4:name%d:%s" % (262144 * len(pieces) // 20, len(name), name)
    return out + b"12:piece lengthi262144e6:pieces%d:%s" % (len(pieces), pieces) + b"ee"


def property_list(rng):
    keys = [rng.choice(texts.NOUNS) + str(i) for i in range(rng.randrange(5, 60))]
    return {key: [texts.sentence(rng), rng.randrange(999), True] for key in keys}


def make_applebplist(rng):
    return plistlib.dumps(property_list(rng), fmt=plistlib.FMT_BINARY)


def make_appleplist(rng):
    return plistlib.dumps(property_list(rng))


def make_randombytes(rng):
    return noise(rng, rng.choice([60, 500, 4095, 4096, 4097, 20_000]))


KINDS = {
    name[len("make_") :]: function
    for name, function in sorted(globals().items())
    if name.startswith("make_")
}
