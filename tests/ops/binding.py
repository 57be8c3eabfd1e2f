"""Wraps Tenon's C interface in Python (ctypes) for the tests of operators; prototypes are parsed
from the headers.

`Tenon` calls the library (tn.add(x, y) is tn_add); `Cases` collects tensors with what they should
be, computes all of them in few tn_realize calls, and compares.

TENON_TEST_BACKEND, "PATH:DEVICE", names a shared object with a backend (see tests/backend) and the
device to run on instead of the CPU.

TENON_TEST_RECORD names a file that gets a hash of each result, for tests/pairs; then one case in
TENON_TEST_SHARE is checked, chosen by TENON_TEST_SEED.
"""

import ctypes
import hashlib
import math
import os
import re
import sys
from pathlib import Path

import ml_dtypes
import numpy as np

HEADERS = Path(__file__).resolve().parents[2] / "include" / "tenon"
MAX_RANK = 12

DTYPES = {
    "f32": (1, np.float32), "u8": (2, np.uint8), "i8": (3, np.int8), "u16": (4, np.uint16),
    "i16": (5, np.int16), "i32": (6, np.int32), "i64": (7, np.int64), "bool": (9, np.bool_),
    "f16": (10, np.float16), "f64": (11, np.float64), "u32": (12, np.uint32),
    "u64": (13, np.uint64), "bf16": (16, ml_dtypes.bfloat16),
}
STORAGE = {
    "f8e4m3fn": (17, ml_dtypes.float8_e4m3fn), "f8e4m3fnuz": (18, ml_dtypes.float8_e4m3fnuz),
    "f8e5m2": (19, ml_dtypes.float8_e5m2), "f8e5m2fnuz": (20, ml_dtypes.float8_e5m2fnuz),
    "u4": (21, ml_dtypes.uint4), "i4": (22, ml_dtypes.int4),
    "f4e2m1": (23, ml_dtypes.float4_e2m1fn), "f8e8m0": (24, ml_dtypes.float8_e8m0fnu),
    "u2": (25, ml_dtypes.uint2), "i2": (26, ml_dtypes.int2),
}
ALL = DTYPES | STORAGE
NUMBER = {np.dtype(t): n for n, t in ALL.values()}
NUMPY = {n: np.dtype(t) for n, t in ALL.values()}
FLOATS = ["f32", "f64", "f16", "bf16"]
SIGNED = ["i8", "i16", "i32", "i64"]
UNSIGNED = ["u8", "u16", "u32", "u64"]
INTEGERS = SIGNED + UNSIGNED
STATUS = {name: int(number) for name, number in
          re.findall(r"X\(TN_(\w+), (\d+),", (HEADERS / "status.h").read_text())}
END = 2**63 - 1


def dtype(name):
    return np.dtype(ALL[name][1])


class Shape(ctypes.Structure):
    _fields_ = [("rank", ctypes.c_int32), ("size", ctypes.c_int64 * MAX_RANK)]


class Axes(ctypes.Structure):
    _fields_ = [("count", ctypes.c_int32), ("axis", ctypes.c_int32 * MAX_RANK)]


class Type(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int32), ("shape", Shape)]


class ConvDesc(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("stride", ctypes.c_int64 * 3),
                ("dilation", ctypes.c_int64 * 3), ("pad_low", ctypes.c_int64 * 3),
                ("pad_high", ctypes.c_int64 * 3), ("output_pad", ctypes.c_int64 * 3),
                ("groups", ctypes.c_int64)]


class PoolDesc(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("kernel", ctypes.c_int64 * 3),
                ("stride", ctypes.c_int64 * 3), ("dilation", ctypes.c_int64 * 3),
                ("pad_low", ctypes.c_int64 * 3), ("pad_high", ctypes.c_int64 * 3),
                ("ceil_mode", ctypes.c_bool), ("count_include_pad", ctypes.c_bool)]


def descriptor(kind, init, fields):
    desc = kind(size=ctypes.sizeof(kind), **init)
    for name, v in fields.items():
        field = getattr(desc, name)
        if isinstance(field, ctypes.Array):
            for i, item in enumerate(v):
                field[i] = item
        else:
            setattr(desc, name, v)
    return desc


