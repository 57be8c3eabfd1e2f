"""Small predictors of scikit-learn, fitted to seeded data, with their types of inputs."""
import numpy as np
from sklearn import (cluster, compose, decomposition, discriminant_analysis, ensemble,
                     feature_extraction, gaussian_process, linear_model, naive_bayes, neighbors,
                     neural_network, pipeline, preprocessing, svm, tree)
from sklearn.impute import SimpleImputer
from skl2onnx.common.data_types import FloatTensorType, Int64TensorType, StringTensorType

FEATURES = 5
ROWS = [1, 7, 40]


def data():
    rng = np.random.default_rng(11)
    x = rng.standard_normal((120, FEATURES)).astype(np.float32)
    score = x[:, 0] + np.sin(2 * x[:, 1]) - x[:, 2] * x[:, 3]
    return x, score.astype(np.float32), np.digitize(score, [-0.7, 0.7]), (score > 0).astype(int)


X, NUMBER, THREE, TWO = data()
GIVEN = [X[:n] + np.float32(0.01) for n in ROWS]
TEXTS = ["The cat sat on the mat", "Dogs and cats, cats and dogs", "rain in spain", "a plain cat",
         "Once upon a time in the west", "no rain today", "the west wind", "mats for cats"]


def of_numbers(model, target, **options):
    return model.fit(X, target), [("x", FloatTensorType([None, FEATURES]))], \
        [{"x": g} for g in GIVEN], options


def mixed():
    rng = np.random.default_rng(5)
    town = rng.integers(0, 4, (120, 1))
    columns = compose.ColumnTransformer([
        ("n", pipeline.make_pipeline(SimpleImputer(), preprocessing.StandardScaler()), [0, 1, 2]),
        ("c", preprocessing.OneHotEncoder(handle_unknown="ignore"), [3])])
    x = np.hstack([X[:, :3], town.astype(np.float32)])
    model = pipeline.make_pipeline(columns, linear_model.LogisticRegression())
    return model.fit(x, TWO), [("x", FloatTensorType([None, 4]))], \
        [{"x": x[:n].astype(np.float32)} for n in ROWS], {"zipmap": False}


def texts():
    model = pipeline.make_pipeline(feature_extraction.text.TfidfVectorizer(lowercase=False),
                                   linear_model.LogisticRegression())
    model.fit(TEXTS, [0, 1, 0, 1, 0, 0, 0, 1])
    return model, [("text", StringTensorType([None, 1]))], \
        [{"text": np.array(TEXTS[:n]).reshape(-1, 1)} for n in (1, 3, 8)], {"zipmap": False}


def towns():
    names = np.array(["Rome", "Oslo", "Bern", "Riga"])
    rng = np.random.default_rng(5)
    town = names[rng.integers(0, 4, (120, 1))]
    model = pipeline.make_pipeline(preprocessing.OneHotEncoder(handle_unknown="ignore"),
                                   linear_model.Ridge())
    return model.fit(town, NUMBER), [("town", StringTensorType([None, 1]))], \
        [{"town": town[:n]} for n in ROWS], {}


def words():
    """Classes are texts."""
    return of_numbers(linear_model.LogisticRegression(),
                      np.array(["low", "middle", "high"])[THREE], zipmap=False)


def counts():
    x = np.clip(np.round(X * 2), -4, 4).astype(np.int64)
    return tree.DecisionTreeClassifier(max_depth=4, random_state=0).fit(x, TWO), \
        [("x", Int64TensorType([None, FEATURES]))], [{"x": x[:n]} for n in ROWS], {"zipmap": False}


def scaled(*steps):
    return pipeline.make_pipeline(preprocessing.StandardScaler(), *steps)


