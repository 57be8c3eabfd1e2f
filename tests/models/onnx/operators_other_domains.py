"""Test cases of operators of other domains than ONNX's own: {domain.name: cases(version, rng)}."""

import itertools

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import operators_gradient
from cases import Case, In, one, stated
from operators_networks import F16, F32, F64, outputs, some, varying

I64 = np.dtype("i8")


def ml(op, *inputs, **attributes):
    return one(f"ai.onnx.ml.{op}", *inputs, **attributes)


def extractor(version, rng):
    x = some(rng, (3, 5))
    yield ml("ArrayFeatureExtractor", x, np.array([[3, 0]]))
    yield ml("ArrayFeatureExtractor", x, np.array([1]))
    yield ml("ArrayFeatureExtractor", some(rng, (6,)), np.array([[4, 4, 1]]))


def binarizer(version, rng):
    yield ml("Binarizer", some(rng, (3, 4)), threshold=0.5)
    yield ml("Binarizer", some(rng, (3, 4)))
    n, more = varying(rng, (2, 3), (5, 3))
    yield ml("Binarizer", n, threshold=-0.5, more=more)


def vectorizer(version, rng):
    yield ml("FeatureVectorizer", some(rng, (3, 2)), some(rng, (3, 4)), inputdimensions=[2, 4])
    yield ml("FeatureVectorizer", some(rng, (3, 2)), some(rng, (3, 4)), inputdimensions=[1, 4])


def imputer(version, rng):
    x = np.array([[1, np.nan, 3], [np.nan, 2, 5]], F32)
    yield ml("Imputer", x, imputed_value_floats=[7.0], replaced_value_float=float("nan"))
    yield ml("Imputer", x, imputed_value_floats=[7.0, 8.0, 9.0], replaced_value_float=float("nan"))
    yield ml("Imputer", x, imputed_value_floats=[7.0], replaced_value_float=3.0)
    yield ml("Imputer", np.array([[1, 0, 3]]), imputed_value_int64s=[7], replaced_value_int64=0)


def categories(version, rng):
    x, words = np.array([[3, 5], [1, 4]]), np.array([["b", "a"], ["", "c"]], object)
    known = {"cats_int64s": [5, 1, 3], "cats_strings": ["a", "b", ""]}
    yield ml("CategoryMapper", x, default_string="none", **known)
    yield ml("CategoryMapper", words, default_int64=-7, **known)
    yield stated(ml("CategoryMapper", words, label="by default", **known),
                 np.array([[1, 5], [3, -1]]))
    yield stated(ml("CategoryMapper", x, label="by default", **known),
                 np.array([["", "a"], ["b", "_Unused"]], object))


def places(rng):
    """Strings and their places in a list: version 1 of LabelEncoder."""
    words = np.array([["b", "a"], ["", "b"]], object)
    yield ml("LabelEncoder", words, classes_strings=["a", "b"], default_int64=9)
    yield stated(ml("LabelEncoder", words, classes_strings=["", "b"], label="by default"),
                 np.array([[1, -1], [0, 1]]))
    yield ml("LabelEncoder", np.array([[1, 0], [2, -1]]), classes_strings=["a", "b"],
             default_string="none")


def labels(version, rng):
    if version == 1:
        yield from places(rng)
        return
    x = np.array([[3, 5], [1, 4]])
    yield ml("LabelEncoder", x, keys_int64s=[1, 3, 5], values_int64s=[10, 30, 50], default_int64=9)
    yield ml("LabelEncoder", x, keys_int64s=[1, 3, 5], values_floats=[1.5, 2.5, 3.5],
             default_float=0.25)
    yield ml("LabelEncoder", np.array([1.5, np.nan, 2.5], F32),
             keys_floats=[2.5, 1.5], values_int64s=[7, 8])
    yield ml("LabelEncoder", np.array([1.5, 9, 2.5], F32), keys_floats=[2.5, 1.5],
             values_floats=[7.0, 8.0])
    words = np.array([["b", "a"], ["", "b"]], object)
    yield ml("LabelEncoder", words, keys_strings=["a", "b"], values_int64s=[5, 6])
    yield ml("LabelEncoder", words, keys_strings=["a", "b"], values_strings=["x", "y"], default_string="none")
    yield ml("LabelEncoder", x, keys_int64s=[1, 3, 5], values_strings=["one", "three", ""])
    if version >= 4:
        yield ml("LabelEncoder", np.array([2.5, 1, 7], F64), keys_tensor=numpy_helper.from_array(
            np.array([1.0, 2.5])), values_tensor=numpy_helper.from_array(np.array([4.0, 5.0])),
            default_tensor=numpy_helper.from_array(np.array([-2.0])))


