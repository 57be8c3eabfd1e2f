"""Checks that the tests of the benchmark share: each prints a line, and `failures` keeps the names of
those that failed."""

failures = []


def check(what, holds, why=""):
    print("ok" if holds else "FAILED", what, "" if holds else why)
    if not holds:
        failures.append(what)


def equal(what, actual, expected):
    check(what, actual == expected, f"{actual!r} is not {expected!r}")


def refused(what, call, error, *words):
    """Checks that a call raises an error whose text has these words."""
    try:
        got = call()
    except error as e:
        check(what, all(w in str(e) for w in words), str(e))
    else:
        check(what, False, f"gave {got!r}")
