#!/usr/bin/env python3
"""Proves the rewrite rules: runs z3 on the proof obligations that rulec writes, whose answer must
be unsat in each case. Rules that are wrong for one of their types must be found.

    test_proofs.py BUILD     BUILD holds the program rulec
"""

import collections
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROVED = 1972  # number of obligations; changes with the rules
SECONDS = 100  # time limit per obligation


# Rules that hold for some types only, and the type for which they do not.
WRONG = [
    ("(rule a (max x (max x y)) -> (max x y) :example (max a:f32 (max a:f32 b:f32)))", None),
    ("(rule a (max (max x y) x) -> (max x y) :example (max (max a:f32 b:f32) a:f32))", "f32"),
    ("(rule a (add x 0) -> x :example (add a:f32 0.0))", "f16"),
    ("(rule a (sub x x) -> 0 :example (sub a:i8 a:i8))", "f64"),
    ("(rule a (lt (sub x:sint y) 0) -> (lt x y) :example (lt (sub a:i8 b:i8) 0))", "i64"),
    ("(rule a (shr (shl x:int 1) 1) -> x :example (shr (shl a:i8 1) 1))", "u64"),
    ("(rule a (shr x:u32 y) -> (shr x y) :if (lacks shr) :example (shr a:u32 b:u32))", "u32"),
    ("(rule a (cast:i8 x:f32) -> (cast:i8 x) :if (lacks cast) :example (cast:i8 a:f32))", "i8"),
    ("(rule a (bitcast (bitcast x)) -> (bitcast:@root x) :example (bitcast:i8 (bitcast:u8 a:i8)))",
     "i8 bool i8"),
    ("(rule a (cast:i64 (cast:i32 x:i64)) -> x :example (cast:i64 (cast:i32 a:i64)))", "i64"),
]


def answers(program, out, rules):
    """Returns (name, answer) of each obligation, and counts of the reasons for rules without
    one."""
    subprocess.run([program, "--obligations", out, *rules], check=True)
    done = subprocess.run(["z3", f"-t:{SECONDS * 1000}", out], capture_output=True, text=True)
    assert not done.stderr, done.stderr
    found, unproved, name = [], collections.Counter(), ""
    for line in done.stdout.splitlines():
        if line in ("sat", "unsat", "unknown", "timeout") or line.startswith("(error"):
            found.append((name, line))
        elif ": " in line:
            unproved[line.split(": ")[1]] += 1
        else:
            name = line
    return found, unproved


def check_wrong(program, folder):
    failures = 0
    for text, types in WRONG:
        source = folder / "case.rules"
        source.write_text(text)
        found, _ = answers(program, folder / "case.smt2", [source])
        wrong = [name for name, answer in found if answer != "unsat"]
        if types is None and wrong or types and (f"case a {types}", "sat") not in found:
            failures += 1
            print(f"--- {text}\nexpected {types}, got {wrong}")
    return failures


def main():
    if not shutil.which("z3"):
        print("skipped: z3 is not installed")
        return 77
    program = pathlib.Path(sys.argv[1]) / "rulec"
    rules = sorted((ROOT / "src/rules").glob("*.rules"))
    with tempfile.TemporaryDirectory() as folder:
        failures = check_wrong(program, pathlib.Path(folder))
        found, unproved = answers(program, pathlib.Path(folder) / "obligations.smt2", rules)
    for name, answer in found:
        if answer != "unsat":
            failures += 1
            print(f"{name}: {answer}")
    proved = sum(answer == "unsat" for _, answer in found)
    print(f"{proved} proved; rules not proved for some types: "
          + ", ".join(f"{n} ({why})" for why, n in unproved.items()))
    if proved != PROVED:
        print(f"expected {PROVED} proofs")
    return 1 if failures or proved != PROVED else 0


if __name__ == "__main__":
    sys.exit(main())
