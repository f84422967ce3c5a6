"""What a peer's training alone takes, with its rows in memory: python3 rows_in_memory.py PEER TEXT LOSS OPTIMUM [SETTING...]
OPTIMUM: the least objective known of each classifier, in the order of the labels, with commas. SETTING: SOLVER:TOLERANCE, of Snap ML
:EPOCHS. Without one, each solver is tried from the loosest setting on, until all its classifiers are within 1% of the optimum, and the
fastest is taken. Prints one JSON object."""
import ctypes
import json
import sys
import time
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix

COST, NEAR, THREADS = 1.0, 0.01, 2
SOLVERS = {"hinge": ("3",), "squared-hinge": ("1", "2"), "logistic": ("7", "0")}
TOLERANCES = (100, 30, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 5e-4, 2e-4, 1e-4, 1e-5)
EPOCHS = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 100, 200, 500)
LOSSES = {"hinge": lambda margins: np.maximum(0, 1 - margins), "squared-hinge": lambda margins: np.maximum(0, 1 - margins) ** 2,
          "logistic": lambda margins: np.logaddexp(0, -margins)}


def read(text: Path) -> tuple[csr_matrix, np.ndarray]:
    """From arrays beside the text, made once: scikit-learn's reader takes longer than most trainings."""
    arrays = text.with_suffix(".npz")
    if not arrays.exists():
        from sklearn.datasets import load_svmlight_file  # which takes a second
        rows, labels = load_svmlight_file(str(text), zero_based=False)
        partial = text.with_suffix(".partial.npz")
        np.savez(partial, data=rows.data, indices=rows.indices, indptr=rows.indptr, shape=rows.shape, labels=labels)
        partial.rename(arrays)
    found = np.load(arrays)
    return csr_matrix((found["data"], found["indices"], found["indptr"]), found["shape"]), found["labels"]


class Liblinear:
    """The C library with the rows as its own programs hold them: 16 bytes per nonzero."""

    def __init__(self, library: str, fields: tuple, rows: csr_matrix, labels: np.ndarray):
        class Parameter(ctypes.Structure):
            _fields_ = (("solver", ctypes.c_int), ("tolerance", ctypes.c_double), ("cost", ctypes.c_double), ("weights", ctypes.c_int), ("weight_label", ctypes.c_void_p),
                        ("weight", ctypes.c_void_p), ("p", ctypes.c_double), *fields)

        class Problem(ctypes.Structure):
            _fields_ = (("rows", ctypes.c_int), ("features", ctypes.c_int), ("labels", ctypes.c_void_p), ("begins", ctypes.c_void_p), ("bias", ctypes.c_double))

        class Model(ctypes.Structure):
            _fields_ = (("parameter", Parameter), ("classes", ctypes.c_int), ("features", ctypes.c_int), ("weights", ctypes.POINTER(ctypes.c_double)),
                        ("labels", ctypes.POINTER(ctypes.c_int)), ("bias", ctypes.c_double))

        self.library, self.parameter, self.quiet = ctypes.CDLL(library), Parameter, ctypes.CFUNCTYPE(None, ctypes.c_char_p)(lambda _: None)
        self.library.train.restype = ctypes.POINTER(Model)
        self.library.set_print_string_function(self.quiet)
        count = np.arange(rows.shape[0])
        self.nodes = np.zeros(rows.nnz + len(count), np.dtype([("index", np.int32), ("value", float)], align=True))
        self.nodes["index"] = -1  # which ends a row
        places = np.arange(rows.nnz) + np.repeat(count, np.diff(rows.indptr))
        self.nodes["index"][places], self.nodes["value"][places] = rows.indices + 1, rows.data
        self.begins = (self.nodes.ctypes.data + self.nodes.itemsize * (rows.indptr[:-1] + count)).astype(np.uint64)
        self.labels = labels.astype(float)
        self.problem = Problem(*rows.shape, self.labels.ctypes.data, self.begins.ctypes.data, -1)

    def train(self, solver: str, tolerance: float) -> tuple[float, np.ndarray]:
        """Seconds, and weights with a column for each classifier, in the order of the labels; the larger of two labels is positive."""
        parameter = self.parameter(int(solver), tolerance, COST, p=0.1)
        if hasattr(parameter, "regularize_bias"):
            parameter.regularize_bias = 1
        ctypes.CDLL(None).srand(1)  # as in a program that has just been started
        begin = time.perf_counter()
        model = self.library.train(ctypes.byref(self.problem), ctypes.byref(parameter))
        seconds = time.perf_counter() - begin
        labels, columns = model[0].labels[:model[0].classes], 1 if model[0].classes == 2 else model[0].classes
        weights = np.array(model[0].weights[:model[0].features * columns]).reshape(-1, columns)
        self.library.free_and_destroy_model(ctypes.byref(model))
        return seconds, weights[:, np.argsort(labels)] if columns > 1 else weights if labels[0] > labels[1] else -weights


