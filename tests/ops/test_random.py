"""Tests random numbers: the bits against Threefry-2x32-20 written in Python, and the distributions
of uniform, normal and integer numbers by their statistics."""

import math

import numpy as np

from binding import FLOATS, INTEGERS, Cases, dtype

c = Cases()
tn = c.tn
MASK = 0xFFFFFFFF
ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)


def threefry(key, x):
    """Computes Threefry-2x32-20 (Salmon, Moraes, Dror and Shaw, 2011) on arrays of u64 that hold
    u32."""
    keys = (*key, 0x1BD11BDA ^ key[0] ^ key[1])
    x0, x1 = (x[0] + keys[0]) & MASK, (x[1] + keys[1]) & MASK
    for i in range(20):
        r = ROTATIONS[i % 8]
        x0 = (x0 + x1) & MASK
        x1 = ((x1 << r | x1 >> (32 - r)) & MASK) ^ x0
        if i % 4 == 3:
            n = i // 4 + 1
            x0 = (x0 + keys[n % 3]) & MASK
            x1 = (x1 + keys[(n + 1) % 3] + n) & MASK
    return x0, x1


# The published answers (kat_vectors of Random123) for 20 rounds.
for key, counter, e in [((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
                        ((MASK, MASK), (MASK, MASK), (0x1CB996FC, 0xBB002BE7)),
                        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3),
                         (0xC4923A9C, 0x483DF7A0))]:
    c.true("the reference itself", threefry(key, counter) == e)


def words(seed, call, size):
    key = threefry((seed & MASK, seed >> 32), (call & MASK, call >> 32))
    i = np.arange(size, dtype=np.uint64)
    return threefry(tuple(int(k) for k in key), (i & MASK, i >> np.uint64(32)))


def together(w):
    return w[0] | w[1] << np.uint64(32)


BITS = {"f32": 24, "f64": 53, "f16": 11, "bf16": 8}


def rand(w, kind):
    p = BITS[kind]
    n = w[0] >> np.uint64(32 - p) if p <= 32 else together(w) >> np.uint64(64 - p)
    return (n.astype(np.float64) * 2.0**-p).astype(dtype(kind))


def randn(w):
    u, v = (w[0].astype(np.float64) + 0.5) * 2.0**-32, w[1].astype(np.float64) * 2.0**-32
    return np.sqrt(-2 * np.log(u)) * np.cos(2 * np.pi * v)


for seed in (0, 1, 0xDEADBEEF12345678):
    tn.seed(seed)
    for call, kind in enumerate(FLOATS):
        c.check(f"rand {kind} {seed}", tn.rand((3, 5, 7), kind),
                rand(words(seed, call, 105), kind).reshape(3, 5, 7))
    for call, (kind, low, high) in enumerate(
            [("i8", -128, 128), ("u8", 3, 4), ("i64", -2**63, 2**63 - 1), ("u64", 0, 2**63 - 1),
             ("i32", -5, 1000), ("i64", 0, 2**32), ("i64", -2**62, 2**63 - 1)], len(FLOATS)):
        e = np.array([low + (int(k) * (high - low) >> 64)
                      for k in together(words(seed, call, 60))]).astype(dtype(kind))
        c.check(f"randint {kind} {low} {high} {seed}", tn.randint((60,), kind, low, high), e)
    for call, kind in enumerate(FLOATS, len(FLOATS) + 7):
        e = randn(words(seed, call, 64)).astype(dtype(kind)).reshape(4, 16)
        c.check(f"randn {kind} {seed}", tn.randn((4, 16), kind), e, terms=2 * math.pi)
tn.seed(1)
c.check("the same again", tn.rand((3, 5, 7), "f32"), rand(words(1, 0, 105), "f32").reshape(3, 5, 7))
c.check("another call", tn.rand((105,), "f32"), rand(words(1, 1, 105), "f32"))
c.check("nothing", tn.randn((0, 3), "f32"), np.zeros((0, 3), np.float32))
c.check("a scalar", tn.rand((), "f64"), rand(words(1, 3, 1), "f64")[0])
c.flush()

# ---- Distributions ----

COUNT = 40000
tn.seed(42)
for kind in FLOATS:
    x = tn.read(tn.rand((COUNT,), kind)).astype(np.float64)
    c.true(f"rand {kind} in [0, 1)", x.min() >= 0 and x.max() < 1)
    half = 0.5 * (1 - 2.0**-BITS[kind])
    c.true(f"rand {kind} mean", abs(x.mean() - half) < 5 / math.sqrt(12 * COUNT))
    counts = np.histogram(x, 16, (0, 1))[0]
    c.true(f"rand {kind} evenly", ((counts - COUNT / 16) ** 2).sum() / (COUNT / 16) < 50)
    y = tn.read(tn.randn((COUNT,), kind)).astype(np.float64)
    c.true(f"randn {kind} mean", abs(y.mean()) < 5 / math.sqrt(COUNT))
    c.true(f"randn {kind} variance", abs(y.var() - 1) < 5 * math.sqrt(2 / COUNT))
    c.true(f"randn {kind} tails", abs(np.mean(np.abs(y) > 2) - 0.0455) < 0.006)
    c.true(f"{kind} independent", abs(np.corrcoef(x, y)[0, 1]) < 5 / math.sqrt(COUNT))
    c.true(f"{kind} neighbours", abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 5 / math.sqrt(COUNT))
x = tn.read(tn.randint((COUNT,), "i16", -3, 4))
c.true("randint bounds", x.min() == -3 and x.max() == 3)
c.true("randint evenly", ((np.bincount(x + 3) - COUNT / 7) ** 2).sum() / (COUNT / 7) < 30)
x = tn.read(tn.randint((COUNT,), "i64", -2**62, 2**63 - 1)).astype(np.float64)
counts = np.histogram(x, 3, (-2.0**62, 2.0**63))[0]
c.true("wide randint evenly", ((counts - COUNT / 3) ** 2).sum() / (COUNT / 3) < 20)

for kind, low, high in [("u8", -1, 5), ("u8", 0, 257), ("i8", 5, 5), ("i32", 7, -7)]:
    c.refuse(f"randint {kind} {low} {high}", tn.randint((2,), kind, low, high), "ERR_ARGUMENT",
             kind)
c.refuse("randint of floats", tn.randint((2,), "f32", 0, 2), "ERR_DTYPE", "f32")
for kind in ("bool", INTEGERS[0]):
    c.refuse(f"rand of {kind}", tn.rand((2,), kind), "ERR_DTYPE", kind)
    c.refuse(f"randn of {kind}", tn.randn((2,), kind), "ERR_DTYPE", kind)
c.refuse("rand of -1", tn.rand((-1,), "f32"), "ERR_SHAPE", "negative")

c.done(least=90)
