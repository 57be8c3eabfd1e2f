#!/usr/bin/env python3
"""Tests the rule compiler: errors have file, line and message; the C code that it writes compiles.

    test_rulec.py BUILD     BUILD holds the program rulec
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

# (rules, line of the error or 0 for none, part of the message)
WRONG = [
    ("(rule a (ad x y) -> x)", 1, "no op or function 'ad'"),
    ("\n\n(rule a (add x _) -> (sub x) :example (add a:f32 b:f32))", 3, "sub takes 2 sources, not 1"),
    ("(rule a (add x) -> x :example (add a:f32 b:f32))", 1, "add takes 2 sources, not 1"),
    ("(rule a (neg x) -> y :example (neg a:f32))", 1, "there is no 'y' here"),
    ("(rule a (add x y) -> x :example (add a:f32 b:f32))", 1, "'y' is never used"),
    ("(rule a (neg x) -> x)", 1, "has no :example"),
    ("(rule a (neg x:f31) -> x :example (neg a:f32))", 1, "no type 'f31'"),
    ("(rule a (neg x) -> (cast x) :example (neg a:f32))", 1, "to which type"),
    ("(rule a (neg x) -> (where (lt 1 2) x 0) :example (neg a:f32))", 1, "type of this number is not known"),
    ("(rule a (neg x) -> x :example (neg 1))", 1, "type of this number is not known"),
    ("(rule a (neg x) -> x :example (neg a))", 1, "type of 'a' is not said"),
    ("(rule a (neg x) -> x :if (odd x) :example (neg a:f32))", 1, "no guard 'odd' is declared"),
    ("(guard odd (x))\n(rule a (neg x) -> x :if (odd) :example (neg a:f32))", 2, "odd takes 1 argument"),
    ("(guard odd (x))\n(rule a (neg x) -> x :example (neg a:f32))", 1, "'odd' is never used"),
    ("(define (f x) (neg x))\n(rule a (neg x) -> x :example (neg a:f32))", 1, "'f' is never used"),
    ("(rule a (neg x) -> (f x) :example (neg a:f32))\n(define (f x) (neg x))", 1, "no op or function 'f'"),
    ("(rule a (neg x) -> x :math quick :example (neg a:f32))", 1, "math is fast, contract, sum or flush"),
    ("(rule a (neg x) -> x :exemple (neg a:f32))", 1, "no field ':exemple'"),
    ("(rule a x -> x :example (neg a:f32))", 1, "pattern starts with an op"),
    ("(rule a (neg x) -> x :example (neg a:f32)", 1, "no ')' to this bracket"),
    ("(rule a (neg x) -> x :example (neg a:f32)))", 1, "unexpected ')'"),
    ("(rule a (neg 1x) -> 0 :example (neg a:f32))", 1, "'1x' is no number"),
    ("(rule a (reshape x... s) -> x :example (neg a:f32))", 1, "can follow a list"),
    ("(rule a (permute x) -> (permute x) :example (neg a:f32))", 1, "declare a function with (build"),
    ("(for T (i8) (rule a (neg x:T) -> x :example (neg b:T))\n (rule a (neg (neg x:T)) -> x :example (neg b:T)))",
     2, "the name 'a-i8' is taken by line 1"),
    # Proofs: one for every type that fits, or a reason.
    ("(rule a (exp x) -> (exp x) :example (exp a:f32))", 1, "'a' has no proof for f32 (exp has no meaning there)"),
    ("(rule a (exp x) -> (exp x) :unproved half no theory :example (exp a:f32))", 1, "no proof for f32"),
    ("(rule a (exp x) -> (exp x) :unproved half no theory :unproved f32|f64 none :example (exp a:f32))", 0, ""),
    ("(unproved all no theory)\n(rule a (exp x) -> (exp x) :example (exp a:f32))", 0, ""),
    ("(rule a (reshape x s...) -> (reshape x s...) :example (reshape x:f32[4] 4))", 1, "no proof for f32 (no scalars)"),
    ("(build f (x))\n(rule a (neg x) -> (f x) :example (neg a:f32))", 2, "no proof for f32 (a function of rule_functions.c)"),
    ("(rule a (exp x) -> (exp x) :unproved f31 none :example (exp a:f32))", 1, "no type 'f31'"),
    ("(rule a (exp x) -> (exp x) :unproved all :example (exp a:f32))", 1, "say why there is no proof"),
    ("(rule a (neg x) -> x :unproved bool none :example (neg a:f32))", 1, "no proof is missing for this reason"),
    ("(unproved bool none)\n(rule a (neg x) -> x :example (neg a:f32))", 1, "no proof is missing for this reason"),
    ("(unproved all none\n (rule a (neg x) -> x :example (neg a:f32)))", 1, "write (unproved TYPES WORD ...)"),
    ("(for (F why) ((f32 f64) (f64 f64))\n (rule a (exp x:F) -> (exp x) :unproved why none :example (exp a:F)))",
     2, "no proof for f32"),
    # Types.
    ("(rule a (and x:f32 y) -> (and y x) :example (and a:i8 b:i8))", 1, "no type fits here"),
    ("(rule a (add x:i8 y:f32) -> (add y x) :example (add a:i8 b:i8))", 1, "no type fits here"),
    ("(rule a (where _:i8 y y) -> y :example (where c:bool a:i8 a:i8))", 1, "no type fits here"),
    # A rule that an earlier one subsumes, also with operands swapped.
    ("(rule a (neg x) -> x :example (neg a:f32))\n(rule b (neg (neg x)) -> x :example (neg a:f32))",
     2, "'b' never fires: 'a' (line 1)"),
    ("(rule a (add x 0) -> x :example (add a:i8 0))\n(rule b (add 0 x:i8) -> x :example (add 0 a:i8))",
     2, "'b' never fires"),
    ("(rule a (sub x x) -> 0 :example (sub a:i8 a:i8))\n(rule b (sub (neg x) (neg x)) -> 0 :example (sub a:i8 a:i8))",
     0, ""),
    # Not subsumed: narrower types, conditions, other numbers.
    ("(rule a (neg x:f32) -> x :example (neg a:f32))\n(rule b (neg x) -> x :example (neg a:f32))", 0, ""),
    ("(rule a (neg x) -> x :if (lacks neg) :example (neg a:f32))\n(rule b (neg x) -> x :example (neg a:f32))",
     0, ""),
    ("(rule a (add x 0) -> x :example (add a:i8 0))\n(rule b (add x -0.0) -> x :example (add a:f32 -0.0))",
     0, ""),
]

GOOD = """
; All features of the language.
(constant three 3)
(define (twice x) (let ((y (add x x))) y))
(rule tails (reshape (reshape x _...) s...) -> (reshape x s...)
  :unproved all arrays have no theory :example (reshape (reshape x:f32[4] 4) 2 2))
