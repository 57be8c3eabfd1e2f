"""Test cases of ONNX operators that decode bytes: {name: cases(version, rng)}. What they give is
stated: the runtime has no decoders, and the evaluator needs another package."""

import base64
import struct
import zlib

import numpy as np

from cases import In, one, stated


def as_bytes(data):
    return np.frombuffer(data, np.uint8)


def bmp(rgb, from_top=False):
    height, width, _ = rgb.shape
    rows = (rgb if from_top else rgb[::-1])[:, :, ::-1]
    pixels = b"".join(r.tobytes() + bytes(-3 * width % 4) for r in rows)
    sizes = struct.pack("<IiiHHIIiiII", 40, width, -height if from_top else height, 1, 24, 0, 0, 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54 + len(pixels), 0, 0, 54) + sizes + pixels


def bmp_of_palette(numbers, colours, count):
    """A BMP of numbers of colours; a header that states 0 colours has all 256."""
    height, width = numbers.shape
    palette = np.zeros((count or 256, 4), np.uint8)
    palette[:len(colours), :3] = colours[:, ::-1]
    pixels = b"".join(r.tobytes() + bytes(-width % 4) for r in numbers[::-1])
    start = 54 + palette.nbytes
    sizes = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 8, 0, 0, 0, 0, count, 0)
    return b"BM" + struct.pack("<IHHI", start + len(pixels), 0, 0, start) + sizes + palette.tobytes() + pixels


def bmp_with_opacity(rgba):
    height, width, _ = rgba.shape
    sizes = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 32, 0, 0, 0, 0, 0, 0)
    pixels = rgba[::-1][:, :, [2, 1, 0, 3]].tobytes()
    return b"BM" + struct.pack("<IHHI", 54 + len(pixels), 0, 0, 54) + sizes + pixels


# A picture of one colour, (198, 101, 50), and one of the numbers 0, 10 … 170, without loss; by Pillow.
JPEG = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABALDA4MChAODQ4SERATGCgaGBYWGDEjJR0oOjM9PDkzODdASFxOQERXRTc4UG1RV19i"
    "Z2hnPk1xeXBkeFxlZ2P/2wBDARESEhgVGC8aGi9jQjhCY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2Nj"
    "Y2NjY2NjY2NjY2P/wAARCAAIAAgDASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAL/xAAUEAEAAAAAAAAAAAAAAAAAAAAA"
    "/8QAFAEBAAAAAAAAAAAAAAAAAAAABf/EABQRAQAAAAAAAAAAAAAAAAAAAAD/2gAMAwEAAhEDEQA/AJAFmX//2Q==")
