#!/usr/bin/env python3
"""Finds the coefficients of src/rules/transcendental.rules.

    tools/minimax.py [NAME ...]     all of them, or those that are named

Each polynomial P(t) of a fixed degree makes max |w(t) (P(t) - g(t))| over an interval as small as
it can be (Remez's exchange, in 60 digits); then the coefficients are rounded to the type. Prints them
from the constant one on, with the error that is left before arithmetic rounds. Needs mpmath.
"""

import sys

from mpmath import mp, mpf, cos, cosh, erf, erfc, exp, expm1, log, log1p, lu_solve, matrix, pi
from mpmath import asin, atan, sin, sinh, sqrt, tanh

mp.dps = 60
GRID = 600


def extrema(error, a, b):
    """Returns the points of largest |error| between changes of its sign."""
    points = [(a + b) / 2 + (b - a) / 2 * cos(pi * (GRID - i) / GRID) for i in range(GRID + 1)]
    best, sign = [], 0
    for t in points:
        e = error(t)
        s = 1 if e > 0 else -1
        if s != sign:
            best.append((abs(e), t))
            sign = s
        elif abs(e) > best[-1][0]:
            best[-1] = (abs(e), t)
    return best


def value(c, t):
    return sum(v * t**k for k, v in enumerate(c))


def fit(g, w, a, b, degree):
    """Returns the coefficients of the best polynomial, unrounded."""
    n = degree + 1
    at = [(a + b) / 2 + (b - a) / 2 * cos(pi * (n - i) / n) for i in range(n + 1)]
    for _ in range(12):
        rows, right = matrix(n + 1, n + 1), matrix(n + 1, 1)
        for i, t in enumerate(at):
            for k in range(n):
                rows[i, k] = t**k
            rows[i, n] = (-1) ** i / w(t)
            right[i] = g(t)
        c = list(lu_solve(rows, right))[:n]
        best = extrema(lambda t, c=c: w(t) * (value(c, t) - g(t)), a, b)
        while len(best) > n + 1:
            best.pop(0 if best[0][0] < best[-1][0] else -1)
        if len(best) < n + 1:
            break
        at = [t for _, t in best]
        if max(e for e, _ in best) < min(e for e, _ in best) * mpf("1.01"):
            break
    return c


def rounded(v, bits):
    m, e = mp.frexp(v)
    return mp.ldexp(mp.nint(m * 2**bits), e - bits)


def hexadecimal(v):
    digits, exponent = float(v).hex().replace("p+", "p").split("p")
    return digits.rstrip("0").rstrip(".") + "p" + exponent


def polynomial(g, weight, a, b, degree, bits, ratio=1024):
    """Returns rounded coefficients and their error."""
    least = max(abs(weight(a)), abs(weight(b))) / ratio  # where the weight vanishes

    def w(t):
        return max(abs(weight(t)), least)

    c = [rounded(v, bits) for v in fit(g, w, a, b, degree)]
    return c, max(e for e, _ in extrema(lambda t: w(t) * (value(c, t) - g(t)), a, b))


def even(f, first, power):
    """Returns (f(x) - first·x) / x^power as a function of t = x²."""
    return lambda t: (f(sqrt(t)) - first * sqrt(t)) / sqrt(t) ** power


def even_weight(f):
    """Returns the weight that makes an error of f(x) / x, as a function of t = x², relative."""
    return lambda t: sqrt(t) / f(sqrt(t))


def log_rest(f):
    return (log1p(f) - f + f * f / 2) / f**3


def atanh_rest(t):
    s = sqrt(t)
    return (log((1 + s) / (1 - s)) - 2 * s) / s**3


def root_of_erfc(n):
    """Returns erfc^(1/n), and the weight of its errors in erfc."""
    return lambda x: erfc(x) ** (mpf(1) / n), lambda x: n * erfc(x) ** (1 - mpf(1) / n)


TINY = mpf(10) ** -12
STEEP = mpf("1.125")
LN2 = log(mpf(2))
SMALL, LARGE = sqrt(mpf(0.5)) - 1, sqrt(mpf(2)) - 1
OCTANT = pi / 4 * mpf("1.001")
T = LARGE * mpf("1.0001")

# name: (g, weight, from, to, degree in f32, degree in f64). The weight makes errors relative to
# the function that the polynomial is a part of; a weight below 1/1024 (or the inverse of a last
# number) of the greater one at the ends counts as that.
TABLE = {
    # exp(r) = 1 + r + r² P(r)
    "exp": (lambda r: (expm1(r) - r) / r**2, lambda r: r**2 / exp(r), -LN2 * 0.501, LN2 * 0.503, 4, 10),
    # 2^r = 1 + r P(r)
    "exp2": (lambda r: expm1(r * LN2) / r, lambda r: r, -mpf(0.5), mpf(0.501), 5, 11),
    # log(1 + f) = f - f²/2 + f³ P(f)
    "log": (log_rest, lambda f: f**3 / log1p(f), SMALL, LARGE, 7, 19),
    # sin r = r + r³ P(r²); cos r = 1 - r²/2 + r⁴ P(r²)
    "sin": (even(sin, 1, 3), lambda t: t, TINY, OCTANT**2, 2, 5),
    "cos": (lambda t: (cos(sqrt(t)) - 1 + t / 2) / t**2, lambda t: t**2, TINY, OCTANT**2, 2, 5),
    # asin x = x + x³ P(x²), |x| ≤ 1/2; atan alike, |x| ≤ tan(π/8); sinh, |x| ≤ 1; tanh, |x| < 5/8
    "asin": (even(asin, 1, 3), lambda t: t, TINY, mpf(0.25), 4, 12),
    "atan": (even(atan, 1, 3), lambda t: t, TINY, T**2, 4, 12),
    "sinh": (even(sinh, 1, 3), lambda t: t, TINY, mpf(1), 3, 7),
    "tanh": (even(tanh, 1, 3), lambda t: t, TINY, mpf(0.625) ** 2, 4, 12),
    # erf x = x + x P(x²), |x| < 9/8; beyond, 1 - P(x)⁴ (f32), 1 - P(x)⁸ (f64), until it is 1
    "erf": (even(erf, 1, 1), even_weight(erf), TINY, STEEP**2, 6, 12),
    "erfc-f32": (*root_of_erfc(4), STEEP, mpf("3.92"), 7, 0),
    "erfc-f64": (*root_of_erfc(8), STEEP, mpf("5.9375"), 0, 17, 2**40),
    # log((1 + s)/(1 - s)) = 2 s + s³ P(s²)
    "atanh-part": (atanh_rest, lambda t: t, TINY, mpf("0.0295"), 0, 8),
}


def main():
    for name in sys.argv[1:] or TABLE:
        g, w, a, b, single, double, *ratio = TABLE[name]
        for type_name, degree, bits in (("f32", single, 24), ("f64", double, 53)):
            if not degree:
                continue
            c, error = polynomial(g, w, mpf(a), mpf(b), degree, bits, *ratio)
            print(f"{name} {type_name}: error 2^{mp.nstr(log(error) / LN2, 4)}")
            print("   ", " ".join(hexadecimal(v) for v in c))


if __name__ == "__main__":
    main()
