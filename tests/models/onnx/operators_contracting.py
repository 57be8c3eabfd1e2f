"""Test cases of attention, rotary embeddings and einsum: {name: cases(version,
rng)}."""

import numpy as np

from cases import BF16, In, const, one
from operators import F16, F32, F64, some

I8 = np.dtype("i8")


def with_outputs(case, n):
    (op, names, _, attributes), = case.nodes
    case.outputs = [f"y{i}" for i in range(n)]
    case.nodes = [(op, names, case.outputs, attributes)]
    return case


def attention(version, rng):
    def made(q, k=None, v=None, mask=None, past=None, lengths=None, outputs=1, dtype=F32, **how):
        k = k or q
        inputs = [some(rng, s, dtype) / 2 for s in (q, k, v or k)] + [mask]
        inputs += [None, None] if past is None else [some(rng, s, dtype) for s in past]
        inputs.append(None if lengths is None else np.array(lengths))
        while inputs[-1] is None:
            inputs.pop()
        inputs = [x.astype(dtype) if i < 3 else x for i, x in enumerate(inputs)]
        return with_outputs(one("Attention", *inputs, terms=k[-2] + q[-1], **how), outputs)
    yield made((2, 3, 4, 8))
    yield made((2, 4, 24), q_num_heads=3, kv_num_heads=3, is_causal=1)
    if version == 24:
        return
    yield made((2, 3, 4, 8), (2, 3, 6, 8), (2, 3, 6, 5), scale=0.3, softcap=2.0)
    yield made((2, 4, 4, 8), (2, 2, 5, 8), label="grouped heads")
    yield made((2, 4, 24), (2, 5, 8), (2, 5, 6), q_num_heads=6, kv_num_heads=2)
    yield made((2, 3, 4, 8), mask=some(rng, (4, 4), F32))
    yield made((2, 3, 4, 8), mask=some(rng, (2, 1, 4, 4), F32), is_causal=1)
    yield made((2, 3, 4, 8), mask=np.tri(4, 4, 1, bool))
    blind = np.ones((4, 4), bool)
    blind[2] = False
    if version >= 25:
        yield made((2, 3, 4, 8), mask=blind, label="a query without keys")
    past = ((2, 3, 5, 8), (2, 3, 5, 8))
    yield made((2, 3, 4, 8), past=past, outputs=3)
    yield made((2, 3, 4, 8), past=past, is_causal=1, outputs=3, mask=some(rng, (4, 9), F32))
    for mode in range(4):
        yield made((1, 2, 3, 4), (1, 2, 5, 4), mask=some(rng, (3, 5), F32), outputs=4, softcap=1.5,
                   qk_matmul_output_mode=mode, past=((1, 2, 0, 4), (1, 2, 0, 4)))
    yield made((2, 3, 4, 16), dtype=F64, softmax_precision=11)  # its scale is exact in f32
    yield made((2, 3, 4, 8), dtype=F16)
    if version >= 25:
        yield made((2, 3, 4, 8), (2, 3, 6, 8), lengths=[4, 6])
        yield made((2, 3, 4, 8), (2, 3, 6, 8), lengths=[5, 6], is_causal=1)
        yield made((2, 3, 4, 8), mask=some(rng, (4, 3), F32), lengths=[3, 2])
        yield made((1, 2, 6, 4), left_window_size=2, right_window_size=1)
        yield made((1, 2, 6, 4), left_window_size=1, is_causal=1)
        yield made((1, 2, 3, 4), past=((1, 2, 4, 4), (1, 2, 4, 4)), left_window_size=2, outputs=3)
    names = ["b", 3, "l", 8]
    q, k, v = (In(some(rng, (2, 3, 4, 8), F32), names) for _ in range(3))
    yield one("Attention", q, k, v, is_causal=1, terms=16, label="of sizes that vary",
              more=[{n: some(rng, (1, 3, 7, 8), F32) for n in ("x0", "x1", "x2")}])


def rotary(version, rng):
    def made(x, places, half, ids=None, **how):
        inputs = [some(rng, x, F32), some(rng, (*places, half), F32), some(rng, (*places, half), F32)]
        if ids is not None:
            inputs.append(ids)
        return one("RotaryEmbedding", *inputs, **how)
    ids = some(rng, (2, 5), I8, 0, 9)
    for pairs in (0, 1):
        yield made((2, 3, 5, 8), (9,), 4, ids, interleaved=pairs)
        yield made((2, 3, 5, 8), (2, 5), 4, interleaved=pairs)
        yield made((2, 5, 24), (9,), 4, ids, interleaved=pairs, num_heads=3)
    yield made((2, 3, 5, 8), (9,), 2, ids, rotary_embedding_dim=4)
    yield made((2, 5, 24), (9,), 3, ids, rotary_embedding_dim=6, num_heads=3, interleaved=1)
    x = In(some(rng, (2, 3, 5, 8), F32), ["b", 3, "l", 8])
    yield one("RotaryEmbedding", x, const(some(rng, (9, 4), F32), F32),
              const(some(rng, (9, 4), F32), F32), In(ids, ["b", "l"]), label="of sizes that vary",
              more=[{"x0": some(rng, (1, 3, 7, 8), F32), "x3": some(rng, (1, 7), I8, 0, 9)}])


def einsum(version, rng):
    equations = [("ij,jk->ik", (3, 4), (4, 5)), ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
                 ("bhqd,bhkd->bhqk", (2, 2, 3, 4), (2, 2, 5, 4)), ("ij->ji", (3, 4)), ("ii->i", (4, 4)),
                 ("ii", (4, 4)), ("ij->", (3, 4)), ("i,j->ij", (3,), (4,)), ("ij,jk", (3, 4), (4, 2)),
                 ("...ij,...jk->...ik", (2, 3, 4), (2, 4, 5)), ("i...->...", (3, 2, 4)),
                 ("...a->a...", (2, 3, 4)), ("ab,bc,cd->ad", (2, 3), (3, 4), (4, 5)),
                 ("bij, bk -> bijk", (2, 3, 4), (2, 5)), ("ba,b->a", (3, 4), (3,)), ("i,i->i", (3,), (3,)),
                 ("bAc,cA->Ab", (2, 3, 4), (4, 3)), ("aba,b->a", (3, 2, 3), (2,))]
    for equation, *shapes in equations:
        yield one("Einsum", *[some(rng, s, F32) for s in shapes], equation=equation, terms=12)
    for t in (F64, np.dtype("i4"), I8):
        yield one("Einsum", some(rng, (3, 4), t), some(rng, (4, 2), t), equation="ij,jk->ik", terms=4)
    yield one("Einsum", In(some(rng, (2, 3, 4), F32), ["b", 3, "k"]), some(rng, (3, 4), F32)[:, :1],
              equation="bij,ik->bjk", terms=4, more=[{"x0": some(rng, (5, 3, 2), F32)}])


OPERATORS = {"Attention": attention, "RotaryEmbedding": rotary, "Einsum": einsum}