MODELS = {
    "linear": lambda: of_numbers(linear_model.LinearRegression(), NUMBER),
    "ridge": lambda: of_numbers(pipeline.make_pipeline(
        preprocessing.PolynomialFeatures(2), linear_model.Ridge()), NUMBER),
    "logistic": lambda: of_numbers(scaled(linear_model.LogisticRegression()), THREE, zipmap=False),
    "logistic2": lambda: of_numbers(linear_model.LogisticRegression(), TWO, zipmap=False),
    "logistic_maps": lambda: of_numbers(linear_model.LogisticRegression(), THREE),
    "logistic_texts": words,
    "sgd": lambda: of_numbers(linear_model.SGDClassifier(random_state=0), TWO, zipmap=False),
    "tree": lambda: of_numbers(tree.DecisionTreeRegressor(max_depth=5, random_state=0), NUMBER),
    "tree_counts": counts,
    "forest": lambda: of_numbers(ensemble.RandomForestClassifier(
        10, max_depth=5, random_state=0), THREE, zipmap=False),
    "forest_maps": lambda: of_numbers(ensemble.RandomForestClassifier(
        8, max_depth=4, random_state=0), TWO),
    "forest_number": lambda: of_numbers(ensemble.RandomForestRegressor(
        10, max_depth=5, random_state=0), NUMBER),
    "boosting": lambda: of_numbers(ensemble.GradientBoostingClassifier(
        n_estimators=12, random_state=0), TWO, zipmap=False),
    "boosting3": lambda: of_numbers(ensemble.GradientBoostingClassifier(
        n_estimators=8, random_state=0), THREE, zipmap=False),
    "boosting_number": lambda: of_numbers(ensemble.GradientBoostingRegressor(
        n_estimators=12, random_state=0), NUMBER),
    "outliers": lambda: of_numbers(ensemble.IsolationForest(n_estimators=4, max_samples=32, random_state=0), None),
    "svc": lambda: of_numbers(svm.SVC(random_state=0), THREE, zipmap=False),
    "svr": lambda: of_numbers(svm.SVR(), NUMBER),
    "linear_svc": lambda: of_numbers(svm.LinearSVC(random_state=0), THREE),
    "perceptron": lambda: of_numbers(scaled(neural_network.MLPClassifier(
        (8, 6), max_iter=40, random_state=0)), THREE, zipmap=False),
    "perceptron_number": lambda: of_numbers(neural_network.MLPRegressor(
        hidden_layer_sizes=(8,), max_iter=40, random_state=0), NUMBER),
    "bayes": lambda: of_numbers(naive_bayes.GaussianNB(), THREE, zipmap=False),
    "discriminant": lambda: of_numbers(discriminant_analysis.LinearDiscriminantAnalysis(), THREE,
                                       zipmap=False),
    "neighbours": lambda: of_numbers(neighbors.KNeighborsClassifier(5), THREE, zipmap=False),
    "neighbours_number": lambda: of_numbers(neighbors.KNeighborsRegressor(3), NUMBER),
    "clusters": lambda: of_numbers(cluster.KMeans(4, random_state=0, n_init=2), None),
    "components": lambda: of_numbers(pipeline.make_pipeline(
        preprocessing.MinMaxScaler(), decomposition.PCA(3)), None),
    "directions": lambda: of_numbers(pipeline.make_pipeline(
        preprocessing.Normalizer(), preprocessing.KBinsDiscretizer(
            4, encode="ordinal", quantile_method="linear"), linear_model.Ridge()), NUMBER),
    "process": lambda: of_numbers(gaussian_process.GaussianProcessRegressor(), NUMBER),
    "voting": lambda: of_numbers(ensemble.VotingClassifier(
        [("a", linear_model.LogisticRegression()), ("b", naive_bayes.GaussianNB())],
        voting="soft", flatten_transform=False), THREE, zipmap=False),
    "adaboost": lambda: of_numbers(ensemble.AdaBoostClassifier(
        n_estimators=5, random_state=0), THREE, zipmap=False),
    "mixed": mixed,
    "texts": texts,
    "towns": towns,
}