def classifier(version, rng):
    for rows, classes, transform in ((3, 3, "NONE"), (3, 3, "LOGISTIC"), (3, 3, "SOFTMAX"),
                                     (2, 2, "NONE"), (1, 2, "LOGISTIC")):
        case = ml("LinearClassifier", some(rng, (5, 4)), post_transform=transform,
                  coefficients=[float(v) for v in some(rng, (rows * 4,))],
                  intercepts=[float(v) for v in some(rng, (rows,))],
                  classlabels_ints=[4, 2, 7][:classes], terms=4)
        yield outputs(case, "y", "scores")
    case = ml("LinearClassifier", some(rng, (5, 4)), coefficients=[float(v) for v in some(rng, (12,))],
              intercepts=[0.5, 0.25, 1.0], classlabels_strings=["a", "", "c"], terms=4)
    yield outputs(case, "y", "scores")


def regressor(version, rng):
    for targets in (1, 3):
        yield ml("LinearRegressor", some(rng, (5, 4)), targets=targets, terms=4,
                 coefficients=[float(v) for v in some(rng, (targets * 4,))],
                 intercepts=[float(v) for v in some(rng, (targets,))])


def normalizer(version, rng):
    for norm in ("MAX", "L1", "L2"):
        x = np.abs(some(rng, (3, 4))) if norm == "MAX" else some(rng, (3, 4))  # signed in the runtime
        yield ml("Normalizer", x, norm=norm)


def one_hot(version, rng):
    yield ml("OneHotEncoder", np.array([[3, 5], [1, 4]]), cats_int64s=[5, 1, 3], zeros=1)
    yield ml("OneHotEncoder", np.array([3.0, 5, 1], F32), cats_int64s=[5, 1, 3])
    yield ml("OneHotEncoder", np.array(["c", "a"], object), cats_strings=["a", "b", "c"])


def scaler(version, rng):
    x = some(rng, (3, 4))
    yield ml("Scaler", x, offset=[1.5], scale=[2.0])
    yield ml("Scaler", x, offset=[1.5, 2.5, 0.0, -1.0], scale=[2.0, 1.0, 0.5, 3.0])
    yield ml("Scaler", np.array([[3, 5], [1, 4]]), offset=[0.5], scale=[0.25])


# ---- Trees ----

MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


def forest(rng, trees, features, modes, depth=3):
    """Lists the nodes of trees, and the leaves. Cases give a leaf weights of all targets: the runtime
    leaves base values out, and does not choose a class, where no weight is."""
    nodes = {k: [] for k in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids",
                             "falsenodeids")}
    leaves = []

    def grow(tree, level, numbers):
        own = next(numbers)
        is_leaf = level == depth or (level and rng.random() < 0.2)
        at = len(nodes["nodeids"])
        for key, v in zip(nodes, (tree, own, int(rng.integers(features)), float(rng.integers(-3, 3)),
                                  "LEAF" if is_leaf else str(rng.choice(modes)), 0, 0)):
            nodes[key].append(v)
        if is_leaf:
            leaves.append((tree, own))
            return own
        nodes["truenodeids"][at] = grow(tree, level + 1, numbers)
        nodes["falsenodeids"][at] = grow(tree, level + 1, numbers)
        return own
    for tree in range(trees):
        grow(tree, 0, itertools.count())
    return {f"nodes_{k}": v for k, v in nodes.items()}, leaves