(rule named (max (as y (max x:int _)) x) -> y :example (max (max a:i8 b:i8) a:i8))
(rule ordered (max (as y (max x:float _)) x) -> y :example (max (max a:f32 b:f32) a:f32))
(rule poly (exp x:f32) -> (poly x 1 2 0x1.8p-3) :math fast :if (lacks exp) (not (lacks fma)) :example (exp a:f32))
(for (op T) ((add f32) (mul f64))
  (rule loop (op:T x three) -> (twice x) :math fast :example (op a:T 3)))
(rule typed (where c x:half|i8 1) -> (where c (cast:@root (bitcast:@x (twice x))) 1)
  :example (where c:bool a:i8 1))
"""


def rulec(program, folder, text, *options):
    source, out = folder / "case.rules", folder / "case.c"
    source.write_text(text)
    out.unlink(missing_ok=True)
    done = subprocess.run([program, *options, out, source], capture_output=True, text=True, timeout=20)
    return done, source, out


def check_wrong(program, folder):
    failures = 0
    for text, line, message in WRONG:
        done, source, out = rulec(program, folder, text)
        if line:
            expected = f"{source}:{line}: error: "
            right = done.returncode == 1 and done.stderr.startswith(expected) and message in done.stderr
            right = right and not out.exists()
        else:
            right = done.returncode == 0
        if not right:
            failures += 1
            print(f"--- {text}\nexpected line {line}: {message}\ngot {done.returncode}: {done.stderr}")
    return failures


def check_good(program, folder):
    compiler = os.environ.get("CC", "cc").split()
    flags = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", f"-I{ROOT}/src",
             f"-I{ROOT}/include", f"-I{ROOT}/tests/rules"]
    for options in ([], ["--tests"]):
        done, _, out = rulec(program, folder, GOOD, *options)
        assert done.returncode == 0, done.stderr
        text = out.read_text()
        if not options:
            # The rule set is not declared in rule_sets.h.
            text = text.replace("\n\n", "\nconst node *rules_case(rewriter *rw, const node *n);\n\n", 1)
            out.write_text(text)
            # max of integers commutes at both levels: four variants; of floats it does not.
            assert len(re.findall(r"^static const node \*case_1_\d", text, re.M)) == 4, text
            assert len(re.findall(r"^static const node \*case_2_\d", text, re.M)) == 1, text
        subprocess.run([*compiler, *flags, out], check=True, timeout=60)


def main():
    program = pathlib.Path(sys.argv[1]) / "rulec"
    with tempfile.TemporaryDirectory() as name:
        failures = check_wrong(program, pathlib.Path(name))
        check_good(program, pathlib.Path(name))
    missing = subprocess.run([program, "/nonexistent/out.c", "/nonexistent.rules"], capture_output=True)
    assert missing.returncode == 1 and b"nonexistent.rules" in missing.stderr
    assert subprocess.run([program], capture_output=True).returncode == 2
    print(f"{len(WRONG)} cases, {failures} wrong")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
