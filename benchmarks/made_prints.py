"""Synthetic fingerprints, any number of them: minutiae along ridges that flow as in loops, whorls and arches.

    python benchmarks/made_prints.py prints.parquet --fingers 100 --impressions 5
    python benchmarks/made_prints.py prints.parquet --sensor noisy

The ridges of a finger follow the zero-pole model of Sherlock and Monro. Each impression shows a part of the finger,
rotated and shifted; its minutiae are jittered, some are missing, and some are spurious. How many depends on the sensor
(SENSORS): an ordinary one; a dense and a noisy one, with up to 180 minutiae in a print; one with a small window; one on
which the skin is stretched unevenly; and one whose resolution is wrongly stated.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

Floats = NDArray[np.float64]

WIDTH, HEIGHT = 190.0, 240.0
"""Half the width and half the height of a finger, in pixels."""
APART = 8.0
"""Least distance of two minutiae of a finger, in pixels."""
SHIFT = 40.0
WAVE = 150.0
"""Pixels over which uneven stretching changes."""


@dataclass(frozen=True)
class Sensor:
    """What a sensor and the extraction of minutiae do to a finger.

    density: least and greatest number of minutiae of a finger. seen: size of the part of the finger that an impression
    shows, as a fraction of it. moved, turned: standard deviations of the jitter, in pixels and degrees. missing,
    spurious: fractions of the minutiae that are not found, and of those found that are false. rotation: degrees.
    stretch: of the whole impression; uneven: pixels by which parts of it are displaced. scale: true resolution divided
    by the one that is stated.
    """

    density: tuple[int, int] = (70, 190)
    seen: float = 0.62
    moved: float = 2.5
    turned: float = 6.0
    missing: float = 0.2
    spurious: float = 0.15
    rotation: float = 15.0
    stretch: float = 0.02
    uneven: float = 0.0
    scale: float = 1.0


SENSORS = {
    "ordinary": Sensor(),
    "dense": Sensor(density=(200, 330), seen=0.7),
    "noisy": Sensor(density=(150, 260), seen=0.7, moved=3.5, turned=10.0, missing=0.3, spurious=0.4, rotation=20.0),
    "small": Sensor(seen=0.48),
    "uneven": Sensor(uneven=5.0, stretch=0.03),
    "rescaled": Sensor(scale=0.88),
}


def flow(x: Floats, y: Floats, cores: Floats, deltas: Floats) -> Floats:
    """The direction of the ridges: it turns by π about every core, and by −π about every delta."""
    angle = np.full(len(x), np.pi / 2)
    for points, sign in ((cores, 1), (deltas, -1)):
        for px, py in points:
            angle += sign * np.arctan2(y - py, x - px) / 2
    return angle


def pattern(random: np.random.Generator) -> tuple[Floats, Floats]:
    """Cores and deltas of a left or right loop, a whorl or an arch."""
    kind = random.choice(["left", "right", "whorl", "arch"], p=[0.32, 0.32, 0.3, 0.06])
    side = {"left": -1, "right": 1}.get(str(kind), 0)
    core = np.array([[0.0, -20.0]]) + random.normal(0, 15, (1, 2))
    if side:
        return core, np.array([[side * 110.0, 130.0]]) + random.normal(0, 25, (1, 2))
    if kind == "arch":
        return core, core + np.array([[0.0, 60.0]])
    lower = core + np.array([[0.0, 45.0]])
    deltas = np.array([[-120.0, 130.0], [120.0, 130.0]]) + random.normal(0, 25, (2, 2))
    return np.concatenate([core, lower]), deltas


def scattered(random: np.random.Generator, count: int) -> Floats:
    """Points within the finger, no two of them closer than APART."""
    points: list[Floats] = []
    while len(points) < count:
        point = random.uniform(-1, 1, 2)
        if point @ point <= 1:
            point = point * (WIDTH, HEIGHT)
            if all((point - other) @ (point - other) >= APART**2 for other in points):
                points.append(point)
    return np.array(points)


def directions(random: np.random.Generator, points: Floats, cores: Floats, deltas: Floats) -> Floats:
    """Directions along the ridge, either way."""
    either = np.pi * random.integers(0, 2, len(points))
    return flow(points[:, 0], points[:, 1], cores, deltas) + either + random.normal(0, np.radians(4), len(points))


def impression(
    random: np.random.Generator, points: Floats, angle: Floats, cores: Floats, deltas: Floats, sensor: Sensor
) -> Floats:
    """One impression: x, y, angle."""
    window = random.normal(0, SHIFT, 2) * (0.8, 1.0)
    seen = (((points - window) / (sensor.seen * WIDTH, sensor.seen * HEIGHT)) ** 2).sum(axis=1) <= 1
    seen &= random.random(len(points)) > sensor.missing
    false = scattered(random, random.binomial(int(seen.sum()), sensor.spurious) or 1) * sensor.seen + window
    every = np.concatenate([points[seen] + random.normal(0, sensor.moved, (int(seen.sum()), 2)), false])
    headed = np.concatenate([angle[seen], directions(random, false, cores, deltas)])
    headed += random.normal(0, np.radians(sensor.turned), len(headed))
    if sensor.uneven:
        waves = random.normal(0, 1 / WAVE, (4, 2))
        phases = random.uniform(0, 2 * np.pi, 4)
        push = random.normal(0, sensor.uneven / np.sqrt(2), (4, 2))
        every = every + np.sin(every @ waves.T * 2 + phases) @ push
    every = every @ (np.eye(2) + random.normal(0, sensor.stretch, (2, 2)))
    turn = random.normal(0, np.radians(sensor.rotation))
    cosine, sine = np.cos(turn), np.sin(turn)
    every = every @ np.array([[cosine, sine], [-sine, cosine]]) + (194, 187) - window + random.normal(0, 10, 2)
    return np.column_stack([np.round(every * sensor.scale), np.mod(headed + turn, 2 * np.pi)])


def made(fingers: int, impressions: int, seed: int = 1, sensor: Sensor = SENSORS["ordinary"]) -> pa.Table:
    """A table of minutiae: finger, impression, x, y, angle."""
    random = np.random.default_rng(seed)
    rows, owner, name = [], [], []
    for finger in range(fingers):
        cores, deltas = pattern(random)
        points = scattered(random, int(random.integers(*sensor.density)))
        angle = directions(random, points, cores, deltas)
        for number in range(impressions):
            part = impression(random, points, angle, cores, deltas, sensor)
            rows.append(part)
            owner += [f"f{finger}"] * len(part)
            name += [f"f{finger}_{number}"] * len(part)
    whole = np.concatenate(rows)
    columns = {"finger": owner, "impression": name, "x": whole[:, 0], "y": whole[:, 1], "angle": whole[:, 2]}
    return pa.table(columns)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--fingers", type=int, default=100)
    parser.add_argument("--impressions", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sensor", choices=list(SENSORS), default="ordinary")
    asked = parser.parse_args()
    pq.write_table(made(asked.fingers, asked.impressions, asked.seed, SENSORS[asked.sensor]), asked.out)


if __name__ == "__main__":
    main()
