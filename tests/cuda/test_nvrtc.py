#!/usr/bin/env python3
"""Compiles kernels of workloads and of the operator suite by NVRTC for two generations of GPUs, and
compares registers, local memory (spilled registers and private arrays) and shared memory of the
workloads' kernels, as the cubins state them, with registers.txt beside this file.

    test_nvrtc.py BUILD_FOLDER [--record]

--record writes registers.txt. NVRTC is that of TENON_NVRTC, or that of scripts/setup.sh --cuda; it is
skipped (77) without one. Of the operator suite, one case in TENON_TEST_SHARE is compiled (default 40,
with TENON_LONG 1: all); another version of NVRTC than the recorded one has other registers, which are
not compared. Sources come from the stand-in for NVRTC (stand_in.h).
"""

import ctypes
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
BUILD = pathlib.Path(sys.argv[1]).resolve()
TABLE = HERE / "registers.txt"
TARGETS = ("sm_80", "sm_90a")
WORKLOADS = (
    "add:1024x1024", "gelu:1024x1024", "copy:64M", "transpose:1024x1024", "sum:1024x1024:1",
    "sum:1024x1024:0", "softmax:1024x1024", "layernorm:1024x1024", "matmul:1024x1024x1024",
    "matmul:1024x1024x1024:bf16", "matmul:1024x1024x1024:i8", "conv:8,64,56,56,64,3,1,1",
    "attention:8x256x64", "add:1024x1024:f16",
)
HEAD = "workload kernel " + " ".join(f"{t}: registers local shared" for t in TARGETS)
OPTIONS = re.findall(r'"(--[^"=]+=[^"%]+)"',
                     (SOURCE / "src/device/cuda/cuda_compiler.c").read_text())


def find_nvrtc():
    given = os.environ.get("TENON_NVRTC")
    found = SOURCE.glob("build/cuda/venv/lib/python3*/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.1?")
    return given or next((str(path) for path in found), None)


