"""Test cases of ONNX operators on strings: {name: cases(version, rng)}; also of operators that move or
compare strings."""

import numpy as np

from cases import Case, In, const, one

WORDS = ["", "a", "Ab", "straße", "日本 x", "  two  words ", "a,b,,c", ",", "tab\tand\nline ", "ÄÖ ÉÀ", "b" * 70]


def words(rng, shape, among=WORDS):
    made = np.empty(shape, object)
    made[...] = rng.choice(np.array(among, object), shape)
    return made


def concat(version, rng):
    for a, b in (((4,), (4,)), ((3, 1), (2,)), ((), ()), ((2, 0), (1,))):
        yield one("StringConcat", words(rng, a), words(rng, b))
    yield one("StringConcat", In(words(rng, (3, 2)), ["n", 2]), const(["x", ""], object),
              more=[{"x0": words(rng, (5, 2))}])
    yield moved(rng)


def moved(rng):
    """Strings through operators that move them, and through one that compares them; the runtime's Where
    loses long ones."""
    nodes = [("Transpose", ["x"], ["t"], {"perm": [1, 0]}), ("Gather", ["t", "i"], ["g"], {"axis": 0}),
             ("Concat", ["g", "k"], ["j"], {"axis": 0}), ("Reshape", ["j", "shape"], ["r"], {}),
             ("Slice", ["r", "one", "far", "zero"], ["s"], {}), ("Equal", ["s", "word"], ["is_word"], {}),
             ("Where", ["is_word", "other", "s"], ["w"], {}), ("StringConcat", ["w", "word"], ["y"], {}),
             ("Shape", ["y"], ["z"], {}), ("Identity", ["x"], ["same"], {})]
    given = {"x": In(words(rng, (3, 4))), "i": const([3, 0]), "k": const([["p", "a", ""]], object),
             "shape": const([-1]), "one": const([1]), "far": const([99]), "zero": const([0]),
             "word": const("a", object), "other": const("another", object)}
    x = given["x"].array
    s = np.concatenate([x.T[[3, 0]], given["k"].array]).reshape(-1)[1:]
    y = np.where(s == "a", "another", s) + "a"
    return Case("strings are moved", nodes, given, ["y", "z", "is_word", "same"],
                expected={"y": y, "z": np.array([8]), "is_word": (s == "a").astype(bool), "same": x})


def split(version, rng):
    """ONNX Runtime gives no part of an empty string, and splits at no other white space than spaces."""
    among = [w for w in WORDS if w and "\t" not in w]
    def made(x, label="", more=(), **attributes):
        case = one("StringSplit", x, label=label, more=more, **attributes)
        (op, ins, _, how), = case.nodes
        case.nodes, case.outputs = [(op, ins, ["y", "z"], how)], ["y", "z"]
        return case
    for way in ({}, {"delimiter": ""}, {"delimiter": ","}, {"delimiter": ",,"}, {"delimiter": "b"}):
        for limit in ({}, {"maxsplit": 1}, {"maxsplit": 2}):
            yield made(words(rng, (3, 4), among), **way, **limit)
    yield made(np.array("a b", object), "of a scalar")
    yield made(In(words(rng, (2, 2), among), ["n", 2]), delimiter=" ",
               more=[{"x0": words(rng, (6, 2), among)}])
    yield Case("the greatest number of parts is a size", [
        ("StringSplit", ["x"], ["y", "z"], {"delimiter": " "}), ("ReduceMax", ["z"], ["n"], {"keepdims": 1}),
        ("Expand", ["v", "n"], ["wide"], {})],
        {"x": In(np.array(["a b c", "d e"], object)), "v": const([2.5], np.float32)}, ["wide"],
        expected={"wide": np.full(3, 2.5, np.float32)})
    for x, way, parts in ((["", "a,,b", ","], {"delimiter": ","}, [["", "", ""], ["a", "", "b"], ["", "", ""]]),
                          (["\ta\n b\r", "", " \v"], {}, [["a", "b"], ["", ""], ["", ""]])):
        case = made(np.array(x, object), f"stated {way}", **way)
        counts = [1, 3, 2] if way else [2, 0, 0]
        case.expected = {"y": np.array(parts, object), "z": np.array(counts)}
        yield case


