"""scikit-learn's SGDClassifier from text to a model that LIBLINEAR's readers understand: python3 sgd.py TEXT MODEL"""
import sys

from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import SGDClassifier

COST = 1

rows, labels = load_svmlight_file(sys.argv[1])
# Its objective is the mean loss + alpha |w|^2 / 2: LIBLINEAR's, divided by cost times rows.
model = SGDClassifier(loss="hinge", alpha=1 / (len(labels) * COST)).fit(rows, labels)
with open(sys.argv[2], "w") as file:
    file.write(f"solver_type L2R_L1LOSS_SVC_DUAL\nnr_class 2\nlabel 1 -1\nnr_feature {rows.shape[1]}\nbias 1\nw\n")
    file.writelines(f"{weight:.17g} \n" for weight in (*model.coef_[0], model.intercept_[0]))
