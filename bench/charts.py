"""Pictures of curves as SVG, for the pages in docs: small, readable on light and dark, and made from the same runs as the tables."""
import math
from collections.abc import Mapping, Sequence
from html import escape

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, LINE = 720, 380, 70, 52, 40, 18
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#000000")  # told apart by everybody
DASHES = ("", "6 3", "2 3")
Points = Sequence[tuple[float, float]]


class Axis:
    """Logarithmic; values that are 0 or less are drawn at the lower end."""

    def __init__(self, values: Sequence[float], begin: float, end: float, least: float = 0):
        positive = [max(value, least) for value in values if value > 0] or [1]
        self.low, self.high = math.log10(min(positive)), math.log10(max(positive))
        if self.high - self.low < 0.3:
            self.low, self.high = self.low - 0.2, self.high + 0.2
        self.begin, self.end = begin, end

    def __call__(self, value: float) -> float:
        share = ((math.log10(value) if value > 0 else self.low) - self.low) / (self.high - self.low)
        return self.begin + (self.end - self.begin) * min(1, max(0, share))

    def ticks(self) -> list[float]:
        powers = range(math.floor(self.low), math.ceil(self.high) + 1)
        steps = (1,) if self.high - self.low > 2.5 else (1, 2, 5)
        ticks = [step * 10.0 ** power for power in powers for step in steps]
        return [tick for tick in ticks if self.low - 0.01 <= math.log10(tick) <= self.high + 0.01]


def chart(title: str, across: str, upward: str, lines: Mapping[str, Points], least: float = 1e-5) -> str:
    """`least`: differences below it are drawn as it."""
    points = [point for line in lines.values() for point in line]
    right = WIDTH - 190
    x, y = Axis([p[0] for p in points], LEFT, right), Axis([p[1] for p in points], HEIGHT - BOTTOM, TOP, least)
    parts = [f'<text class="title" x="{LEFT}" y="22">{escape(title)}</text>',
             f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 12}" text-anchor="middle">{escape(across)}</text>',
             f'<text transform="translate(16 {(HEIGHT - BOTTOM + TOP) / 2}) rotate(-90)" text-anchor="middle">{escape(upward)}</text>']
    for tick in x.ticks():
        parts.append(f'<path class="grid" d="M{x(tick):.1f} {TOP}V{HEIGHT - BOTTOM}"/>'
                     f'<text x="{x(tick):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{tick:g}</text>')
    for tick in y.ticks():
        parts.append(f'<path class="grid" d="M{LEFT} {y(tick):.1f}H{right}"/>'
                     f'<text x="{LEFT - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for number, (name, line) in enumerate(lines.items()):
        look = f'stroke="{COLOURS[number % len(COLOURS)]}" stroke-dasharray="{DASHES[number // len(COLOURS) % len(DASHES)]}"'
        path = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in line)
        at = TOP + 8 + LINE * number
        parts.append(f'<polyline points="{path}" {look}/><path d="M{right + 14} {at}h22" {look}/>'
                     f'<text x="{right + 42}" y="{at + 4}">{escape(name)}</text>')
    style = ("text{font:12px sans-serif;fill:#555}.title{font-weight:bold;font-size:14px}polyline,path{fill:none;stroke-width:2}"
             ".grid{stroke:#8884;stroke-width:1}@media(prefers-color-scheme:dark){text{fill:#bbb}}")
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'
            f"<style>{style}</style>{''.join(parts)}</svg>\n")