def tree_regressor(version, rng):
    for how, targets, modes in (("SUM", 1, MODES[:1]), ("AVERAGE", 2, MODES), ("MIN", 1, MODES[:2]),
                                ("MAX", 1, MODES[2:4]), ("SUM", 3, MODES[1:2])):
        nodes, leaves = forest(rng, 4, 5, modes)
        leaves = [leaf for leaf in leaves for _ in range(targets)]
        x = rng.integers(-4, 4, (20, 5)).astype(F32)
        x[0, :] = np.nan
        yield ml("TreeEnsembleRegressor", x, **nodes, n_targets=targets, aggregate_function=how,
                 nodes_missing_value_tracks_true=[int(v) for v in rng.integers(
                     0, 2 if how == "AVERAGE" else 1, len(nodes["nodes_nodeids"]))],
                 target_treeids=[t for t, _ in leaves], target_nodeids=[n for _, n in leaves],
                 target_ids=[i % targets for i in range(len(leaves))],
                 target_weights=[float(v) for v in some(rng, (len(leaves),))], terms=4,
                 **({"base_values": [1.5] * targets} if how == "SUM" else {}))
    # a target that no leaf of a row has is 0; integers beyond f32's precision are told apart
    nodes = dict(nodes_treeids=[0, 0, 0], nodes_nodeids=[0, 1, 2], nodes_featureids=[0, 0, 0],
                 nodes_values=[float(2**24), 0.0, 0.0], nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"],
                 nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0])
    x = np.array([[2**24], [2**24 + 1]])
    for how in ("MIN", "MAX"):
        yield stated(ml("TreeEnsembleRegressor", x, **nodes, n_targets=2, aggregate_function=how,
                        target_treeids=[0, 0, 0], target_nodeids=[1, 2, 2], target_ids=[0, 0, 1],
                        target_weights=[2.0, 3.0, 4.0]), np.array([[2, 0], [3, 4]], F32))


def tree_classifier(version, rng):
    for classes, transform in ((3, "NONE"), (3, "SOFTMAX"), (2, "NONE"), (2, "LOGISTIC")):
        nodes, leaves = forest(rng, 4, 5, MODES[:1])
        leaves = [leaf for leaf in leaves for _ in range(classes if classes > 2 else 1)]
        weights = some(rng, (len(leaves),))
        if classes == 2 and transform == "NONE":
            weights = np.abs(weights) / 8
        ids = [i % classes for i in range(len(leaves))] if classes > 2 else [0] * len(leaves)
        x = rng.integers(-4, 4, (20, 5)).astype(F32)
        case = ml("TreeEnsembleClassifier", x, **nodes, class_treeids=[t for t, _ in leaves],
                  class_nodeids=[n for _, n in leaves], class_ids=ids, post_transform=transform,
                  class_weights=[float(v) for v in weights], terms=4,
                  **({"classlabels_strings": ["x", "", "z"]} if transform == "SOFTMAX" else
                     {"classlabels_int64s": [5, 3, 8][:classes]}))
        yield outputs(case, "y", "scores")


def tree_ensemble(version, rng):
    def tensor(values, dtype=F32):
        return numpy_helper.from_array(np.array(values, dtype))
    x = rng.integers(-3, 4, (12, 3)).astype(F32)
    shape = dict(nodes_featureids=[0, 1, 2], nodes_truenodeids=[1, 0, 2], nodes_falsenodeids=[2, 1, 3],
                 nodes_trueleafs=[0, 1, 1], nodes_falseleafs=[0, 1, 1], tree_roots=[0],
                 leaf_targetids=[0, 1, 1, 0], n_targets=2)
    # Member sets are those that a mode of 6 takes from the list, up to a NaN.
    for how, modes in ((1, [0, 1, 3]), (1, [4, 5, 2]), (1, [0, 6, 6])):
        members = {"membership_values": tensor([1, 3, np.nan, -2, 0, 2, np.nan])} if 6 in modes else {}
        yield ml("TreeEnsemble", x, **shape, nodes_modes=tensor(modes, np.uint8), **members,
                 nodes_splits=tensor([0, 1, -1]), leaf_weights=tensor([1.5, 2.5, -3, 4]),
                 aggregate_function=how, label=str(modes))


# ---- Training ----

def optimizer(name, states, **attributes):
    def cases(version, rng):
        for step, shapes in ((0, [(2, 3)]), (3, [(4,), (2, 3)]), (2, [(2,), (3, 1)])):
            groups = [[some(rng, s) for s in shapes] for _ in range(2)]
            groups += [[np.abs(some(rng, s)) for s in shapes] for _ in range(states)]
            case = one(f"ai.onnx.preview.training.{name}", np.array(0.1, F32), np.array(step, I64),
                       *[x for g in groups for x in g], label=f"step {step}", **attributes)
            yield outputs(case, *[f"y{i}" for i in range(len(shapes) * (1 + states))])
    return cases