def conv_desc(**fields):
    init = dict(stride=(1, 1, 1), dilation=(1, 1, 1), groups=1)
    return descriptor(ConvDesc, init, fields)


def pool_desc(**fields):
    init = dict(kernel=(1, 1, 1), dilation=(1, 1, 1), count_include_pad=True)
    return descriptor(PoolDesc, init, fields)


def as_shape(sizes):
    sizes = [sizes] if np.isscalar(sizes) else list(sizes)
    return Shape(len(sizes), (ctypes.c_int64 * MAX_RANK)(*sizes))


def as_axes(axes):
    if isinstance(axes, Axes):
        return axes
    if axes is None:
        return Axes(-1, (ctypes.c_int32 * MAX_RANK)())
    axes = [axes] if np.isscalar(axes) else list(axes)
    return Axes(len(axes), (ctypes.c_int32 * MAX_RANK)(*axes))


# ---- Prototypes ----

def without_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def listed(text, name):
    """Returns the names and rules of an X-macro list."""
    body = re.search(r"#define %s\(X\)((?:.*\\\n)*.*\n)" % name, text).group(1)
    return re.findall(r"X\((\w+), (\w+),", body)


OPS_TEXT = without_comments((HEADERS / "ops.h").read_text())
UNARY = listed(OPS_TEXT, "TN_UNARY_LIST")
BINARY = listed(OPS_TEXT, "TN_BINARY_LIST")
REDUCE = listed(OPS_TEXT, "TN_REDUCE_LIST")


def declared(header):
    """Returns {name: (result, [parameter types])} of the functions declared in a header."""
    text = re.sub(r"^#define(?:.*\\\n)*.*\n", "", without_comments((HEADERS / header).read_text()),
                  flags=re.M)
    found = {}
    for result, name, parameters in re.findall(r"TN_API\s+([\w\s*]+?)\s*\btn_(\w+)\(([^;]*)\);",
                                               text):
        types = [re.sub(r"\s+", " ", p).strip() for p in parameters.split(",")]
        found[name] = (result.strip(), [] if types == ["void"] else types)
    return found


OPS = declared("ops.h")
OPS.update({name: ("tn_tensor *", ["tn_tensor *x"]) for name, _ in UNARY})
OPS.update({name: ("tn_tensor *", ["tn_tensor *a", "tn_tensor *b"]) for name, _ in BINARY})
OPS.update({name: ("tn_tensor *", ["tn_tensor *x", "tn_axes axes", "bool keepdims"])
            for name, _ in REDUCE})
TENSOR = declared("tensor.h")
BY_VALUE = {"tn_shape": Shape, "tn_axes": Axes, "tn_type": Type, "double": ctypes.c_double,
            "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64, "tn_dim": ctypes.c_int64,
            "size_t": ctypes.c_size_t, "bool": ctypes.c_bool, "int": ctypes.c_int,
            "tn_dtype": ctypes.c_int32, "tn_pad_mode": ctypes.c_int32, "tn_status": ctypes.c_int32,
            "void": None}


def is_known(text):
    return "*" in text or "[" in text or text.replace("const ", "").split()[0] in BY_VALUE


def c_type(text):
    if "*" in text or "[" in text:
        return ctypes.c_void_p
    return BY_VALUE[text.replace("const ", "").split()[0]]


class Tensor:
    """A handle of the library, freed with its context."""

    def __init__(self, tn, handle):
        self.tn, self.handle = tn, handle

    @property
    def type(self):
        t = self.tn.lib.tn_type_of(self.handle)
        return NUMPY.get(t.dtype), tuple(t.shape.size[:t.shape.rank])


