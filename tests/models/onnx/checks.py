"""Counts checks and prints the failed ones at the end."""


class Checks:
    def __init__(self):
        self.passed, self.failures = 0, []

    def __call__(self, what, holds, why=""):
        if holds:
            self.passed += 1
        else:
            self.failures.append(f"{what}: {why}")

    def end(self, least):
        """Prints the totals; returns whether a check failed, or too few were made."""
        for f in self.failures:
            print("FAILED", f)
        print(f"{self.passed} passed, {len(self.failures)} failed")
        return bool(self.failures) or self.passed < least