def momentum(version, rng):
    for mode in ("standard", "nesterov"):
        yield from optimizer("Momentum", 1, alpha=0.9, beta=0.3, norm_coefficient=0.1, mode=mode)(
            version, rng)


# ---- Preview ----

def modification(rank_op, **attributes):
    """A graph of one operation on a float tensor of four axes."""
    shape = ["b", "h", "l", "s"]
    return helper.make_graph([helper.make_node(rank_op, ["s"], ["t"], **attributes)], "change",
                             [helper.make_tensor_value_info("s", TensorProto.FLOAT, shape)],
                             [helper.make_tensor_value_info("t", TensorProto.FLOAT, shape)])


def floats(rng, n):
    return [float(v) for v in some(rng, (n,))]


def svm_regressor(version, rng):
    for kernel in ("LINEAR", "POLY", "RBF", "SIGMOID"):
        yield ml("SVMRegressor", some(rng, (5, 4)), kernel_type=kernel, n_supports=3, terms=12,
                 kernel_params=[0.5, 0.25, 2.0], coefficients=floats(rng, 3), rho=[0.5],
                 support_vectors=floats(rng, 12))
    yield ml("SVMRegressor", some(rng, (5, 4)), coefficients=floats(rng, 4), rho=[0.5], terms=4)
    yield ml("SVMRegressor", some(rng, (9, 4)), coefficients=floats(rng, 4), rho=[0.1], one_class=1)