class Failed(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status, self.message = status, message


class Tenon:
    def __init__(self, folder):
        if os.environ.get("TENON_SANITIZE"):
            print("skipped: a library with sanitizers does not load into Python")
            sys.exit(77)
        self.lib = ctypes.CDLL(str(Path(folder).resolve() / "libtenon.so"))
        self.lib.tn_open.restype = ctypes.c_void_p
        self.lib.tn_open.argtypes = [ctypes.c_void_p]
        self.lib.tn_close.argtypes = [ctypes.c_void_p]
        self.lib.tn_message.restype = ctypes.c_char_p
        self.lib.tn_message.argtypes = [ctypes.c_void_p]
        self.of_context, self.called = set(), set()
        for name, (result, parameters) in {**TENSOR, **OPS}.items():
            if not all(is_known(t) for t in [result, *parameters]):
                continue  # of custom operations
            function = getattr(self.lib, "tn_" + name)
            function.restype = c_type(result) if result != "tn_tensor *" else ctypes.c_void_p
            function.argtypes = [c_type(p) for p in parameters]
            if parameters and parameters[0].startswith("tn_context *"):
                self.of_context.add(name)
        if os.environ.get("TENON_TEST_BACKEND"):
            self.add_backend(*os.environ["TENON_TEST_BACKEND"].rsplit(":", 1))
        self.context = self.lib.tn_open(None)

    def add_backend(self, path, device):
        """Opens further contexts on a device of a backend from a shared object."""
        os.environ["TENON_BACKEND"] = path
        os.environ["TENON_DEVICE"] = device

    def device(self):
        """Returns the name of the context's device."""
        device = ctypes.c_void_p()
        self.lib.tn_device_name.restype = ctypes.c_char_p
        self.lib.tn_device_name.argtypes = [ctypes.c_void_p]
        self.lib.tn_device_open.argtypes = [ctypes.c_void_p] * 4
        self.lib.tn_device_open(self.context, None, ctypes.addressof(device), None)
        return (self.lib.tn_device_name(device) or b"").decode() if device else ""

    def close(self):
        return self.lib.tn_close(self.context)

    def message(self):
        return (self.lib.tn_message(self.context) or b"").decode()

    def argument(self, kind, v):
        if isinstance(v, Tensor):
            return v.handle
        if kind.startswith("tn_shape"):
            return as_shape(v)
        if kind.startswith("tn_axes"):
            return as_axes(v)
        if kind.startswith("tn_dtype"):
            return ALL[v][0] if isinstance(v, str) else v
        if isinstance(v, ctypes.Structure):
            return ctypes.addressof(v)
        return v

    def __getattr__(self, name):
        result, kinds = (OPS.get(name) or TENSOR[name])
        function = getattr(self.lib, "tn_" + name)

        def call(*args):
            self.called.add(name)
            if name in self.of_context:
                args = (self.context, *args)
            assert len(args) == len(kinds), f"{name} takes {kinds}"
            r = function(*[self.argument(k, v) for k, v in zip(kinds, args)])
            return Tensor(self, r) if result == "tn_tensor *" else r

        return call

    def of(self, array):
        """Makes a tensor with a copy of an array."""
        self.called.add("from_host")
        array = np.array(array, order="C", copy=True)
        handle = self.lib.tn_from_host(self.context, as_shape(array.shape), NUMBER[array.dtype],
                                       array.ctypes.data, array.nbytes)
        return Tensor(self, handle)

    def many(self, tensors):
        return (ctypes.c_void_p * len(tensors))(*[t.handle for t in tensors])

    def concat_of(self, tensors, axis):
        handles = self.many(tensors)
        return self.concat(ctypes.addressof(handles), len(tensors), axis)

    def stack_of(self, tensors, axis):
        handles = self.many(tensors)
        return self.stack(ctypes.addressof(handles), len(tensors), axis)

    def split_into(self, x, axis, n, sizes=None):
        out = (ctypes.c_void_p * max(n, 1))()
        parts = (ctypes.c_int64 * len(sizes))(*sizes) if sizes is not None else None
        self.split(x, axis, ctypes.addressof(parts) if parts is not None else None,
                   ctypes.addressof(out), n)
        return [Tensor(self, out[i]) for i in range(n)]

    def run(self, tensors):
        status = self.lib.tn_realize(self.context, self.many(tensors), len(tensors))
        if status:
            raise Failed(status, self.message())

    def read(self, x):
        kind, shape = x.type
        if kind is None:
            raise Failed(0, self.message())
        out = np.zeros(shape, kind)
        status = self.lib.tn_read(x.handle, NUMBER[kind], out.ctypes.data, out.nbytes)
        if status:
            raise Failed(status, self.message())
        return out

    # The same values, laid out in other ways.

    def permuted(self, array):
        axes = list(range(array.ndim))[::-1]
        return self.permute(self.of(np.transpose(array, axes)), axes)

    def sliced(self, array):
        """Returns every second element of a larger array, backwards along the last axis."""
        wide = np.zeros([2 * n + 3 for n in array.shape], array.dtype)
        inner = tuple(slice(1, 1 + 2 * n, 2) for n in array.shape)
        wide[inner] = array[..., ::-1]
        x = self.of(wide)
        for axis, n in enumerate(array.shape):
            x = self.slice(x, axis, 1, 1 + 2 * n, 2)
        return self.flip(x, [-1])

    def expanded(self, row, times):
        return self.expand(self.of(row), (times, *row.shape))


# ---- Cases ----

NAMES = {np.dtype(t): name for name, (_, t) in ALL.items()}
HALVES = ("f16", "bf16")


def spacing(values, kind):
    """Returns the distance from each number to the next one of a type: one unit in the last
    place."""
    info = ml_dtypes.finfo(dtype(kind))
    exponent = np.frexp(np.maximum(np.abs(values), float(info.tiny)))[1] - 1
    return np.ldexp(1.0, exponent - info.nmant)


def close(actual, expected, kind, ulps, terms):
    """Returns where two arrays of floats, widened to f64, agree: NaN with NaN, infinities and zeros
    with those of their sign (a sum may be 0 of either sign), other numbers within `ulps`. Results
    computed in f32 and rounded once to 16 bits may be off by one more."""
    finite = np.isfinite(actual) & np.isfinite(expected)
    a, e = np.where(finite, actual, 0), np.where(finite, expected, 0)
    size = np.maximum(np.abs(e), np.where(np.isfinite(terms), terms, 0))
    allowed = ulps * spacing(size, "f32" if kind in HALVES else kind)
    if np.any(ulps) and kind in HALVES:
        allowed += spacing(e, kind)
    signs = (np.signbit(a) == np.signbit(e)) | (a != 0) | (e != 0) | (size > 0)
    same = (actual == expected) | np.isnan(actual) & np.isnan(expected)
    return np.where(finite, (np.abs(a - e) <= allowed) & signs, same)


def calls_of(folder, test):
    """Returns the file of a build folder that lists the functions called by a test."""
    return Path(folder) / "tests" / "ops-called" / f"{Path(test).stem}.txt"


def bits_of(array):
    """Returns a hash of an array's bits, where NaN is NaN."""
    if array.dtype in [dtype(kind) for kind in FLOATS]:
        array = np.where(np.isnan(array), np.array(np.nan, array.dtype), array)
    return hashlib.sha1(np.ascontiguousarray(array).tobytes()).hexdigest()


class Cases:
    def __init__(self, folder=None, batch=64):
        self.record = os.environ.get("TENON_TEST_RECORD")
        self.share = int(os.environ.get("TENON_TEST_SHARE", "1")) if self.record else 1
        self.number = int(os.environ.get("TENON_TEST_SEED", "0"))
        self.recorded, self.left_out = [], 0
        self.tn = Tenon(folder or sys.argv[1])
        self.rng = np.random.default_rng(7)
        self.batch, self.pending = batch, []
        self.passed, self.failures = 0, []

    # Inputs.

    def floats(self, shape, kind="f32", scale=1.0):
        return (self.rng.standard_normal(shape) * scale).astype(dtype(kind))

    def integers(self, shape, kind="i32", low=None, high=None):
        info = np.iinfo(dtype(kind))
        low = info.min if low is None else max(low, info.min)
        high = info.max if high is None else min(high, info.max)
        return self.rng.integers(low, high, shape, dtype(kind), endpoint=True)

    def some(self, shape, kind):
        """Returns small numbers of any type."""
        if kind == "bool":
            return self.rng.integers(0, 2, shape).astype(np.bool_)
        return self.floats(shape, kind) if kind in FLOATS else self.integers(shape, kind, -9, 9)

    # Expectations.

    def check(self, label, tensor, expected, ulps=None, terms=0):
        """Checks a tensor's type, shape and values, signs of zeros included. Floats may be `ulps`
        units in the last place off; for a sum these are units of `terms`, the sum of its terms'
        magnitudes, if that is larger (default 4)."""
        self.number += 1
        if self.number % self.share:
            self.left_out += 1
            return
        if ulps is None:
            ulps = 4 if np.any(terms) else 0
        self.pending.append((label, tensor, np.array(expected), ulps, terms))
        if len(self.pending) >= self.batch:
            self.flush()

    def fail(self, label, why):
        self.failures.append(f"{label}: {why}")

    def flush(self):
        pending, self.pending = self.pending, []
        good = []
        for case in pending:
            kind, shape = case[1].type
            if any(size > 2**44 for size in shape or ()):  # computed ones
                self.tn.run([case[1]])
                kind, shape = case[1].type
            if kind is None:
                self.fail(case[0], "is invalid: " + self.tn.message())
            elif kind != case[2].dtype or shape != case[2].shape:
                self.fail(case[0], f"is {kind}{list(shape)}, "
                                   f"not {case[2].dtype}{list(case[2].shape)}")
            else:
                good.append(case)
        try:
            if good:
                self.tn.run([case[1] for case in good])
        except Failed as e:
            self.fail(f"{len(good)} cases from {good[0][0]}", e.message)
            return
        for case in good:
            self.compare(*case)

    def compare(self, label, tensor, expected, ulps, terms):
        try:
            actual = self.tn.read(tensor)
        except Failed as e:
            return self.fail(label, e.message)
        kind = NAMES[expected.dtype]
        self.recorded.append(f"{label}\t{bits_of(actual)}")
        if kind in STORAGE:
            wide = [x.astype(np.float32) for x in (actual, expected)]
            a, e = actual, expected
            good = (actual.view(np.uint8) == expected.view(np.uint8)) | np.isnan(wide[0]) & np.isnan(wide[1])
        elif kind in FLOATS:
            a, e = actual.astype(np.float64), expected.astype(np.float64)
            good = close(a, e, kind, ulps, terms)
        else:
            a, e = actual, expected
            good = np.equal(a, e)
        if np.all(good):
            self.passed += 1
            return None
        at = tuple(int(i) for i in np.argwhere(~good)[0])
        return self.fail(label, f"at {list(at)} of {list(e.shape)} {kind} it is {a[at]!r}, not "
                                f"{e[at]!r}; {np.count_nonzero(~good)} of {e.size} differ")

    def refuse(self, label, tensor, status, *words):
        """Checks that a tensor is invalid for this reason, with these words in the message."""
        if tensor.handle is None or tensor.type[0] is not None:
            return self.fail(label, "was not refused")
        one = ctypes.c_float()
        got = self.tn.lib.tn_read(tensor.handle, 1, ctypes.addressof(one), 4)
        message = self.tn.message()
        if got != STATUS[status]:
            return self.fail(label, f"is refused with status {got}, not {status}: {message}")
        missing = [w for w in words if w not in message]
        if missing:
            return self.fail(label, f"message lacks {missing}: {message}")
        self.passed += 1
        return None

    def true(self, label, holds, why=""):
        if holds:
            self.passed += 1
        else:
            self.fail(label, why or "does not hold")

    def done(self, least):
        """Ends the process; fewer than `least` cases mean that some were not run."""
        self.flush()
        device = self.tn.device()
        asked = os.environ.get("TENON_TEST_BACKEND", "").rpartition(":")[2]
        if not device.startswith(asked):
            self.fail("the device", f"it is {device}, not {asked}")
        self.true("tn_close", self.tn.close() == 0)
        if self.record:
            Path(self.record).write_text("\n".join(self.recorded))
        elif not asked:
            calls = calls_of(sys.argv[1], sys.argv[0])
            calls.parent.mkdir(exist_ok=True)
            calls.write_text("\n".join(sorted(self.tn.called)))
        for f in self.failures[:40]:
            print("FAILED", f)
        print(f"{self.passed} passed, {len(self.failures)} failed on {device}")
        sys.exit(bool(self.failures) or self.passed + self.left_out < least)