# By Pillow too, without loss: the numbers 0, 10 … 170 as a file, as a bare codestream, and with opacity; their
# red as gray; six numbers of 16 bits; and the numbers (124, 86, 180) as luminance and differences of colours.
JPEG_2000 = {name: base64.b64decode(text) for name, text in {
    "file": "AAAADGpQICANCocKAAAAFGZ0eXBqcDIgAAAAAGpwMiAAAAAtanAyaAAAABZpaGRyAAAAAgAAAAMAAwcHAAAAAAAPY29scgEAAAAAABAAAACv"
            "anAyY/9P/1EALwAAAAAAAwAAAAIAAAAAAAAAAAAAAAMAAAACAAAAAAAAAAAAAwcBAQcBAQcBAf9SAAwAAAABAAEEBAAB/1wAB0BASEhQ/2QA"
            "JQABQ3JlYXRlZCBieSBPcGVuSlBFRyB2ZXJzaW9uIDIuNS40/5AACgAAAAAANAAB/5PPtAwG8z/PtAwHGKvH1AQGtaPtAwACS3+j7QMAAkt/"
            "o+0DAAJLf//Z",
    "stream": "/0//UQAvAAAAAAADAAAAAgAAAAAAAAAAAAAAAwAAAAIAAAAAAAAAAAADBwEBBwEBBwEB/1IADAAAAAEAAQQEAAH/XAAHQEBISFD/ZAAl"
              "AAFDcmVhdGVkIGJ5IE9wZW5KUEVHIHZlcnNpb24gMi41LjT/kAAKAAAAAAA0AAH/k8+0DAbzP8+0DAcYq8fUBAa1o+0DAAJLf6PtAwAC"
              "S3+j7QMAAkt//9k=",
    "gray": "AAAADGpQICANCocKAAAAFGZ0eXBqcDIgAAAAAGpwMiAAAAAtanAyaAAAABZpaGRyAAAAAgAAAAMAAQcHAAAAAAAPY29scgEAAAAAABEAAACQ"
            "anAyY/9P/1EAKQAAAAAAAwAAAAIAAAAAAAAAAAAAAAMAAAACAAAAAAAAAAAAAQcBAf9SAAwAAAABAAEEBAAB/1wAB0BASEhQ/2QAJQABQ3Jl"
            "YXRlZCBieSBPcGVuSlBFRyB2ZXJzaW9uIDIuNS40/5AACgAAAAAAGwAB/5PPtAwG8z+j7QMAAkt//9k=",
    "opacity": "AAAADGpQICANCocKAAAAFGZ0eXBqcDIgAAAAAGpwMiAAAABPanAyaAAAABZpaGRyAAAAAgAAAAMABAcHAAAAAAAPY29scgEAAAAAABAA"
               "AAAiY2RlZgAEAAAAAAABAAEAAAACAAIAAAADAAMAAQAAAAAAv2pwMmP/T/9RADIAAAAAAAMAAAACAAAAAAAAAAAAAAADAAAAAgAAAAAA"
               "AAAAAAQHAQEHAQEHAQEHAQH/UgAMAAAAAQABBAQAAf9cAAdAQEhIUP9kACUAAUNyZWF0ZWQgYnkgT3BlbkpQRUcgdmVyc2lvbiAyLjUu"
               "NP+QAAoAAAAAAEEAAf+Tz7QMBvM/z7QMBxirx9QEBrXPtAwG8z+j7QMAAkt/o+0DAAJLf6PtAwACS3+j7QMAAkt//9k=",
    "16 bits": "/0//UQApAAAAAAADAAAAAgAAAAAAAAAAAAAAAwAAAAIAAAAAAAAAAAABDwEB/1IADAAAAAEAAQQEAAH/XAAHQICIiJD/ZAAlAAFDcmVh"
               "dGVkIGJ5IE9wZW5KUEVHIHZlcnNpb24gMi41LjT/kAAKAAAAAAAhAAH/k8/8MBQG8zTNNaP/BgKAAkt6Bz//2Q==",
    "luminance": "AAAADGpQICANCocKAAAAFGZ0eXBqcDIgAAAAAGpwMiAAAAAtanAyaAAAABZpaGRyAAAAAgAAAAMAAwcHAAAAAAAPY29scgEAAAAAABIA"
                 "AACdanAyY/9P/1EALwAAAAAAAwAAAAIAAAAAAAAAAAAAAAMAAAACAAAAAAAAAAAAAwcBAQcBAQcBAf9SAAwAAAABAAEEBAAB/1wAB0BA"
                 "SEhQ/2QAJQABQ3JlYXRlZCBieSBPcGVuSlBFRyB2ZXJzaW9uIDIuNS40/5AACgAAAAAAIgAB/5PA+EIJP8fUBgj9j8fUBgG5f4CAgP/Z",
}.items()}
WEBP = base64.b64decode("UklGRjAAAABXRUJQVlA4TCQAAAAvAkAAAC8gFkz+QeTvmcR4nMJj/hPbUNO2ARvq/MupEf2P6QU=")


def png(rgb):
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    height, width, channels = rgb.shape
    head = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 6, 0, 0, 0)
    rows = b"".join(b"\0" + r.tobytes() for r in rgb)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def pnm(kind, pixels, most=255):
    head = f"P{kind}\n# a comment\n{pixels.shape[1]} {pixels.shape[0]}\n{most}\n".encode()
    if kind > 3:
        return head + pixels.astype(">u2" if most > 255 else "u1").tobytes()
    return head + " ".join(str(v) for v in pixels.flat).encode()


def tiff(rgb):
    height, width, _ = rgb.shape
    tags = [(256, width), (257, height), (258, 8), (259, 1), (262, 2), (273, 8), (277, 3), (278, height),
            (279, rgb.nbytes)]
    body = struct.pack("<H", len(tags)) + b"".join(struct.pack("<HHII", t, 4, 1, v) for t, v in tags)
    return b"II*\0" + struct.pack("<I", 8 + rgb.nbytes) + rgb.tobytes() + body + bytes(4)


def gray(rgb):
    wide = rgb.astype(np.uint32) @ np.array([19595, 38470, 7471], np.uint32)
    return ((wide + 32768) >> 16).astype(np.uint8)[:, :, None]