def normalise(version, rng):
    for change in ("NONE", "LOWER", "UPPER"):
        for sensitive in (0, 1):
            yield one("StringNormalizer", words(rng, (30,)), case_change_action=change,
                      is_case_sensitive=sensitive, stopwords=["ab", "A", ","], locale="C.UTF-8")
    yield one("StringNormalizer", words(rng, (1, 9)), case_change_action="UPPER", locale="C.UTF-8")
    yield one("StringNormalizer", np.array(["a", "A"], object), stopwords=["a"], locale="C.UTF-8")
    yield one("StringNormalizer", In(words(rng, (5,)), ["n"]), stopwords=["a", ""], is_case_sensitive=1, locale="C.UTF-8",
              more=[{"x0": words(rng, (12,))}])


def regex(version, rng):
    for pattern in (r"a.*", r"[a-z]+", r"\w*", r"(?:b+|a|\s*)", r".* .*", r"(?i)aB?", "", r"\p{Lu}.*", r"a$|A"):
        yield one("RegexFullMatch", words(rng, (4, 5)), pattern=pattern)


def tokens(version, rng):
    def made(x, label="", more=(), **attributes):
        return one("com.microsoft.Tokenizer", x, label=label, more=more,
                   **{"mark": 0, "pad_value": "#", "mincharnum": 1, **attributes})
    x = words(rng, (3, 4))
    for way in ({"separators": [" "]}, {"separators": [",", r"\s", "b"]}, {"separators": ["x*"]},
                {"separators": ["^ ", "a$"]}, {"separators": [""]}, {"separators": ["", "b"]},
                {"tokenexp": "[a-z]+"}, {"tokenexp": r"\b\w\w+\b"}, {"tokenexp": "[a-z]*"}, {"tokenexp": "b{3}"},
                {"tokenexp": "(a)|(,)|(t(w)o)"}, {"tokenexp": "^."}, {"tokenexp": "nowhere"},
                {"separators": [" "], "tokenexp": "b"}):
        for mark in (0, 1):
            yield made(x, mark=mark, **way)
    for least in (2, 3, 71):
        yield made(x, mincharnum=least, separators=[" ", ","])
        yield made(x, mincharnum=least, tokenexp=r"[^ ]+")
    yield made(np.array("", object).reshape(1), "of an empty string", separators=[" "], mark=1)
    yield made(In(words(rng, (2, 2)), ["n", 2]), separators=[" "], more=[{"x0": words(rng, (6, 2))}])
    yield made(In(words(rng, (2,)), ["n"]), tokenexp="[a-z]+", more=[{"x0": words(rng, (7,))}])
    yield counted_tokens(1, 0)
    yield counted_tokens(2, 0)
    yield counted_tokens(3, 2)


def counted_tokens(most, skips):
    """N-grams of as many tokens as the strings have."""
    pool = ["a", "b", "c", "a", "b", "b", "a", "a", "b", "c", "c", "a", "a"]
    nodes = [("com.microsoft.Tokenizer", ["x"], ["t"],
              {"mark": 0, "pad_value": "#", "mincharnum": 1, "tokenexp": "[a-z]"}),
             ("Flatten", ["t"], ["f"], {}),
             ("TfIdfVectorizer", ["f"], ["y"],
              {"mode": "TF", "min_gram_length": 1, "max_gram_length": most, "max_skip_count": skips,
               "ngram_counts": [0, 3, 7], "ngram_indexes": list(range(7)), "pool_strings": pool})]
    def texts(*all):
        return np.array(all, object).reshape(-1, 1)
    x = In(texts("abcab", "ba", "."), ["n", 1])
    return Case(f"counts of {most} tokens with {skips} skipped", nodes, {"x": x}, ["y"],
                more=[{"x": texts("a", "b", "c", "d")}, {"x": texts("abc" * 5, "cca acc", "baa", "aba", "aab")}])


OPERATORS = {"com.microsoft.Tokenizer": tokens, "StringConcat": concat, "StringSplit": split, "StringNormalizer": normalise,
             "RegexFullMatch": regex}
