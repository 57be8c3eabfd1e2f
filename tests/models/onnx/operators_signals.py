"""Test cases of ONNX operators on signals, and of determinants: {name: cases(version, rng)}."""

import numpy as np

from cases import In, const, one
from operators_networks import F16, F32, F64, some, varying


def fourier(version, rng):
    def made(x, axis=None, length=None, label="", terms=None, more=(), **attributes):
        inputs = [x] + ([] if length is None else [const(length)])
        array = x.array if isinstance(x, In) else x
        if axis is not None and version < 20:
            attributes["axis"] = axis
        elif axis is not None:
            inputs = [x, None if length is None else const(length), const(axis)]
        return one("DFT", *inputs, terms=terms or max(array.shape), label=f"{axis} {length} {label}",
                   more=more, **attributes)
    for n in (1, 2, 7, 64, 65, 67, 128, 130, 4096 // 8):
        yield made(some(rng, (2, n, 1)), label=f"of length {n}", axis=1)
        yield made(some(rng, (2, n, 2)), label=f"of length {n}", axis=1)
    for parts in (1, 2):
        yield made(some(rng, (2, 12, parts)), axis=1, inverse=1)
        yield made(some(rng, (2, 3, 10, parts)), axis=2)
        yield made(some(rng, (5, 3, 10, parts)), axis=0, length=5)
        yield made(some(rng, (2, 10, parts)), axis=1, length=16, label="padded")
        yield made(some(rng, (2, 10, parts)), axis=1, length=6, label="cut")
    yield made(some(rng, (2, 10, 1)), axis=1, onesided=1)
    yield made(some(rng, (2, 11, 1)), axis=1, onesided=1)
    yield made(some(rng, (2, 10, 1)), axis=-2)
    yield made(some(rng, (2, 10, 2), F64), axis=1)
    x, more = varying(rng, (2, 10, 2), (5, 10, 2))
    yield made(x, axis=1, more=more)


def short_fourier(version, rng):
    def made(x, step, window=None, length=None, **attributes):
        inputs = [x, const(step), window, const(length) if length else None]
        while inputs[-1] is None:
            inputs.pop()
        return one("STFT", *inputs, terms=length or window.size, label=f"{step} {length}", **attributes)
    yield made(some(rng, (2, 40, 1)), 8, None, 16)
    yield made(some(rng, (2, 40, 1)), 5, some(rng, (12,)), onesided=1)
    yield made(some(rng, (2, 40, 1)), 5, some(rng, (12,)), 12, onesided=0)
    yield made(some(rng, (1, 33, 2)), 4, some(rng, (8,)), 8, onesided=0)
    yield made(some(rng, (1, 40, 1), F64), 8, None, 16)


def mel_weights(version, rng):
    for bins, length, rate, low, high in ((8, 16, 8192, 0, 4096), (20, 256, 16000, 20, 8000),
                                          (3, 32, 44100, 0, 22050)):
        yield one("MelWeightMatrix", const(bins), const(length), const(rate),
                  const(low, F32), const(high, F32))
    yield one("MelWeightMatrix", const(4), const(64), const(8000), const(0, F32), const(4000, F32),
              output_datatype=11)


def determinant(version, rng):
    for n in (1, 2, 3, 5, 8):
        yield one("Det", some(rng, (n, n)), terms=n * n)
    yield one("Det", some(rng, (2, 3, 4, 4)), terms=16)
    yield one("Det", some(rng, (0, 3, 3)))
    singular = np.array([[1, 2, 3], [2, 4, 6], [1, 1, 5]], F32)
    yield one("Det", singular, terms=9, label="singular")
    yield one("Det", np.zeros((3, 3), F32))
    yield one("Det", np.array([[0, 0, 2], [0, 3, 0], [4, 0, 0]], F32), label="with rows exchanged")
    x, more = varying(rng, (2, 3, 3), (5, 3, 3))
    yield one("Det", x, terms=9, more=more)


def tensor_scatter(version, rng):
    x, update = some(rng, (2, 3, 6, 4)), some(rng, (2, 3, 2, 4))
    yield one("TensorScatter", x, update, np.array([1, 4]))
    yield one("TensorScatter", x, update, np.array([0, 5]), mode="circular")
    yield one("TensorScatter", x, update)
    yield one("TensorScatter", some(rng, (2, 6, 4), F16), some(rng, (2, 6, 3), F16),
              np.array([0, 1]), axis=-1)
    yield one("TensorScatter", some(rng, (3, 5)), some(rng, (3, 2)), np.array([0, 3, 1]), axis=1)


def words(version, rng):
    def made(x, least, most, skips, mode="TF", pool=(2, 3, 5, 4, 5, 6, 7, 8, 6, 7), counts=(0, 4), **more):
        return one("TfIdfVectorizer", x, pool_int64s=list(pool), ngram_counts=list(counts), mode=mode,
                   ngram_indexes=[0, 1, 2, 3, 4, 5, 6], min_gram_length=least, max_gram_length=most,
                   max_skip_count=skips, label=f"{least} {most} {skips} {mode}", **more)
    x = np.array([[1, 1, 3, 3, 3, 7, 8, 6, 7, 5], [5, 6, 7, 8, 6, 7, 2, 2, 4, 6]])
    for least, most, skips in ((1, 1, 0), (2, 2, 0), (1, 2, 0), (1, 2, 3), (2, 2, 5)):
        yield made(x, least, most, skips)
        yield made(x[0].astype(np.int32), least, most, skips)
    weights = [1.5, 2.0, 0.5, 3.0, 1.0, 4.0, 0.25]
    for mode in ("IDF", "TFIDF"):
        yield made(x, 1, 2, 2, mode, weights=weights)
        yield made(x, 1, 2, 2, mode)
    yield one("TfIdfVectorizer", x, pool_int64s=[7, 3, 7, 5, 6, 7, 8, 6, 7], ngram_counts=[0, 1, 3],
              ngram_indexes=[3, 0, 5, 1], min_gram_length=1, max_gram_length=3, max_skip_count=1,
              mode="TF")
    # a weight for each n-gram, in whichever column its count is
    for columns in ([1, 0], [0, 3]):
        yield one("TfIdfVectorizer", np.array([5, 6, 5]), pool_int64s=[5, 6], ngram_counts=[0],
                  ngram_indexes=columns, weights=[10.0, 20.0], min_gram_length=1, max_gram_length=1,
                  max_skip_count=0, mode="TFIDF")
    yield made(x[:, :1], 1, 2, 1)
    yield one("TfIdfVectorizer", np.array([["a", "b", "a"], ["", "a", "b"]], object), mode="TF",
              pool_strings=["a", "", "a", "b", "b", "a"], ngram_counts=[0, 2], ngram_indexes=[0, 1, 2, 3],
              min_gram_length=1, max_gram_length=2, max_skip_count=0)


OPERATORS = {"DFT": fourier, "STFT": short_fourier, "MelWeightMatrix": mel_weights,
             "Det": determinant, "TensorScatter": tensor_scatter,
             "TfIdfVectorizer": words}