class Snap:
    def __init__(self, rows: csr_matrix, labels: np.ndarray):
        self.rows, self.labels = rows, labels

    def train(self, _: str, epochs: float) -> tuple[float, np.ndarray]:
        from snapml import LogisticRegression
        model = LogisticRegression(n_jobs=THREADS, regularizer=1 / COST, max_iter=int(epochs), tol=1e-12, fit_intercept=False, random_state=1)
        begin = time.perf_counter()
        model.fit(self.rows, self.labels)
        return time.perf_counter() - begin, np.asarray(model.coef_).reshape(-1, self.rows.shape[1]).T


def start(peer: str, rows: csr_matrix, labels: np.ndarray) -> Liblinear | Snap:
    if peer == "snapml":
        return Snap(rows, labels)
    initial = ("initial", ctypes.c_void_p)
    if peer == "liblinear":  # Debian's
        return Liblinear("liblinear.so.4", (initial,), rows, labels)
    import liblinear
    fields = (("nu", ctypes.c_double), initial, ("regularize_bias", ctypes.c_int), ("w_recalc", ctypes.c_bool))
    return Liblinear(str(next(Path(liblinear.__file__).parent.glob("clib*.so"))), fields, rows, labels)


def above(weights: np.ndarray, rows: csr_matrix, labels: np.ndarray, loss: str, optima: np.ndarray) -> float:
    """Of the classifier that is furthest from its optimum, as a part of it."""
    classes = np.unique(labels)
    positive = labels[:, None] == (classes if len(classes) > 2 else classes[1:])
    objectives = (weights ** 2).sum(0) / 2 + COST * LOSSES[loss]((rows @ weights) * np.where(positive, 1, -1)).sum(0)
    return float((objectives / optima - 1).max())


def main() -> None:
    peer, text, loss, optimum, *settings = sys.argv[1:]
    rows, labels = read(Path(text))
    trainer, tried, best = start(peer, rows, labels), [], None

    def attempt(solver: str, tolerance: float) -> dict:
        seconds, weights = trainer.train(solver, tolerance)
        tried.append({"setting": f"{solver}:{tolerance:g}", "seconds": seconds, "above": above(weights, rows, labels, loss, np.array(optimum.split(","), float))})
        return tried[-1]

    for setting in settings:
        solver, tolerance = setting.split(":")
        attempt(solver, float(tolerance))
    for solver in () if settings else SOLVERS[loss] if peer != "snapml" else ("",):
        for tolerance in TOLERANCES if solver else EPOCHS:
            found = attempt(solver, tolerance)
            if found["above"] <= NEAR:
                best = found if best is None or found["seconds"] < best["seconds"] else best
            if found["above"] <= NEAR or best and found["seconds"] > best["seconds"]:
                break  # what comes next takes longer
    print(json.dumps((tried[0] if settings else best or min(tried, key=lambda one: one["above"])) | {"tried": tried}))


main()