class Nvrtc:
    """NVRTC, by its functions in C."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.nvrtcGetErrorString.restype = ctypes.c_char_p
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        self.version = f"{major.value}.{minor.value}"

    def compile(self, text, target):
        """Returns the cubin, or raises with the log."""
        program, size = ctypes.c_void_p(), ctypes.c_size_t()
        options = [word.encode() for word in (*OPTIONS, f"--gpu-architecture={target}")]
        self.library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"k.cu", 0, None, None)
        status = self.library.nvrtcCompileProgram(program, len(options),
                                                  (ctypes.c_char_p * len(options))(*options))
        kind = "ProgramLog" if status else "CUBIN"
        self.library[f"nvrtcGet{kind}Size"](program, ctypes.byref(size))
        data = ctypes.create_string_buffer(size.value)
        self.library[f"nvrtcGet{kind}"](program, data)
        self.library.nvrtcDestroyProgram(ctypes.byref(program))
        if status:
            raise RuntimeError(f"{target}: {self.library.nvrtcGetErrorString(status).decode()}: "
                               f"{data.value.decode()}\n{text}")
        return data.raw


# Attributes of .nv.info: a format, an attribute, and, by the format, two bytes or a size and a value.
WITH_SIZE, FRAME_BYTES, REGISTERS = 4, 0x11, 0x2f


def usage(cubin):
    """Returns {kernel: (registers, bytes of local memory, bytes of shared memory)}."""
    at, _, _, _, _, width, n, names_at = struct.unpack_from("<QIHHHHHH", cubin, 40)
    sections = [struct.unpack_from("<IIQQQQIIQQ", cubin, at + i * width) for i in range(n)]

    def text(table, offset):
        start = table[4] + offset
        return cubin[start:cubin.index(b"\0", start)].decode()

    named = {text(sections[names_at], s[0]): s for s in sections}
    symbols, strings = named[".symtab"], named[".strtab"]
    found = {}

    def note(symbol, place, value):
        name = text(strings, struct.unpack_from("<I", cubin, symbols[4] + symbol * 24)[0])
        found.setdefault(name, [0, 0, 0])[place] = value

    info = named[".nv.info"]
    where, end = info[4], info[4] + info[5]
    while where < end:
        form, attribute, size = struct.unpack_from("<BBH", cubin, where)
        where += 4
        if form != WITH_SIZE:
            continue
        if attribute in (FRAME_BYTES, REGISTERS):
            symbol, value = struct.unpack_from("<II", cubin, where)
            note(symbol, 0 if attribute == REGISTERS else 1, value)
        where += size
    for name, use in found.items():
        use[2] = named.get(f".nv.shared.{name}", (0,) * 10)[5]
    return {name: tuple(use) for name, use in found.items() if f".text.{name}" in named}


def run(command, sources, **changes):
    environment = {**os.environ, "LD_LIBRARY_PATH": str(BUILD / "tests/cuda"), "TENON_DEVICE": "CUDA",
                   "TENON_NVRTC": "", "TENON_CACHE": "off", "STAND_IN_SOURCES": str(sources), **changes}
    return subprocess.run(command, env=environment, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)


def collected(folder):
    """Returns the sources in a folder in the order in which they were compiled."""
    paths = sorted(folder.glob("*.cu"), key=lambda p: [int(n) for n in re.findall(r"\d+", p.stem)])
    return [path.read_text() for path in paths]


def sources_of_workload(workload):
    """Kernels are compiled, and not loaded: they would take long on a processor."""
    with tempfile.TemporaryDirectory() as folder:
        done = run([BUILD / "tenon", "bench", workload, "--repeat", "1", "--warmup", "0"], folder,
                   STAND_IN_FAIL="cuModuleLoadDataEx:209")
        texts = collected(pathlib.Path(folder))
    if not texts:
        sys.exit(f"{workload}: nothing was compiled: {done.stdout}")
    return texts


def rows_of_workloads(nvrtc):
    rows = []
    for workload in WORKLOADS:
        number = 0
        for text in sources_of_workload(workload):
            by_target = [usage(nvrtc.compile(text, target)) for target in TARGETS]
            for kernel in by_target[0]:
                number += 1
                uses = [" ".join(map(str, by[kernel])) for by in by_target]
                rows.append(f"{workload} {number} " + " ".join(uses))
    return rows


def check_suite(nvrtc):
    """Compiles kernels of the operator suite: none of it is refused."""
    share = os.environ.get("TENON_TEST_SHARE") or ("1" if os.environ.get("TENON_LONG") else "40")
    with tempfile.TemporaryDirectory() as folder:
        for suite in sorted((SOURCE / "tests/ops").glob("test_*.py")):
            if suite.stem == "test_coverage":
                continue
            done = run([sys.executable, suite, BUILD], folder, TENON_TEST_SHARE=share,
                       TENON_TEST_RECORD=os.path.join(folder, "results"))
            if done.returncode:
                sys.exit(f"{suite.name} fails:\n{done.stdout}")
        texts = sorted(set(collected(pathlib.Path(folder))))
    for target in TARGETS:
        uses = [use for text in texts for use in usage(nvrtc.compile(text, target)).values()]
        print(f"{target}: {len(uses)} kernels of the operator suite, {max(u[0] for u in uses)} registers "
              f"at most, {sum(u[1] > 0 for u in uses)} with local memory", flush=True)
    if len(texts) < 30:
        sys.exit(f"the suite has {len(texts)} kernels: too few")


def check_backend(path):
    """The backend itself compiles by NVRTC, whose code the stand-in driver does not know."""
    with tempfile.TemporaryDirectory() as folder:
        done = run([BUILD / "tenon", "bench", "softmax:16x64", "--repeat", "1"], folder,
                   TENON_NVRTC=path)
    if "[no image of the stand-in]" not in done.stdout:
        sys.exit(f"the backend does not compile by {path}: {done.stdout}")


def main():
    path = find_nvrtc()
    if not path or os.environ.get("TENON_SANITIZE"):
        print("SKIPPED: no NVRTC to compile kernels for GPUs (scripts/setup.sh --cuda installs it, or "
              "TENON_NVRTC names it), or a build with sanitizers")
        sys.exit(77)
    nvrtc = Nvrtc(path)
    check_backend(path)
    first = (f"Registers, bytes of local memory (spills, private arrays) and of shared memory by NVRTC "
             f"{nvrtc.version}, for {' and '.join(TARGETS)}; written by test_nvrtc.py --record")
    rows = [first, HEAD, *rows_of_workloads(nvrtc)]
    if "--record" in sys.argv[2:]:
        TABLE.write_text("\n".join(rows) + "\n")
        return
    recorded = TABLE.read_text().splitlines()
    if recorded[0] != first:
        print(f"NVRTC {nvrtc.version} is not the recorded version: registers are not compared")
    elif recorded != rows:
        differ = [f"{old} -> {new}" for old, new in zip(recorded, rows) if old != new]
        sys.exit("kernels take other registers or memory than recorded (--record accepts them):\n"
                 + "\n".join(differ or ["other numbers of kernels"]))
    check_suite(nvrtc)


main()
