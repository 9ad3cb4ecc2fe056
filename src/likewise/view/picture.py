"""Pictures in a page: bars, curves and bands as SVG, made of numbers and of nothing else.

A page has three of them at most, whose shapes are known: importing a library that draws would take longer than all the
rest of the page. Colours are classes of the style of the page, light or dark; lengths are points.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any, NamedTuple

WIDTH, HEIGHT = 345.6, 237.6
"""Of a picture: about 460 by 320 pixels, so that the words can still be read on a phone."""
LEFT, RIGHT, BOTTOM, TOP = 46.8, 7.2, 37.4, 8.6
"""Around the plot."""
LEGEND, LEGEND_SIZE, SWATCH = 17.3, 9, 24
"""Heights of a line of the legend and of its letters, and the width before a label; it stands above the plot."""
LETTER = 0.58
"""Width of a letter, on average, in a wide font, as a part of its height."""
MOST_TICKS = 6
LEAST = 0.7
"""Where a logarithmic scale of counts begins, so that a bar of one is seen."""

Place = Callable[[float], float]
Shape = Callable[[Place, Place], str]


class Scale(NamedTuple):
    """The numbers of an axis: from where to where, and its ticks with their labels."""

    low: float
    high: float
    ticks: Sequence[float]
    labels: Sequence[str]
    logarithmic: bool = False
    grid: bool = True

    def part(self, value: float) -> float:
        """Return where on the axis a value is, from 0 to 1."""
        low, high = self.low, self.high
        if self.logarithmic:
            low, high, value = (math.log10(max(LEAST, one)) for one in (low, high, value))
        return min(1.0, max(0.0, (value - low) / (high - low)))


def number_scale(low: float, high: float, pad: float = 0.03, grid: bool = True, whole: bool = False) -> Scale:
    """Return an axis of numbers, a little wider than these, with ticks at round ones.

    >>> number_scale(0.8, 1.0).labels
    ['0.80', '0.85', '0.90', '0.95', '1.00']
    """
    low, high = float(low), float(high)
    if not high > low:
        low, high = low - 0.5, high + 0.5
    step, decimals = _step((high - low) / MOST_TICKS, whole)
    ticks = [step * n for n in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
    far = max(abs(low), abs(high)) >= 1e5 or decimals > 4
    labels = [(short_number(tick) if far else f"{tick:.{decimals}f}").replace("-", "−") for tick in ticks]
    return Scale(low - pad * (high - low), high + pad * (high - low), ticks, labels, grid=grid)


def count_scale(counts: Any) -> Scale:
    """Return an axis of counts: whole numbers, logarithmic if a few large ones would hide all others."""
    several = sorted(count for count in map(float, counts) if count > 0)
    most = several[-1] if several else 1.0
    if len(several) > 1 and most > 30 * (several[(len(several) - 1) // 2] + several[len(several) // 2]) / 2:
        powers = range(math.floor(math.log10(max(1.5 * most, 10))) + 1)
        ticks = [10.0**power for power in powers[:: 1 + len(powers) // 8]]
        return Scale(LEAST, max(1.5 * most, 10), ticks, [short_number(tick) for tick in ticks], True)
    scale = number_scale(0.0, max(1.05 * most, 1), 0.0, whole=True)
    return scale._replace(labels=[short_number(tick) for tick in scale.ticks])


def name_scale(names: Sequence[str], most: int = 9) -> Scale:
    """Return an axis of names at 0, 1, 2 …; of many, every second or third is written."""
    places = range(0, len(names), -(-len(names) // most))
    return Scale(-0.6, len(names) - 0.4, places, [names[place] for place in places], grid=False)


def _step(least: float, whole: bool) -> tuple[float, int]:
    """Return the smallest of 1, 2, 5, 10, 20, … (or 0.5, 0.2, …) that is large enough, and its decimals."""
    power = math.floor(math.log10(least))
    if whole:
        power = max(0, power)
    factor = next(one for one in (1, 2, 5, 10) if one * 10.0**power >= least * (1 - 1e-9))
    power, factor = (power + 1, 1) if factor == 10 else (power, factor)
    return (factor * 10.0**power if power >= 0 else factor / 10.0**-power), max(0, -power)


def short_number(value: float) -> str:
    """Write a number for a tick.

    >>> short_number(1200), short_number(12_500), short_number(3)
    ('1.2k', '12.5k', '3')
    """
    for unit, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= 10 * unit or (abs(value) >= unit and value % (unit / 10) == 0):
            return f"{value / unit:g}{sign}"
    return f"{value:g}"


class Plot:
    """Two axes, their names, and what is drawn between them, in this order."""

    def __init__(self, x: Scale, y: Scale, across: str, up: str, left: float = LEFT, height: float = HEIGHT) -> None:
        self._x, self._y = x, y
        self._across, self._up = across, up
        self._left, self._height = left, height
        self._shapes: list[Shape] = []
        self._legend: list[tuple[str, str]] = []

    def bars(self, edges: Any, counts: Any, colour: str, label: str = "", gap: float = 0.0) -> None:
        """Draw a bar over each interval between two edges; `gap` is the part of it that stays free."""

        def shape(x: Place, y: Place) -> str:
            floor, drawn = y(self._y.low), []
            for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True):
                if count > 0:
                    free = gap * (high - low) / 2
                    begin, end, top = x(low + free), x(high - free), y(count)
                    drawn.append(f"M{begin:.2f},{floor:.2f}V{top:.2f}H{end:.2f}V{floor:.2f}Z")
            return f'<path class="fill-{colour}" d="{"".join(drawn)}"/>'

        self._add(shape, f'<rect class="fill-{colour}" width="15" height="6.4" y="-6.4"/>', label)

    def rows(self, values: Sequence[float], colour: str, label: str = "", thick: float = 0.62) -> None:
        """Draw a bar from 0 to each value, the first in the lowest row."""

        def shape(x: Place, y: Place) -> str:
            drawn = []
            for row, value in enumerate(values):
                low, high = y(row - thick / 2), y(row + thick / 2)
                drawn.append(f"M{x(0):.2f},{low:.2f}H{x(value):.2f}V{high:.2f}H{x(0):.2f}Z")
            return f'<path class="fill-{colour}" d="{"".join(drawn)}"/>'

        self._add(shape, f'<rect class="fill-{colour}" width="15" height="6.4" y="-6.4"/>', label)

    def line(
        self, xs: Iterable[float], ys: Iterable[float], colour: str, label: str = "", width: float = 2.4, dash: str = ""
    ) -> None:
        """Draw a line through points."""
        points = list(zip(map(float, xs), map(float, ys), strict=True))
        style = f'fill="none" class="stroke-{colour}" stroke-width="{width:g}"'
        style += f' stroke-dasharray="{dash}"' if dash else ""

        def shape(x: Place, y: Place) -> str:
            return f'<polyline {style} points="{" ".join(f"{x(a):.2f},{y(b):.2f}" for a, b in points)}"/>'

        self._add(shape, f'<path {style} d="M0,-3.2H15"/>', label)

    def dots(self, xs: Iterable[float], ys: Iterable[float], colour: str) -> None:
        """Draw points."""
        points = list(zip(map(float, xs), map(float, ys), strict=True))

        def shape(x: Place, y: Place) -> str:
            return "".join(f'<circle class="fill-{colour}" cx="{x(a):.2f}" cy="{y(b):.2f}" r="3"/>' for a, b in points)

        self._add(shape)

    def band(self, xs: Iterable[float], low: Iterable[float], high: Iterable[float], colour: str, label: str) -> None:
        """Fill what is between two lines."""
        upper, lower = list(zip(xs, high, strict=False)), list(zip(xs, low, strict=False))

        def shape(x: Place, y: Place) -> str:
            points = " ".join(f"{x(a):.2f},{y(b):.2f}" for a, b in [*upper, *reversed(lower)])
            return f'<polygon class="fill-{colour}" points="{points}"/>'

        self._add(shape, f'<rect class="fill-{colour}" width="15" height="6.4" y="-6.4"/>', label)

    def threshold(self, value: float | None) -> None:
        """Draw a line across the plot at the threshold of a run, if it has one."""
        if value is not None:
            label = f"threshold {value:.4g}".replace("-", "−")
            self.line([value, value], [self._y.low, self._y.high], "warn", label, 1.4, "5.6 4.2")

    def _add(self, shape: Shape, sign: str = "", label: str = "") -> None:
        self._shapes.append(shape)
        if label:
            self._legend.append((sign, label))

    def svg(self, alt: str) -> str:
        """Return the picture; `alt` says what is seen."""
        lines = self._legend_lines()
        top, bottom = TOP + LEGEND * len(lines), self._height - BOTTOM
        left, right = self._left, WIDTH - RIGHT

        def x(value: float) -> float:
            return left + (right - left) * self._x.part(value)

        def y(value: float) -> float:
            return bottom - (bottom - top) * self._y.part(value)

        middle, across, up = (top + bottom) / 2, escape(self._across), escape(self._up)
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self._height:.1f}" class="picture" '
            f'role="img" aria-label="{escape(alt)}" font-size="10">',
            *(f'<path class="stroke-grid" stroke-width=".8" d="M{x(at):.2f},{top:.2f}V{bottom:.2f}"/>'
              for at in self._x.ticks if self._x.grid),
            *(f'<path class="stroke-grid" stroke-width=".8" d="M{left:.2f},{y(at):.2f}H{right:.2f}"/>'
              for at in self._y.ticks if self._y.grid),
            *(shape(x, y) for shape in self._shapes),
            '<path fill="none" class="stroke-muted" stroke-width=".8" '
            f'd="M{left:.2f},{top:.2f}V{bottom:.2f}H{right:.2f}'
            + "".join(f"M{x(at):.2f},{bottom:.2f}v3.5" for at in self._x.ticks)
            + "".join(f"M{left:.2f},{y(at):.2f}h-3.5" for at in self._y.ticks) + '"/>',
            '<g class="fill-muted" text-anchor="middle">',
            *(f'<text x="{x(at):.2f}" y="{bottom + 14.6:.2f}">{escape(told)}</text>'
              for at, told in zip(self._x.ticks, self._x.labels, strict=True)),
            f'<text x="{(left + right) / 2:.2f}" y="{bottom + 28.6:.2f}">{across}</text>',
            f'<text transform="translate(11 {middle:.2f}) rotate(-90)">{up}</text>' if up else "",
            '</g><g class="fill-muted" text-anchor="end">',
            *(f'<text x="{left - 7:.2f}" y="{y(at) + 3.6:.2f}">{escape(told)}</text>'
              for at, told in zip(self._y.ticks, self._y.labels, strict=True)),
            f'</g><g class="fill-ink" font-size="{LEGEND_SIZE}">',
            *lines,
            "</g></svg>",
        ]  # fmt: skip
        return "".join(parts)

    def _legend_lines(self) -> list[str]:
        """Return the lines of the legend, in as many columns as there is room for."""
        widths = [SWATCH + 4 + LETTER * LEGEND_SIZE * len(label) for _, label in self._legend]
        for columns in range(len(widths), 0, -1):
            starts = [0.0]
            for column in range(columns):
                starts.append(starts[-1] + max(widths[column::columns]))
            if starts[-1] <= WIDTH - RIGHT - self._left or columns == 1:
                break
        else:
            return []
        lines = []
        for first in range(0, len(widths), columns):
            base = TOP + LEGEND * (first // columns) + LEGEND_SIZE - 1
            lines.append("".join(
                f'<g transform="translate({self._left + start:.2f} {base:.2f})">{sign}'
                f'<text x="{SWATCH - 4}">{escape(label)}</text></g>'
                for start, (sign, label) in zip(starts, self._legend[first : first + columns], strict=False)
            ))  # fmt: skip
        return lines
