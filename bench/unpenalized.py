"""scikit-learn's LogisticRegression, which does not penalize the intercept, from svmlight text: python3 unpenalized.py TEXT OPTIMUM NEAR
Several classes are fitted by softmax. Each tolerance is tried, from the loosest on, until the objective is within NEAR of OPTIMUM. Prints one
JSON object: the seconds of reading and of the fit that arrived."""
import json
import sys
import time
import warnings

import numpy as np
from scipy.special import logsumexp
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression

COST = 1.0
TOLERANCES = (1e2, 1e1, 1e0, 1e-1, 1e-2, 1e-3, 1e-4)  # the last is scikit-learn's default
MOST_ITERATIONS = 10_000


def objective(model: LogisticRegression, rows, labels: np.ndarray) -> float:
    scores = model.decision_function(rows)
    if scores.ndim == 1:
        losses = np.logaddexp(0, np.where(labels == model.classes_[1], -scores, scores))
    else:
        losses = logsumexp(scores, axis=1) - scores[np.arange(len(labels)), np.searchsorted(model.classes_, labels)]
    return float((model.coef_ ** 2).sum() / 2 + COST * losses.sum())


def main() -> None:
    text, optimum, near = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
    begin = time.perf_counter()
    rows, labels = load_svmlight_file(text, zero_based=False)
    reading = time.perf_counter() - begin
    for tolerance in TOLERANCES:
        model = LogisticRegression(C=COST, tol=tolerance, max_iter=MOST_ITERATIONS)
        begin = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # where it does not arrive, `above` says so
            model.fit(rows, labels)
        fitting = time.perf_counter() - begin
        above = objective(model, rows, labels) / optimum - 1
        if above <= near:
            break
    print(json.dumps({"seconds": reading + fitting, "reading": reading, "tolerance": tolerance, "iterations": int(max(model.n_iter_)), "above": above}))


main()
