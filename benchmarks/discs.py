"""Generate a catalogue of music CDs in one table: artist, title, category, genre, year, long track lists, junk columns.

    python benchmarks/discs.py                     10,000 records, 3 % of them second records of a CD
    python benchmarks/discs.py --records 3000 --seed 2

As in catalogues that users type: a second record of a CD has another case, numbers before its tracks, tracks added or
left out, typing errors, another category or genre, no year. Different CDs look alike: artists have several CDs, sets
have several discs under one title, collections repeat tracks of the artist's other CDs, and some records name nobody
("Unknown Artist", "Track 1 | Track 2"). Titles in other scripts are partly unreadable: decoded wrongly (mojibake) or
question marks. The columns discid (all different), revision (random), source (constant) and extra (mostly empty) say
nothing.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from people import ENDINGS, ROOTS, asked_for, listed, mistyped, pairs_within

FIELDS = ("artist", "title", "category", "genre", "year", "tracks", "discid", "revision", "source", "extra")
AGAIN = 0.03
"""Fraction of the records that are the second of a CD."""

FOREIGN, LATER_DISC, COLLECTED = 0.04, 0.05, 0.05
"""Fractions of the CDs with titles in another script, that are a further disc of a set, and that repeat tracks."""

NAMELESS = 6
"""CDs of which nobody typed the titles; each has another number of tracks."""

CATEGORIES = listed("blues classical country data folk jazz misc newage reggae rock soundtrack")
GENRES = [*CATEGORIES, *listed("Pop Metal Techno Punk Ambient Soul Chanson Latin Indie Opera Dance Ska")]
WORDS = listed(
    "love the of my you night in a to me heart time blue one day on no for your away rain down girl song world life "
    "home never dream light fire baby little man sun what be dance moon sky soul with good eyes back over river gone "
    "long road summer wind again up is it all we lost sweet black star how wild hold heaven new tears so lonely "
    "another out forever angel need free town come stay kiss run last high white dark rose sea red old child fly true "
    "young cold winter crazy alone train if when where deep mind morning silver broken city ghost gold hand hear "
    "higher honey hope island king lady letter line magic memory mirror mother mountain ocean only paper past place "
    "power queen radio rainbow ride rock rolling sail secret shadow shine silence sister sleep slow smile smoke snow "
    "spirit spring stone storm story strange street sugar sunday surrender tell tender thunder tide tiger tonight "
    "touch train tree under velvet voice waiting walk wall war water wave whisper window wings wonder wrong yesterday "
    "yellow zero machine garden desert diamond electric midnight highway mercy glory circus coffee cannonball "
    "carousel avalanche"
)
SCRIPTS = {
    "cyrillic": "абвгдежзийклмнопрстуфхцчшыьэюя",
    "greek": "αβγδεζηθικλμνξοπρστυφχψω",
    "kana": "あいうえおかきくけこさしすせそたちつてとなにぬねのはひふへほまみむめもやゆよらりるれろわん",
}
EXTRAS = ("Digitally remastered", "Produced in the studio, mixed live", "Booklet missing", "YEAR: unknown")


@dataclass(frozen=True)
class Disc:
    """A record of a CD without its junk columns."""

    artist: str
    title: str
    category: str
    genre: str | None
    year: str | None
    tracks: tuple[str, ...]


def make(count: int = 10_000, seed: int = 17) -> tuple[pa.Table, pa.Table]:
    """The records, in random order, and the pairs of ids that are one CD (id_a < id_b)."""
    chance, dice = np.random.default_rng(seed), random.Random(seed)
    more = round(count * AGAIN)
    discs = originals(count - more, dice)
    of = chance.choice(len(discs) - NAMELESS, more, replace=False)
    records = discs + [once_more(discs[one], dice) for one in of.tolist()]
    order = chance.permutation(count)
    rows = [records[row] for row in order.tolist()]
    ids = dice.sample(range(16**7, 16**8), count)
    columns: dict[str, list[str | None]] = {
        "artist": [one.artist for one in rows],
        "title": [one.title for one in rows],
        "category": [one.category for one in rows],
        "genre": [one.genre for one in rows],
        "year": [one.year for one in rows],
        "tracks": [" | ".join(one.tracks) for one in rows],
        "discid": [f"{one:08x}" for one in ids],
        "revision": [str(dice.randrange(10)) for _ in rows],
        "source": ["submitted by mail"] * count,
        "extra": [dice.choice(EXTRAS) if dice.random() < 0.04 else None for _ in rows],
    }
    table = {name: pa.array(columns[name], pa.string()) for name in FIELDS}
    disc = np.concatenate([np.arange(len(discs)), of])[order]
    return pa.table({"id": pa.array(np.arange(count)), **table}), pairs_within(disc)


def originals(count: int, dice: random.Random) -> list[Disc]:
    """The first records of CDs, those without names last."""
    frequent = [1 / (place + 8) for place in range(len(WORDS))]
    artists = artists_of(count // 3, dice, frequent)
    popular = [1 / (place + 20) for place in range(len(artists))]
    discs: list[Disc] = []
    by: dict[str, list[Disc]] = {}
    while len(discs) < count - NAMELESS:
        artist = dice.choices(artists, popular)[0]
        earlier = by.setdefault(artist, [])
        kind = dice.random()
        if kind < LATER_DISC and earlier:
            before = dice.choice(earlier)
            base = before.title.split(" (Disc ")[0]
            number = sum(one.title.startswith(base) for one in earlier) + 1
            made = replace(before, title=f"{base} (Disc {number})", tracks=titles(dice, frequent))
        elif kind < LATER_DISC + COLLECTED and len(earlier) > 2:
            pool = sorted({track for one in earlier for track in one.tracks})
            old = dice.sample(pool, min(len(pool), dice.randint(5, 12)))
            tracks = (*old, *titles(dice, frequent)[: dice.randint(1, 8)])
            title = dice.choice(("The Best Of", "Greatest Hits", "Live", "Collection")) + f" {dice.randint(1, 9)}"
            made = disc_of(artist, title, tuple(dice.sample(tracks, len(tracks))), dice)
        else:
            made = disc_of(artist, phrase(dice, frequent), titles(dice, frequent), dice)
        if dice.random() < FOREIGN:
            made = unreadable(in_script(made, dice), dice)
        else:
            earlier.append(made)
        discs.append(made)
    for place in range(count - len(discs)):
        tracks = tuple(f"Track {number}" for number in range(1, 8 + 2 * place))
        discs.append(Disc("Unknown Artist", "Unknown Title", "misc", None, None, tracks))
    return discs


def artists_of(count: int, dice: random.Random, frequent: list[float]) -> list[str]:
    """Different names of persons and bands."""
    found: dict[str, None] = {}
    while len(found) < count:
        surname = (dice.choice(ROOTS) + dice.choice(ENDINGS)).title()
        first = dice.choice(ROOTS).title()
        band = " ".join(dice.choices(WORDS, frequent, k=dice.randint(1, 2))).title()
        found[dice.choice((f"{first} {surname}", f"The {surname}s", f"{surname} & {first}", f"{band} {first}"))] = None
    return list(found)


def disc_of(artist: str, title: str, tracks: tuple[str, ...], dice: random.Random) -> Disc:
    """A CD with a category, mostly a genre, and often a year."""
    genre = dice.choice(GENRES) if dice.random() < 0.8 else None
    year = str(dice.randint(1965, 2006)) if dice.random() < 0.6 else None
    return Disc(artist, title, dice.choices(CATEGORIES, range(1, 12))[0], genre, year, tracks)


def phrase(dice: random.Random, frequent: list[float]) -> str:
    """A title of one to five words, most of them common; some with a word of their own."""
    words = dice.choices(WORDS, frequent, k=dice.choice((1, 2, 2, 3, 3, 4, 5)))
    if dice.random() < 0.4:
        words.append(dice.choice(ROOTS) + dice.choice(ENDINGS))
    return " ".join(words).title()


def titles(dice: random.Random, frequent: list[float]) -> tuple[str, ...]:
    """A track list; singles have few."""
    count = dice.randint(2, 5) if dice.random() < 0.1 else dice.randint(8, 22)
    return tuple(phrase(dice, frequent) for _ in range(count))


def in_script(disc: Disc, dice: random.Random) -> Disc:
    """The CD with words of another script."""
    letters = SCRIPTS[dice.choice(list(SCRIPTS))]

    def words(most: int) -> str:
        return " ".join("".join(dice.choices(letters, k=dice.randint(2, 9))) for _ in range(dice.randint(1, most)))

    return replace(disc, artist=words(2), title=words(3), tracks=tuple(words(4) for _ in disc.tracks))


def unreadable(disc: Disc, dice: random.Random) -> Disc:
    """The CD as a wrong decoder shows it: as Latin-1, or with question marks; a third stays readable."""
    way = dice.randrange(3)

    def shown(text: str) -> str:
        if way == 0:
            return text.encode().decode("latin-1").replace("\x85", "").replace("\xa0", " ")
        return re.sub(r"[^\x00-\x7f]", "?", text) if way == 1 else text

    return replace(disc, artist=shown(disc.artist), title=shown(disc.title), tracks=tuple(map(shown, disc.tracks)))


def once_more(disc: Disc, dice: random.Random) -> Disc:
    """The CD as somebody else typed it."""
    tracks = [mistyped(track, dice) if dice.random() < 0.12 else track for track in disc.tracks]
    if dice.random() < 0.15 and len(tracks) > 5:
        tracks = tracks[: -dice.randint(1, 3)]
    if dice.random() < 0.15:
        tracks += [f"{dice.choice(tracks)} ({kind})" for kind in ("Live", "Remix", "Demo")[: dice.randint(1, 3)]]
    if dice.random() < 0.15:
        tracks = [f"{number:02}. {track}" for number, track in enumerate(tracks, 1)]
    artist, title = disc.artist, disc.title
    if dice.random() < 0.15:
        artist = artist.removeprefix("The ") + ", The" if artist.startswith("The ") else artist.replace("&", "and")
    if dice.random() < 0.1:
        artist = ", ".join(reversed(artist.split(" ", 1)))
    if dice.random() < 0.2:
        artist, title = mistyped(artist, dice), mistyped(title, dice)
    if dice.random() < 0.15:
        title = f"{title} {dice.choice(('[Bonus Tracks]', '(Remastered)', '- Special Edition', 'CD'))}"
    if dice.random() < 0.03:
        tracks, artist = [f"{artist} / {track}" for track in tracks], "Various"
    case = dice.choice((str, str, str.upper, str.lower))
    return Disc(
        case(artist),
        case(title),
        dice.choice(CATEGORIES) if dice.random() < 0.4 else disc.category,
        dice.choice((None, *GENRES)) if dice.random() < 0.4 else disc.genre,
        dice.choice((None, str(dice.randint(1965, 2006)))) if dice.random() < 0.4 else disc.year,
        tuple(map(case, tracks)),
    )


def main() -> None:
    """Print some pairs, and how many there are."""
    records, truth = asked_for(__doc__, make)
    rows = records.to_pylist()
    for pair in truth.slice(0, 5).to_pylist():
        for side in ("id_a", "id_b"):
            print(" ; ".join(str(value)[:70] for value in rows[pair[side]].values()))


if __name__ == "__main__":
    main()
