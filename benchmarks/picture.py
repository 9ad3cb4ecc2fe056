"""Draw docs/recall.svg: how surely a pair is found, by its similarity, with each tool's default settings.

    python benchmarks/picture.py

The curves are 1 - (1 - s^r)^b for the bands and rows that the tools take when asked for nothing but pairs at 0.8.
"""

from __future__ import annotations

from pathlib import Path

from likewise import Banding, tune

WIDTH, HEIGHT, LEFT, TOP, SIDE, FOOT = 760, 400, 64, 30, 190, 56
TOOLS = {
    "likewise": (tune(0.8, 0.99), "#0b6e4f"),
    "datatrove 0.10": (Banding(14, 8), "#8a8d91"),
    "NeMo Curator 1.4": (Banding(20, 13), "#a0763a"),
    "datasketch 2.0": (Banding(9, 13), "#3b6ea8"),
    "rensa 0.5": (Banding(8, 16), "#b0413e"),
}
STEPS = 200


def x(similarity: float) -> float:
    """Place a similarity between 0.4 and 1."""
    return LEFT + (similarity - 0.4) / 0.6 * (WIDTH - LEFT - SIDE)


def y(probability: float) -> float:
    """Place a probability."""
    return TOP + (1 - probability) * (HEIGHT - TOP - FOOT)


def label(at: float, height: float, words: str, more: str = "") -> str:
    """Write words."""
    return f'<text x="{at:.1f}" y="{height:.1f}" {more}>{words}</text>'


def picture() -> str:
    """Return the drawing."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="13" fill="#222">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
    ]
    for tenth in range(0, 11, 2):
        height = y(tenth / 10)
        parts.append(f'<line x1="{x(0.4)}" x2="{x(1)}" y1="{height}" y2="{height}" stroke="#e6e6e6"/>')
        parts.append(label(x(0.4) - 8, height + 4, f"{tenth * 10} %", 'text-anchor="end"'))
    for tenth in range(4, 11):
        parts.append(label(x(tenth / 10), y(0) + 20, f"{tenth / 10:.1f}", 'text-anchor="middle"'))
    parts.append(label(x(0.7), HEIGHT - 12, "Jaccard similarity of a pair", 'text-anchor="middle"'))
    parts.append(label(12, 18, "pairs found, default settings"))
    parts.append(f'<line x1="{x(0.8)}" x2="{x(0.8)}" y1="{y(0)}" y2="{y(1)}" stroke="#888" stroke-dasharray="4 4"/>')
    for place, (tool, (banding, colour)) in enumerate(TOOLS.items()):
        points = [0.4 + 0.6 * step / STEPS for step in range(STEPS + 1)]
        path = " ".join(f"{x(s):.1f},{y(banding.probability(s)):.1f}" for s in points)
        weight = 3.5 if place == 0 else 1.8
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{weight}"/>')
        found = banding.probability(0.8)
        parts.append(f'<circle cx="{x(0.8):.1f}" cy="{y(found):.1f}" r="4" fill="{colour}"/>')
        at = TOP + 24 + 44 * place
        style = f'stroke="{colour}" stroke-width="{weight}"'
        parts.append(f'<line x1="{x(1) + 14}" x2="{x(1) + 34}" y1="{at - 4}" y2="{at - 4}" {style}/>')
        parts.append(label(x(1) + 40, at, tool, 'font-weight="bold"' if place == 0 else ""))
        parts.append(label(x(1) + 40, at + 17, f"{found:.1%} at 0.8".replace("%", " %"), 'fill="#666"'))
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    target = Path(__file__).parent.parent / "docs" / "recall.svg"
    target.write_text(picture())
    print(target.name, {tool: round(banding.probability(0.8), 3) for tool, (banding, _) in TOOLS.items()})
