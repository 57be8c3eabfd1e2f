#!/usr/bin/env python3
"""Tests pictures that ImageDecoder refuses, of JPEG 2000: kinds that would come out in wrong colours, and
samples beyond the limit on memory. Pictures that are decoded are among the cases of test_ops.py.

    test_pictures.py BUILD
"""

import base64
import os
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
try:
    import numpy as np
    from onnx import TensorProto, helper
except ImportError as missing:
    print(f"skipped: {missing} (scripts/setup.sh --tests installs it)")
    sys.exit(77)
from checks import Checks
from operators_encoded import JPEG_2000
from tenon import Library, Refused

# Six numbers of each of four inks, by Pillow.
CMYK = base64.b64decode(
    "AAAADGpQICANCocKAAAAFGZ0eXBqcDIgAAAAAGpwMiAAAAAtanAyaAAAABZpaGRyAAAAAgAAAAMABAcHAAAAAAAPY29scgEAAAAAAAwAAACx"
    "anAyY/9P/1EAMgAAAAAAAwAAAAIAAAAAAAAAAAAAAAMAAAACAAAAAAAAAAAABAcBAQcBAQcBAQcBAf9SAAwAAAABAAAEBAAB/1wABEBA/2QA"
    "JQABQ3JlYXRlZCBieSBPcGVuSlBFRyB2ZXJzaW9uIDIuNS40/5AACgAAAAAANgAB/5PfgDAHzENBCPfPtBwGQW0Xu4Yiz7QcBkEfaJ+Nt8+0"
    "IAd5x202/f9//9k=")
RGB = JPEG_2000["file"]
SIDE = 2048   # of a gray picture: 12 MiB of pixels, 16 MiB of samples


def of_colours(number):
    """The picture as if its samples were of another colour space, by its number in JP2 files."""
    at = RGB.index(b"colr") + 7
    return RGB[:at] + struct.pack(">I", number) + RGB[at + 4:]


def black(side, components):
    """A codestream whose samples are all left out."""
    stream = JPEG_2000["gray"][JPEG_2000["gray"].index(b"\xff\x4f\xff\x51"):]
    size = struct.unpack(">H", stream[4:6])[0]
    grid = struct.pack(">HIIIIIIIIH", 0, side, side, 0, 0, side, side, 0, 0, components) + b"\7\1\1" * components
    rest = bytearray(stream[4 + size:stream.index(b"\xff\x93") + 2])
    tile = rest.index(b"\xff\x90") + 6
    rest[tile:tile + 4] = bytes(4)   # it ends with the file
    return stream[:4] + struct.pack(">H", len(grid) + 2) + grid + rest + bytes(2 * components) + b"\xff\xd9"


def decoder(folder, limit=None):
    """Returns what decodes bytes, within a limit on the memory."""
    os.environ["TENON_MEMORY"] = limit or "100G"
    ports = [[helper.make_tensor_value_info(n, TensorProto.UINT8, d)]
             for n, d in (("x", ["n"]), ("y", ["h", "w", 3]))]
    graph = helper.make_graph([helper.make_node("ImageDecoder", ["x"], ["y"])], "pictures", *ports)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    loaded = Library(folder).load(model.SerializeToString())
    return lambda data: loaded.run({"x": np.frombuffer(data, np.uint8)})["y"]


def main(folder):
    check, decode = Checks(), decoder(folder)

    def refused(what, status, needed, by, data):
        try:
            by(data)
        except Refused as e:
            check(what, e.status == status and needed in e.message, str(e))
        else:
            check(what, False, "it is not refused")

    check("the picture", decode(RGB).shape == (2, 3, 3))
    refused("CMYK", "ERR_UNSUPPORTED", "CMYK", decode, CMYK)
    refused("RGB that is said to be CMYK", "ERR_UNSUPPORTED", "CMYK", decode, of_colours(12))
    refused("e-YCC", "ERR_UNSUPPORTED", "e-YCC", decode, of_colours(24))
    check("4 components", decode(black(16, 4)).shape == (16, 16, 3))
    refused("5 components", "ERR_UNSUPPORTED", "5 components", decode, black(16, 5))
    large = black(SIDE, 1)
    check("a large picture", decode(large).shape == (SIDE, SIDE, 3))
    check("a large picture within a limit", decoder(folder, "96M")(large).shape == (SIDE, SIDE, 3))
    for limit, what in (("24M", "samples"), ("8M", "pixels")):
        refused(f"{what} beyond a limit", "ERR_MEMORY", "out of memory", decoder(folder, limit), large)
    return check.end(10)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