def decoder(version, rng):
    def made(data, y, label, more=(), **way):
        x = In(as_bytes(data), ["n"]) if more else as_bytes(data)
        return stated(one("ImageDecoder", x, label=label, more=more, **way), y)
    rgb = rng.integers(0, 256, (5, 7, 3), np.uint8)
    for order, y in (("RGB", rgb), ("BGR", rgb[:, :, ::-1]), ("Grayscale", gray(rgb))):
        yield made(bmp(rgb), y, "BMP", pixel_format=order)
        yield made(png(rgb), y, "PNG", pixel_format=order)
    yield made(bmp(rgb, True), rgb, "BMP from the top")
    yield made(tiff(rgb), rgb, "TIFF")
    yield made(JPEG, np.full((8, 8, 3), (198, 101, 50), np.uint8), "JPEG")
    yield made(WEBP, np.arange(0, 180, 10, np.uint8).reshape(2, 3, 3), "WebP")
    steps = np.arange(0, 180, 10, np.uint8).reshape(2, 3, 3)
    for kind, y in (("file", steps), ("stream", steps), ("opacity", steps), ("gray", np.repeat(steps[:, :, :1], 3, 2)),
                    ("16 bits", np.repeat(np.arange(0, 180, 30, np.uint8).reshape(2, 3, 1), 3, 2)),
                    ("luminance", np.full((2, 3, 3), (197, 101, 50), np.uint8))):
        yield made(JPEG_2000[kind], y, f"JPEG 2000: {kind}")
    rgba = np.concatenate([rgb, rng.integers(0, 256, (5, 7, 1), np.uint8)], 2)
    yield made(png(rgba), rgb, "PNG with opacity")
    yield made(bmp_with_opacity(rgba), rgb, "BMP with opacity")
    numbers = rng.integers(0, 4, (5, 7), np.uint8)
    for count in (0, 4):
        yield made(bmp_of_palette(numbers, rgb[0, :4], count), rgb[0, numbers], f"BMP of {count} colours")
    yield made(bmp_of_palette(numbers, rgb[0, :3], 3), np.concatenate([rgb[0, :3], np.zeros((1, 3), np.uint8)])[numbers],
               "BMP of a colour beyond those stated")
    yield made(pnm(6, rgb), rgb, "PPM")
    yield made(pnm(3, rgb), rgb, "PPM in text")
    yield made(pnm(2, rgb[:, :, 0]), np.repeat(rgb[:, :, :1], 3, 2), "PGM in text")
    yield made(pnm(5, rgb[:, :, 0].astype(np.uint16) * 257, 65535), np.repeat(rgb[:, :, :1], 3, 2), "PGM of 16 bits")
    bits = np.unpackbits(rgb[:, :2, 0].copy(), axis=1)
    yield made(b"P4 16 5\n" + rgb[:, :2, 0].tobytes(), np.repeat((1 - bits)[:, :, None] * 255, 3, 2).astype(np.uint8),
               "PBM")
    nothing = np.zeros((0, 0, 3), np.uint8)
    for label, data in (("nothing", b""), ("what is no picture", b"GIF89a" + bytes(40)), ("a cut BMP", bmp(rgb)[:100]),
                        ("a cut PNG", png(rgb)[:60]), ("a cut TIFF", tiff(rgb)[:90]), ("a cut PPM", pnm(6, rgb)[:60]),
                        ("a cut JPEG", b"\xff\xd8\xff\xe0" + bytes(20)), ("a cut JPEG 2000", JPEG_2000["file"][:120]), ("a JPEG 2000 without its samples", JPEG_2000["stream"][:150]),
                        ("a JPEG 2000 too large", JPEG_2000["stream"][:8] + b"\x7f" * 8 + JPEG_2000["stream"][16:]),
                        ("a cut WebP", b"RIFF\x20\0\0\0WEBPVP8 " + bytes(8)),
                        ("a JPEG too large", JPEG.replace(b"\xff\xc0\0\x11\x08\0\x08\0\x08", b"\xff\xc2\0\x11\x08" + b"\xff\xdc" * 2)),
                        ("a BMP of an old header", bmp(rgb)[:14] + struct.pack("<IHHHH", 12, 7, 5, 1, 24) + bmp(rgb)[26:]),
                        ("a BMP too large", bmp(rgb)[:18] + b"\xff\xff\xff\x7f" * 2 + bmp(rgb)[26:])):
        yield made(data, nothing, label)


OPERATORS = {"ImageDecoder": decoder}
