#!/usr/bin/env python3
"""Writes docs/onnx.md, the list of ONNX operators, from src/formats/onnx/ops.

    scripts/onnx-doc.py            writes the page
    scripts/onnx-doc.py --check    fails if the page is not current
"""

import pathlib
import re
import sys

from generated import settle

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "onnx.md"
SOURCE = ROOT / "src" / "formats" / "onnx"
ROW = re.compile(r'^ONNX_OP(?:_OF\((\w+), |\()(\w+), "([^"]*)", "([^"]*)", (\d+), (\d+), (\d+)\)$',
                 re.MULTILINE)
DOMAINS = {"": "", "ml": "ai.onnx.ml.", "preview": "ai.onnx.preview.",
           "training": "ai.onnx.preview.training.", "microsoft": "com.microsoft."}
MANY = 65535

TEXT = """\
# ONNX operators

The ONNX operators that Tenon imports; `scripts/onnx-doc.py` writes this page from
[`onnx_operators.def`](../src/formats/onnx/ops/onnx_operators.def), and a test fails when it is no longer so. `tenon inspect`
tells of a model file what of it is not supported. [`onnx-operators.md`](onnx-operators.md) counts the
backend tests of the onnx package that pass, operator by operator.

Files have IR version {ir_min} to {ir_max} and an opset of up to {opset}. These {count} operators
are there; those of other domains than ONNX's own have the domain before the name. A version is the opset with which a definition of the operator began; an operator
is imported by the newest one that is not above the file's opset. Attributes that are required are
so in all versions, or in those that are named.

| operator | versions | inputs | attributes |
|---|---|---|---|
{rows}

## Refused cases

- Types other than strings (below) and those of tensors here, which are {types}:
  no complex numbers, no floats of 6 bits, and no sparse tensors but those in the file.
- Sequences whose length, and optional values whose presence, is not known when the model is imported,
  sequences of sequences, maps among outputs, and maps of others than tensors (below).
- Of the table's attributes: an `antialias` of scales below 1/31 (linear) or 2/31 (cubic), or that
  vary, a `sampling_ratio` of 0 of a RoiAlign, whose number of samples would
  depend on the regions, and a `stash_type` of a LayerNormalization or an RMSNormalization that is
  neither f32 (1) nor bf16 (16).
- Random numbers in bodies of loops, whose steps would draw the same, in functions of a model and in
  branches.
- Of a TfIdfVectorizer n-grams that have one index or are there twice.
- Of ai.onnx.ml: a `zeros` of 0 of a OneHotEncoder, other functions after scores than `NONE`,
  `SOFTMAX` and `LOGISTIC`, trees deeper than 64, two classes by the weights of one or of support
  vectors where runtimes disagree about the scores, and probabilities of an SVMClassifier.
- The length of a DFT or an STFT that the model computes, or that has a prime factor above 4096; a Det of matrices
  larger than 32.
- Scan of version 8 with lengths of sequences that it scans backward: ONNX does not say from where.
- If whose condition the model computes, with results of two types or ranks, or that are sequences or
  optional values.
- Quantisation to other numbers than integers of up to 16 bits and floats of 8 and 4.
- Outputs of one name, and values given to an initializer that is an input too.
- Values that decide ranks, axes and steps, and that are computed from the model's data.
- Windows (Conv, pooling) along an axis whose size a run computes, unless it is known before the run to be
  long enough.
- Squeeze and Reshape to a scalar of an axis whose size a run computes: Gather by a scalar index, or a ReduceSum
  with keepdims=0, takes its only element. A number in a Reshape, an Expand or a TopK's K that a run compares with
  a computed size is a computed size itself, also where it is 1.
- SequenceAt by an index that a run computes.
- Two sizes that must be equal and of which a run computes one, unless they come of one node or the operator
  is one of those below for which the run compares them.

## Cases that work in a way of their own

- Elements of 4 and 2 bits have a byte each in memory, also those of inputs and outputs.
- Lengths of sequences, and whether an optional value is there, follow from constants and shapes, and from
  `lists` and `values` of `tn_model_desc` (below). The steps of a Loop with a sequence or an optional value as
  a state are imported one after another, at most 4096.
- A Dropout's third input, its `training_mode`, is an initializer, or an input (below).
- A model draws the same random numbers in each run, by its nodes' `seed` and the names of their outputs.
- A ZipMap's sequence of maps is the matrix of their values: a row for each map, a column for each key,
  in the order of the node's `classlabels`.
- Each step of a loop of the plan (below) computes both branches of an If whose condition changes from step
  to step. Where their results have two shapes, the host runs the loop.
- Products of quantised operands are computed as the file says. Where weights alone are quantised, onnxsim
  folds their DequantizeLinear into weights of floats, which is faster.
- Values that decide ranks, axes and steps are initializers, come of shapes, or are elements of inputs
  (below); onnxsim folds what is constant.
- A run computes sizes from data: of NonZero, Compress, Unique and NonMaxSuppression, and those that follow from the
  shape of a Reshape, an Expand or a ConstantOfShape, bounds of a Slice, pads, the count of a Range, repeats of a
  Tile, sizes of a Resize, K of a TopK or trips of a Loop. Where they must equal others, the run compares them: for
  elementwise operators, MatMul, Gemm, Einsum, Concat, Expand, Reshape, Split and NonMaxSuppression, and K of a
  TopK with its axis. A size that does not fit fails the run, with the name of the node that computes or checks
  it if it has one; in a branch or a loop that the host runs, with that of the If or the Loop.
- A computed size that turns out to be 1 is not broadcast, nor is an input's open size of 1 that meets a computed
  one; `--size NAME=1` makes that one known. The length of a computed shape is the rank of a result, and is
  known before the run. A computed size of 0 in a Reshape, a sum of
  sizes that is 0, and any size of 0 in a branch that a run may leave out, is 0 and copies no size of the input. A computed size of -1, or a negative computed pad,
  fails the run.

## Functions

A node that names one of the model's functions, by domain, name and overload, is imported as the
function's nodes, by the function's own operator sets; attributes that refer to those of the call are
its, or the defaults. Functions come before operators of the same name.

## Values of inputs that decide

A shape, axes, pads, a number of repeats or a condition may be an input of the model, or follow from
one by integer arithmetic: an input of at most {elements} elements. A sum over an axis of open size is none
of these: it is a size that the run computes, whatever its type. Each combination of such values is
imported and compiled when a run first has it, and at most eight are kept.

An input that has had two values is, from the third on, computed with as what a model computes itself (above):
one plan serves all its values, where each node that reads the input takes computed sizes or conditions,
as Slice, TopK, Loop, Range, Tile, Expand, ConstantOfShape and If do. Axes, steps and a Reshape's shape are
never so, nor is an input whose length is open: each of their values stays compiled, so they should be few.
A value that does not fit what is computed (a negative pad, an end of a Slice beyond all sizes, a size that turns
out to be 1 and is broadcast) gets a plan of its own. With the policies `EXACT` and `ONE` (`tn_variants`) each
value has one.

The types and shapes of the model's outputs are those that the file declares until then, and such a
model is no part of an expression (`tn_model_apply`).

Where an output is a sequence, such inputs are given when the model is loaded, by `values` of
`tn_model_desc`.

## Sizes that are known at each run

Sizes that the file leaves open stay so in what is compiled, where each node can be expressed for all of
them. Where one cannot, as an `auto_pad` with a stride, a Split into equal parts, a Resize by a fraction, a
Reshape of n into (n/2, 2), or an operand of n rows that is added to one of m, the model is compiled for
each set of sizes that a run first has, and eight are kept; `tenon inspect` names the node. A run whose
sizes do not fit fails with the node's name. Where nodes fit together for all sizes from 1 on, as those that
PyTorch writes for `index_add`, these stay open with the policies `AUTO` and `STEADY` (`tn_variants`), and only
sets with a 0 are compiled one by one. Sizes that are fixed, or equated, with `sizes` of
`tn_model_desc` (`--size`) avoid that.

## Sequences and optional values

A sequence `x` of n tensors is n inputs or outputs, `x[0]` to `x[n - 1]`. `lists` of `tn_model_desc` say
how many an input has, and of what types where the file does not. An optional tensor is an input unless
a list says that it is absent. `tn_model_length` tells how many tensors an output has.

## Maps

A map `x` is two inputs of one size, the vectors `x.keys` and `x.values`; no key is there twice. CastMap
and DictVectorizer take it. Of a CastMap whose `map_form` is SPARSE, keys that are negative or not below
`max_map` are left out (ONNX Runtime fails for negative ones), and absent strings are "0.f", as there;
floats become strings as by Cast.

## Strings

Tensors of strings hold the numbers that the strings have in a table of the model, as i64
(`tn_model_string_number`, `tn_model_string`; `is_string` of `tn_port`). Operators that move elements take
them (Gather, Concat, Reshape, Where …), as do Equal and those of `ai.onnx.ml` that map or classify; all
others refuse them. StringConcat, StringSplit, StringNormalizer, RegexFullMatch, Tokenizer, and Cast and CastLike to and
from strings are steps that the host computes, and so is a loop whose body has one.

- The table keeps what runs made until the model and its bindings are freed.
- StringSplit without a delimiter splits at white space of ASCII; an empty string has one empty part at
  delimiters, where ONNX Runtime gives none.
- StringNormalizer leaves out elements that are stop words, compared in lower case unless
  `is_case_sensitive`, as ONNX Runtime does. Case is changed code point by code point, by the C library's
  table of `locale`, or of C.UTF-8 where that is not installed.
- Cast writes floats by the fewest digits that give the number back ("1.5", "1e+20", "NaN", "-INF"; f16 and
  bf16 as f32), where ONNX Runtime has 8 digits of f32 and 17 of f64; bools are "1" and "0". It reads decimal
  numbers, and NaN and INF in any case; floats beyond the type's range, as "1e400", are infinite. Integers drop
  a fraction; those with an exponent have the precision of f64. A string that is no number, or an integer out
  of range, is an error of the run.
- RegexFullMatch and Tokenizer need PCRE2 (libpcre2-8.so.0), which has RE2's syntax and more. A search
  that takes more than 64 MiB, or ten million steps, is an error of the run.
- Tokenizer, of ONNX Runtime's domain `com.microsoft`, gives each string as many tokens as the string with
  the most has, and none to all if no string has one.

## Pictures

ImageDecoder is a step of the host too. It decodes BMP (of 8, 24 and 32 bits, not compressed) and PNM itself,
PNG, WebP, TIFF, JPEG and JPEG 2000 by libpng16.so.16, libwebp.so.7, libtiff.so.6, libjpeg-turbo and
libopenjp2.so.7, which are opened when such a picture is decoded: a run without them fails. JPEG needs its
header when the library is built. JPEG 2000 in CMYK or e-YCC, or of more than 4 components, is refused; its
samples count among what `memory_limit` limits. A picture is decoded twice, once for its sizes.
Opacity is dropped; bytes that cannot be decoded give no pixels.

## Gradients

Gradient is taken apart when the model is loaded: the nodes from `xs` and `zs` to `y` are built of the
node's inputs, and differentiated in reverse. Of a `y` of several elements it is the gradient of their sum;
by what `y` does not depend on it is 0. On the way there may be these operators, and others are refused by
name, as are nodes that have graphs, calls of the model's functions, and gradients of gradients:
{differentiable}.

## Indices out of range

An index of Gather, GatherElements or GatherND that is out of range reads 0, where ONNX Runtime fails:
kernels cannot fail. An update of ScatterND or ScatterElements that is out of range has no effect, into an empty
tensor too.

The end of a Slice is clamped as the standard says with steps below 0 too: INT64_MAX leaves nothing there, where
ONNX Runtime takes all. A mean of nothing is NaN (0 there), and a OneHot of depth 0 is empty (refused there).
NonZero of a scalar has no rows from version 13 on (one there). Bools are scattered with `add` as "or" and with
`mul` as "and". A ConvTranspose of version 1 with an `output_shape` crops as later versions say, and ONNX Runtime
does: its own text exchanges both ends.

MaxUnpool takes an element's place for one in the image of the element's own batch entry and channel,
as MaxPool gives it.

## Slow cases

- NonMaxSuppression takes a step for each box that a class may give, `max_output_boxes_per_class` or
  all boxes, also where fewer are left: a limit close to what is needed is faster.
- TopK sorts the whole axis where it has more than 256 elements, and fewer than 64 k or k over 256 (of an axis of
  open size: more than 16384, or k over 16); else it compares 16 k elements with each other, or, of a short axis,
  each with each.
- ConvTranspose multiplies the zeros between the elements too where its stride does not divide its
  kernel, as 2 and 3, or with dilations: with strides of 2 along two axes that is four times the work.
- Pow to other exponents than −3, −2, −1, −0.5, 0.5 and 2 to 6, Sin, Cos and Tan: about ten, and
  three, times what they take in ONNX Runtime; half a second each to compile.
- Products of f16, and without AMX those of bf16, are computed in f32, at f32's speed for large ones and 0.7 of
  it for some eight rows. Those of 8-bit integers take down to a seventh of f32's time with AMX, a third with
  instructions for groups of bytes (AVX-VNNI, AVX512-VNNI); without either they run at a quarter to a tenth of
  f32's rate.
- Sizes that are left open may be 0, and what is done in vectors and tiles for each of them needs a
  remainder loop of single elements: operators all of whose sizes are open run slower. `--size n=64..`,
  or `min` of a `tn_model_size`, makes them as fast as may be from that size on.

## Loops

A Loop or a Scan is a loop of the plan where it can be: its body is compiled once, for all steps, and what
does not change from step to step is computed before it. It can be where each step is alike:

- How often it runs is known before it does. A Scan runs once for each entry of what it scans, which
  may be a size that varies. Of a Loop, the trip count is a constant, comes of shapes, as Shape and
  Gather or Size give it, is an input ("Values of inputs that decide"), or is computed before the loop.
- A Loop that a condition ends is waited for after each step. With outputs that have an entry for each
  step it needs a trip count too, as its bound, for which there is memory: they have as many entries as
  steps ran. In the body of another loop it has no such outputs.
- A state has the same shape in all steps, and what steps compute decides no size.
- RNN, GRU and LSTM are such loops. Of an entry whose `sequence_lens` is 0 the last state is the
  initial one (ONNX does not say; ONNX Runtime gives zeros).
- Loops are nested at most {depth} deep, and how often an inner one runs is the same in each step of
  the outer.

The host runs any other loop step by step: one whose states grow, as by Concat, whose steps compute sizes
(NonZero, a Slice to a computed end), which has outputs with entries and no trip count, or one beyond memory, an inner one whose
trip count changes, or an If with results of two shapes. `tenon inspect` lists these loops and the reason
why the plan cannot run each. The body is then a model of its own; sizes that a step changes are open in it.

- The first step compiles the body for its sizes, and the next one with other sizes for all of them.
  Each step costs a run of a plan (some microseconds), and what does not change is computed in each.
- States pass from step to step without a copy; outputs with entries grow by doubling. The plan around
  the loop reads the sizes of its results when the loop is done.
- A loop of no steps gives its initial states, and outputs of no entries, whose other sizes are those that
  are known before the loop, else 0.
- A failure of a step names the loop and the step's number, from 0. Entries of different shapes are one, by
  ONNX too. `progress` of `tn_open_desc` is called before each step and may end the loop, as it may a loop of
  the plan ("Loops" in `library.md`); nothing else ends one whose condition holds forever
  (but a loop of the plan without a trip count, after 2^40 steps).
- A state keeps its type. A value that the body reads from the graph around, or that operators need as a constant
  (axes, steps), is a constant, a shape's element that is a number, or few elements that fold to constants.
  Sequences and optional values of the graph around may be read; a sequence as a state needs a loop that is
  unrolled (above).
- Where the sizes of the body fit together only when they are known (halves by Split, a state that
  broadcasts from one element), each set of sizes of the states has a plan of its own, and the last eight stay:
  a step whose sizes are new compiles. `tenon inspect` says so of the loop.
- Steps may change the rank of a state, as from a scalar to a vector; each rank has a plan, with open sizes
  if these fit. The graph around needs the rank of the result before the run: it is the one that stays
  after at most four steps, or that of a known trip count; a trip count that is an input of the model decides
  where each step changes the rank. A run that takes too few steps for that rank fails.
- An If whose branches fit only for some numbers of the step, or elements of a state, is refused by the run
  where sizes decide on them; so are types of results that differ from declared ones.
- A Scan of version 8 is a loop of the plan alone. Loops whose states are sequences are unrolled (above).
"""