def svm_classifier(version, rng):
    for kernel, by_class, transform in (("RBF", [2, 1, 3], "NONE"), ("POLY", [2, 2, 2], "LOGISTIC"),
                                        ("LINEAR", [1, 4, 1], "SOFTMAX"), ("SIGMOID", [3, 3], "NONE"),
                                        ("RBF", [4, 2], "LOGISTIC")):
        n = len(by_class)
        case = ml("SVMClassifier", some(rng, (7, 4)), kernel_type=kernel, post_transform=transform,
                  kernel_params=[0.5, 0.25, 2.0], coefficients=[-0.5, *floats(rng, 6 * (n - 1) - 1)],
                  rho=floats(rng, n * (n - 1) // 2), support_vectors=floats(rng, 24),
                  vectors_per_class=by_class, classlabels_ints=[4, 2, 7][:n], terms=24)
        yield outputs(case, "y", "scores")
    case = ml("SVMClassifier", some(rng, (7, 4)), coefficients=floats(rng, 12), rho=[0.25],
              kernel_type="LINEAR", kernel_params=[0.0, 0.0, 0.0],
              classlabels_ints=[4, 2, 7], terms=4)
    yield outputs(case, "y", "scores")


def zip_map(version, rng):
    """Maps are rows of their values; of one row of values there is one map."""
    x = some(rng, (3, 2))
    yield stated(ml("ZipMap", x, classlabels_int64s=[4, 2]), x)
    yield stated(ml("ZipMap", x[0], classlabels_strings=["no", "yes"]), x[:1])


def taking_map(op, given, label="", more=(), **attributes):
    return Case(f"{op}({given}) {attributes} {label}", [(f"ai.onnx.ml.{op}", ["x"], ["y"], attributes)],
                {"x": In(given)}, ["y"], more=[{"x": m} for m in more])


def cast_map(version, rng):
    """The runtime takes maps to floats alone, and writes floats with six decimal places."""
    x = {5: 1.5, -2: -2.75, 3: 1e6, 4: 0.25}
    for to in ("TO_FLOAT", "TO_INT64"):
        yield taking_map("CastMap", x, cast_to=to, more=[{1: 2.5}, {n: float(-n) for n in range(90, 0, -7)}])
        yield taking_map("CastMap", {3: 1.5, 0: -2.5, 9: 7.0}, cast_to=to, map_form="SPARSE", max_map=5,
                         more=[{4: 2.5}, {5: 2.5}])
    yield stated(taking_map("CastMap", {3: 1.5, 1: -2.0}, cast_to="TO_STRING"), np.array([["-2", "1.5"]], object))
    yield stated(taking_map("CastMap", {2: 1.5, -1: 4.0}, cast_to="TO_STRING", map_form="SPARSE", max_map=4),
                 np.array([["0.f", "0.f", "1.5", "0.f"]], object))
    words = {3: "1.5", 1: "7"}
    yield stated(taking_map("CastMap", words, cast_to="TO_STRING"), np.array([["7", "1.5"]], object))
    yield stated(taking_map("CastMap", words, cast_to="TO_FLOAT"), np.array([[7, 1.5]], F32))
    yield stated(taking_map("CastMap", {3: "15", 1: "7"}, cast_to="TO_INT64"), np.array([[7, 15]]))


def vectorizer_of_maps(version, rng):
    x = {"a": 1.5, "b": -2.5}
    more = [{"c": 1.0, "elsewhere": 2.0, "b": float("nan")}, {"": 3.0}]
    yield taking_map("DictVectorizer", x, string_vocabulary=["b", "c", "a"], more=more)
    yield taking_map("DictVectorizer", {7: 1.5, 9: 4.0}, int64_vocabulary=[7, 8, 7, -1], more=[{-1: 2.5, 7: 3.0}])
    for t in (int, np.float64):
        yield stated(taking_map("DictVectorizer", {"a": t(4), "c": t(8)}, string_vocabulary=["a", "c", "b", "z"]),
                     np.array([[4, 8, 0, 0]], np.dtype(t)))
    yield stated(taking_map("DictVectorizer", {7: "x", 5: "y"}, int64_vocabulary=[5, 6, 7]),
                 np.array([["y", "", "x"]], object))


def flex_attention(version, rng):
    def made(q, k, v, label="", t=F32, **attributes):
        return one("ai.onnx.preview.FlexAttention", some(rng, q, t), some(rng, k, t), some(rng, v, t),
                   terms=8, label=label, **attributes)
    yield made((2, 4, 3, 8), (2, 4, 5, 8), (2, 4, 5, 6))
    yield made((2, 4, 3, 8), (2, 2, 5, 8), (2, 2, 5, 8), scale=0.25, label="with fewer heads")
    yield made((1, 2, 3, 8), (1, 2, 5, 8), (1, 2, 5, 8), score_mod=modification("Tanh"))
    yield made((1, 2, 3, 8), (1, 2, 5, 8), (1, 2, 5, 8), prob_mod=modification("Sqrt"))
    yield made((1, 2, 3, 8), (1, 2, 5, 8), (1, 2, 5, 8), t=F64)
    yield made((1, 2, 3, 8), (1, 2, 5, 8), (1, 2, 5, 8), t=F16)


OPERATORS = {
    "ai.onnx.ml.ArrayFeatureExtractor": extractor, "ai.onnx.ml.Binarizer": binarizer,
    "ai.onnx.ml.FeatureVectorizer": vectorizer, "ai.onnx.ml.Imputer": imputer,
    "ai.onnx.ml.CategoryMapper": categories,
    "ai.onnx.ml.LabelEncoder": labels, "ai.onnx.ml.LinearClassifier": classifier,
    "ai.onnx.ml.LinearRegressor": regressor, "ai.onnx.ml.Normalizer": normalizer,
    "ai.onnx.ml.OneHotEncoder": one_hot, "ai.onnx.ml.Scaler": scaler,
    "ai.onnx.ml.TreeEnsemble": tree_ensemble, "ai.onnx.ml.TreeEnsembleRegressor": tree_regressor,
    "ai.onnx.ml.TreeEnsembleClassifier": tree_classifier,
    "ai.onnx.ml.SVMClassifier": svm_classifier, "ai.onnx.ml.SVMRegressor": svm_regressor,
    "ai.onnx.ml.ZipMap": zip_map,
    "ai.onnx.ml.CastMap": cast_map,
    "ai.onnx.ml.DictVectorizer": vectorizer_of_maps,
    "ai.onnx.preview.training.Adagrad": optimizer("Adagrad", 1, norm_coefficient=0.1, epsilon=1e-3,
                                                  decay_factor=0.1),
    "ai.onnx.preview.training.Adam": optimizer("Adam", 2, norm_coefficient=0.1, epsilon=1e-3,
                                               alpha=0.8, beta=0.9, norm_coefficient_post=0.2),
    "ai.onnx.preview.training.Momentum": momentum,
    "ai.onnx.preview.training.Gradient": operators_gradient.gradient,
    "ai.onnx.preview.FlexAttention": flex_attention,
}
