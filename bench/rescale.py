"""Svmlight text from stdin to stdout, changed so that every program gets the same problem."""
import argparse
import functools
import math
import sys

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--positive", type=float, metavar="LABEL", help="this label becomes +1, all others -1")
parser.add_argument("--divide", type=float, default=1, metavar="NUMBER", help="divide every value by this")
parser.add_argument("--unit-length", action="store_true", help="scale every row to unit length")
parser.add_argument("--part", choices=("train", "test"), help="test: every fifth row; train: the others")


@functools.lru_cache(1 << 16)
def quotient(value: bytes, divisor: float) -> bytes:
    return b"%.9g" % (float(value) / divisor)


def divided(features: bytes, divide: float, unit_length: bool) -> bytes:
    count = features.count(b":")
    if unit_length and features.count(b":1 ") + features.endswith(b":1") == count:  # all ones: most of the largest set
        return (features + b" ").replace(b":1 ", b":" + quotient(b"1", math.sqrt(max(count, 1))) + b" ").rstrip()
    pairs = [pair.split(b":") for pair in features.split()]
    divisor = (math.sqrt(sum(float(value) ** 2 for _, value in pairs)) or 1) if unit_length else divide
    return b" ".join(index + b":" + quotient(value, divisor) for index, value in pairs)


def changed(line: bytes, options: argparse.Namespace) -> bytes:
    label, _, features = line.strip().partition(b" ")
    if options.positive is not None:
        label = b"+1" if float(label) == options.positive else b"-1"
    if options.unit_length or options.divide != 1:
        features = divided(features, options.divide, options.unit_length)
    return label + b" " + features + b"\n"


chosen = parser.parse_args()
sys.stdout.buffer.writelines(changed(line, chosen) for number, line in enumerate(sys.stdin.buffer, start=1)
                             if chosen.part is None or (number % 5 == 0) == (chosen.part == "test"))