def number(name):
    """Returns the value of an enum's constant."""
    text = "".join((SOURCE / file).read_text() for file in ("importer/importer.h", "file/onnx_file.h"))
    return re.search(rf"\b{name} = (\d+)", text).group(1)


def bound(path, name):
    """Returns an enum's constant, which may be a power of two."""
    found = re.search(rf"\b{name} = (?:(1) << )?(\d+)", (ROOT / "src" / path).read_text())
    return 1 << int(found.group(2)) if found.group(1) else int(found.group(2))


def types():
    """Returns the data types that tensors may have."""
    text = (ROOT / "src" / "ir" / "core" / "dtypes.def").read_text()
    found = re.findall(r'^(?:DTYPE|STORED)\(\w+, \d+, "(\w+)", (?:FLOAT|U?INT|BOOL),', text, re.MULTILINE)
    return ", ".join(found[:-1]) + " and " + found[-1]


def differentiable():
    """Returns the operators that have a derivative."""
    text = (SOURCE / "ops" / "gradient_rules.c").read_text()
    found = re.findall(r'^    \{"(\w+)", \w+\},$', text, re.MULTILINE)
    return ", ".join(found[:-1]) + " and " + found[-1]


def inputs(least, most):
    if most == MANY:
        return f"{least} or more"
    return f"{least}" if least == most else f"{least} to {most}"


