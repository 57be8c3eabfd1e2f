"""Test cases of recurrent ONNX layers, RNN, GRU and LSTM: {name: cases(version, rng)}."""

import numpy as np

from cases import In, one

F32, F64 = np.dtype("f4"), np.dtype("f8")
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
STATES = {"RNN": 1, "GRU": 1, "LSTM": 2}
STEPS, BATCH, INPUTS, HIDDEN = 3, 3, 5, 6


def layers(op, functions, others=()):
    """Cases of directions, layouts, lengths, states, functions and clipping, in turns."""
    gates = GATES[op]

    def made(rng, dtype=F32, direction="forward", layout=None, lengths=None, states=False,
             bias=True, peepholes=False, steps=STEPS, varies=False, **attributes):
        def weight(*shape):
            return In((rng.standard_normal(shape) * 0.5).astype(dtype), kind="const")
        d = 2 if direction == "bidirectional" else 1
        def state(n):
            shape = (n, d, HIDDEN) if layout else (d, n, HIDDEN)
            return rng.standard_normal(shape).astype(dtype)
        def data(n, steps=steps):
            shape = (n, steps, INPUTS) if layout else (steps, n, INPUTS)
            return rng.standard_normal(shape).astype(dtype)
        x = data(BATCH)
        dims = None if not varies else ["n", steps, INPUTS] if layout else [steps, "n", INPUTS]
        more = [{"x0": data(7)}] if varies else []
        if varies == "steps":
            dims, more = ["t", BATCH, INPUTS], [{"x0": data(BATCH, s)} for s in (1, 9)]
        given = [In(x, dims), weight(d, gates * HIDDEN, INPUTS), weight(d, gates * HIDDEN, HIDDEN),
                 weight(d, 2 * gates * HIDDEN) if bias else None,
                 None if lengths is None else np.array(lengths, np.int32)]
        given += [state(BATCH) for _ in range(STATES[op])] if states else []
        if peepholes:
            given += [None] * (7 - len(given)) + [weight(d, 3 * HIDDEN)]
        while given[-1] is None:
            given.pop()
        if layout is not None:
            attributes["layout"] = layout
        case = one(op, *given, terms=INPUTS + HIDDEN, hidden_size=HIDDEN, direction=direction,
                   more=more, **attributes)
        (name, names, _, all_of), = case.nodes
        case.outputs = ["y", "h", "c"][:1 + STATES[op]]
        case.nodes = [(name, names, case.outputs, all_of)]
        return case

    def cases(version, rng):
        """Returns all cases in version 14, which added layouts; before version 7 there was a flag that
        allowed to leave out an output."""
        old = [{"output_sequence": flag} for flag in (1, 0)] if version < 7 else [{}, {}]
        yield made(rng, direction="bidirectional", lengths=[2, 3, 1], states=True, **old[0])
        yield made(rng, varies=True, **old[1])
        yield made(rng, varies="steps", direction="bidirectional", lengths=[1, 1, 1], states=True)
        if version != 14:
            return
        yield made(rng, direction="reverse", bias=False)
        yield made(rng, direction="bidirectional", layout=0)
        yield made(rng, direction="bidirectional", layout=1, states=True)
        yield made(rng, layout=1, varies=True, steps=1)
        yield made(rng, states=True, clip=0.3)
        for names, extra in functions:
            yield made(rng, activations=names, steps=1, states=True, **extra)
        for extra in others:
            yield made(rng, **extra)
    return cases


OPERATORS = {
    "RNN": layers("RNN", [
        (["Relu"], {}), (["Softsign"], {}), (["Softplus"], {}), (["Sigmoid"], {}),
        (["Affine"], {"activation_alpha": [0.5], "activation_beta": [0.1]}),
        (["LeakyRelu"], {"activation_alpha": [0.2]}), (["Elu"], {"activation_alpha": [0.7]}),
        (["ThresholdedRelu"], {"activation_alpha": [0.4]}),
        (["ScaledTanh"], {"activation_alpha": [0.8], "activation_beta": [1.3]}),
        (["HardSigmoid"], {"activation_alpha": [0.3], "activation_beta": [0.4]}),
        (["HardSigmoid", "LeakyRelu"],
         {"direction": "bidirectional", "activation_alpha": [0.3, 0.1], "activation_beta": [0.4]}),
    ]),
    "GRU": layers("GRU", [
        (["HardSigmoid", "Softsign"], {"activation_alpha": [0.3], "activation_beta": [0.4]}),
        (["Sigmoid", "Relu", "Sigmoid", "Tanh"], {"direction": "bidirectional"}),
    ], [{"linear_before_reset": 1}, {"linear_before_reset": 1, "bias": False},
        {"linear_before_reset": 1, "direction": "bidirectional", "lengths": [1, 3, 2]}]),
    "LSTM": layers("LSTM", [
        (["Sigmoid", "Relu", "Softsign"], {}),
        (["HardSigmoid", "Tanh", "Elu"],
         {"activation_alpha": [0.3, 0.6], "activation_beta": [0.4]}),
    ], [{"peepholes": True}, {"peepholes": True, "direction": "bidirectional", "states": True},
        {"input_forget": 1}]),
}
