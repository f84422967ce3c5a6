"""Data that dual descent is slow on, as svmlight text: python3 tables.py scales|counts ROWS
scales: a table of 20 columns, of which the smallest has values about 0.01 and the largest about 10,000, as a table that nobody has scaled.
counts: how often each of 2,000 words is in a document, some words being far more frequent than others; not normalized."""
import itertools
import random
import sys

COLUMNS, LEAST, MOST = 20, -2, 4  # powers of ten
WORDS, MEAN_LENGTH = 2000, 60
NOISE = 0.5


def scales(chance: random.Random) -> tuple[float, list[tuple[int, float]]]:
    values = [chance.gauss(0, 1) for _ in range(COLUMNS)]
    score = sum(value * weight for value, weight in zip(values, TRUTH)) / COLUMNS ** 0.5
    return score, [(number, value * 10 ** (LEAST + (MOST - LEAST) * number / (COLUMNS - 1))) for number, value in enumerate(values)]


def counts(chance: random.Random) -> tuple[float, list[tuple[int, float]]]:
    length = 5 + int(MEAN_LENGTH * chance.lognormvariate(0, 1))
    found: dict[int, int] = {}
    for word in chance.choices(range(WORDS), cum_weights=FREQUENT, k=length):
        found[word] = found.get(word, 0) + 1
    return sum(TRUTH[word] for word in found) / len(found) ** 0.5, sorted(found.items())


def main() -> None:
    make, rows, chance = {"scales": scales, "counts": counts}[sys.argv[1]], int(sys.argv[2]), random.Random(1)
    for _ in range(rows):
        score, values = make(chance)
        label = "+1" if score + NOISE * chance.gauss(0, 1) > 0 else "-1"
        print(label, *(f"{number + 1}:{value:.6g}" for number, value in values))


DRAWS = random.Random(2)
TRUTH = [DRAWS.gauss(0, 1) for _ in range(WORDS)]
FREQUENT = list(itertools.accumulate(1 / rank for rank in range(1, WORDS + 1)))
try:
    main()
except BrokenPipeError:  # whoever reads has enough
    sys.stderr.close()