def attribute(text):
    """Formats an attribute; one with a ! is required, in the versions that follow it or else in
    all."""
    name, mark, versions = text.partition("!")
    only = f" in {versions.replace(',', ', ')}" if versions else ""
    return f"`{name}`" + (f" (required{only})" if mark else "")


def row(name, versions, attributes, least, most):
    shown = ", ".join(map(attribute, attributes.split()))
    return f"| {name} | {versions.replace(' ', ', ')} | {inputs(least, most)} | {shown} |"


def page():
    text = (SOURCE / "ops/onnx_operators.def").read_text()
    found = ROW.findall(text)
    if len(found) != len(re.findall(r"^ONNX_OP(?:_OF)?\(", text, re.MULTILINE)):
        sys.exit("onnx-doc: a row of onnx_operators.def is not understood")
    rows = [row(DOMAINS[domain] + name, versions, attributes, int(least), int(most))
            for domain, name, versions, attributes, least, most, _ in sorted(found)]
    return TEXT.format(ir_min=number("ONNX_IR_MIN"), ir_max=number("ONNX_IR_MAX"),
                       opset=number("ONNX_OPSET_MAX"), types=types(), count=len(rows), rows="\n".join(rows),
                       differentiable=differentiable(), elements=number("ONNX_ELEMENTS_MAX"),
                       depth=bound("ir/core/tensor_loop.h", "LOOP_MAX_DEPTH"))


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit("usage: onnx-doc.py [--check]")
    return settle(PAGE, page(), "what onnx_operators.def says", "run scripts/onnx-doc.py", bool(sys.argv[1:]))


if __name__ == "__main__":
    sys.exit(main())
