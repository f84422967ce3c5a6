"""Objectives and optima in 60 digits, written anew from docs/solvers.md: nothing here is shared with linblock."""
import dataclasses

from mpmath import mp, mpf

mp.dps = 60
ROUNDING = mpf(2) ** -50  # of a sum in double, for each of its terms


@dataclasses.dataclass
class Example:
    label: int
    x: list  # values of all features, the bias last where there is one
    cost: object


def hinge(margin):
    return max(mpf(0), 1 - margin)


def squared_hinge(margin):
    return hinge(margin) ** 2


def logistic(margin):
    return mp.log1p(mp.exp(-margin)) if margin > 0 else -margin + mp.log1p(mp.exp(margin))


LOSSES = {"hinge": hinge, "squared-hinge": squared_hinge, "logistic": logistic}


def derivatives(loss, margin):
    """First and second, generalized at a corner."""
    if loss == "squared-hinge":
        return (-2 * (1 - margin), mpf(2)) if margin < 1 else (mpf(0), mpf(0))
    share = 1 / (1 + mp.exp(margin))
    return -share, share * (1 - share)


def dot(a, b):
    return mp.fsum(p * q for p, q in zip(a, b))


def objective(loss, examples, positive, w, cap=None):
    """1/2 |w|^2 + sum of cost * loss, and how much rounding in double may honestly change it."""
    value, honest = dot(w, w) / 2, dot(w, w) * ROUNDING
    function = LOSSES[loss]
    for one in examples:
        if one.cost == 0:
            continue
        sign = 1 if one.label == positive else -1
        margin = sign * dot(w, one.x)
        slip = ROUNDING * (1 + mp.fsum(abs(p * q) for p, q in zip(w, one.x)))
        here = function(margin) if cap is None else min(function(margin), cap)
        value += one.cost * here
        honest += one.cost * (function(margin - slip) - function(margin + slip) + ROUNDING * here)
    return value, honest


def class_objective(examples, labels, columns):
    """Crammer and Singer: 1/2 sum |w_m|^2 + sum of cost * max over m of (w_m.x - w_y.x + 1 - [m = y])."""
    value = mp.fsum(dot(w, w) for w in columns) / 2
    honest = value * ROUNDING
    for one in examples:
        scores = [dot(w, one.x) for w in columns]
        own = scores[labels.index(one.label)]
        worst = max(score for label, score in zip(labels, scores) if label != one.label)
        slip = ROUNDING * (1 + mp.fsum(abs(p * q) for w in columns for p, q in zip(w, one.x)))
        value += one.cost * max(mpf(0), worst - own + 1)
        honest += 2 * one.cost * slip
    return value, honest


def newton(loss, examples, positive, size, steps=120):
    """The optimum of a smooth loss, or the best value that was reached: an upper bound in any case."""
    signed = [([(1 if one.label == positive else -1) * v for v in one.x], one.cost) for one in examples if one.cost > 0]
    w = [mpf(0)] * size

    def value(at):
        return dot(at, at) / 2 + mp.fsum(cost * LOSSES[loss](dot(at, x)) for x, cost in signed)

    best = value(w)
    for _ in range(steps):
        gradient, hessian = list(w), mp.eye(size)
        for x, cost in signed:
            slope, bend = derivatives(loss, dot(w, x))
            for i in range(size):
                gradient[i] += cost * slope * x[i]
                for j in range(size):
                    hessian[i, j] += cost * bend * x[i] * x[j]
        # The objective is strongly convex with modulus 1: no more than |gradient|^2 / 2 can be gained.
        if dot(gradient, gradient) / 2 <= mpf(10) ** -25 * best:
            break
        step = mp.lu_solve(hessian, mp.matrix([-g for g in gradient]))
        slope, length = dot(gradient, step), mpf(1)
        while length > mpf(2) ** -60:
            trial = [a + length * b for a, b in zip(w, step)]
            reached = value(trial)
            if reached <= best + length * slope / 1000:
                break
            length /= 2
        else:
            break
        w, best = trial, reached
    return best


def hinge_ascent(examples, positive, size, sweeps=60):
    """An upper bound for the hinge: dual coordinate ascent, and the primal of what it makes."""
    rows = [([(1 if one.label == positive else -1) * v for v in one.x], one.cost) for one in examples if one.cost > 0]
    alphas, w, best = [mpf(0)] * len(rows), [mpf(0)] * size, None
    for _ in range(sweeps):
        for place, (x, cost) in enumerate(rows):
            norm = dot(x, x)
            if norm == 0:
                continue
            new = min(cost, max(mpf(0), alphas[place] - (dot(w, x) - 1) / norm))
            if new != alphas[place]:
                w = [a + (new - alphas[place]) * b for a, b in zip(w, x)]
                alphas[place] = new
        reached = dot(w, w) / 2 + mp.fsum(cost * hinge(dot(w, x)) for x, cost in rows)
        best = reached if best is None else min(best, reached)
    return best
