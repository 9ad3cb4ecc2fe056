"""`likewise recommend`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import click

from likewise.cli import options as shared
from likewise.cli import show


@click.command(
    epilog="""\b
Examples:
  likewise recommend ratings.csv --out found/
  likewise recommend ratings.csv --only recommendations --for ann --out found/
  likewise recommend u.data --view liked-hated --for 196 --out found/          MovieLens: tab-separated, no header
  likewise recommend ratings.dat --view stars --union sum --out found/         user::item::rating
  likewise recommend sales.parquet --user buyer --item sku -k 20 --out found/
  likewise recommend baskets.txt.gz --only items --out found/                  one basket per line

\b
DIR will contain:
  customers.parquet        pairs of similar customers: id_a, id_b, similarity, shared (elements in both sets)
  items.parquet            pairs of similar items, the same columns
  groups.parquet           with --groups: id (the item), cluster, size, keeper
  recommendations.parquet  user, item, score, because_of (customers, or items with --by items)
  run.json                 parameters, counts, seconds, memory, method
  report.html              the report on the run"""
)
@click.argument("inputs", nargs=-1, required=True, metavar="RATINGS...")
@shared.out
@click.option(
    "--for",
    "users",
    multiple=True,
    metavar="CUSTOMER",
    help="Recommend to this customer. Repeatable.  [default: everyone]",
)
@click.option(
    "--only", type=click.Choice(["customers", "items", "recommendations"]), help="Make only one of the three tables."
)
@shared.choice(
    "--by",
    ["customers", "items"],
    "customers",
    "Recommend what similar customers have, or items similar to those the customer has.",
)
@shared.whole("--count", 10, "Items to recommend to each customer.")
@shared.whole("--neighbours", 50, "Number of nearest customers, or items, that vote.")
@shared.number("--threshold", 0.2, "Minimum similarity of a pair.")
@shared.k(None, "List only the K most similar of each customer and item, best first.")
@shared.choice(
    "--view",
    ["auto", "bought", "liked", "liked-hated", "stars"],
    "auto",
    "What goes into the sets. bought: every pair. liked: pairs rated well. liked-hated: two elements for each "
    "item. stars: an item n times, as a bag. auto: liked if there are ratings, else bought.",
)
@click.option(
    "--like",
    type=float,
    metavar="X",
    help="Ratings of X and above count as liked.  [default: upper quarter of the scale]",
)
@click.option(
    "--hate", type=float, metavar="X", help="Ratings of X and below count as hated.  [default: lower quarter]"
)
@shared.choice(
    "--union", ["max", "sum"], "max", "Union of two bags. With the sum, as in MMDS, equal bags have similarity 1/2."
)
@click.option(
    "--groups",
    type=float,
    metavar="SIMILARITY",
    help="Put items that are at least this similar in groups, and compare customers by groups instead of items.",
)
@shared.choice(
    "--method",
    ["auto", "count", "exact", "lsh"],
    "auto",
    "count, exact: find all pairs. lsh: with the requested recall. auto: whichever is predicted to be cheapest.",
)
@shared.recall("With lsh: a pair at the threshold is found with at least this probability.")
@shared.seed
@click.option("--user", metavar="COL", help="Column with the customers.  [default: guessed by name; the first]")
@click.option("--item", metavar="COL", help="Column with the items.  [default: guessed by name; the second]")
@click.option("--rating", metavar="COL", help="Column with the ratings.  [default: guessed by name; the third]")
@click.option("--baskets", is_flag=True, help="Text files have one basket per line.  [default: guessed]")
@click.option("--separator", metavar="CHAR", help="Between fields, or the items of a basket.  [default: guessed]")
@click.option(
    "--header/--no-header", default=None, help="Whether the first line names the columns.  [default: guessed]"
)
@shared.choice(
    "--twice", ["last", "first", "error"], "last", "Which rating counts if a customer rated an item more than once."
)
@shared.on_error
@shared.threads
@shared.memory
@shared.spill
@shared.report
@shared.as_json
def recommend(inputs: tuple[str, ...], out: Path, users: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Recommend items by collaborative filtering, and list similar customers and similar items.

    RATINGS: CSV, TSV, Parquet, JSONL or Arrow files with a customer and an item in each row, and perhaps a rating;
    MovieLens' u.data and ratings.dat; or text files with one basket per line. Compressed or not, folders, globs.
    """
    from likewise.apps.recommend import Recommendations
    from likewise.apps.recommend import recommend as find_recommendations
    from likewise.io.read import Files

    given = Files(inputs)
    options["separator"] = shared.unescaped(options["separator"])
    run = partial(find_recommendations, given, list(users) or None, **options)
    result = show.saved("recommend", Recommendations, out, shared.files(given), as_json, run)
    nothing = set(map(str, result.stats["details"].get("liked_nothing", ())))
    asked = (_recommended(result.for_user(user), user, options["by"], user.strip() in nothing) for user in users)
    show.report(result.stats, as_json, itertools.chain(_summary(result.stats), *asked), out)


def _summary(stats: dict[str, Any]) -> Iterator[str]:
    """Yield lines on what was read, how it became sets, and what was found."""
    counts, details, parameters = stats["counts"], stats["details"], stats["parameters"]
    low, high = details["scale"] or (0, 0)
    kind = f"ratings from {low:g} to {high:g}" if details["scale"] else "purchases"
    yield (
        f"{show.count(counts['customers'], 'customer')}, {show.count(counts['items'], 'item')}, "
        f"{counts['ratings']:,} {kind}; {details['columns']}"
    )
    yield from show.broken(stats)
    yield details["sets"]
    for side, method in details.get("methods", {}).items():
        yield _similar(side, method, stats)
    if "recommendations" in counts:
        among = "everyone" if parameters["users"] is None else show.count(len(parameters["users"]), "customer")
        yield f"{show.count(counts['recommendations'], 'recommendation')} for {among}, by {parameters['by']}"
    yield from show.notes(stats)


def _similar(side: str, method: dict[str, Any], stats: dict[str, Any]) -> str:
    """Return how many pairs of one side are similar, how they were found, and which are closest."""
    parameters = stats["parameters"]
    reach = "" if parameters["k"] is None else f", the {parameters['k']} most similar of each"
    how = "exact"
    if method["taken"] == "lsh":
        how = f"lsh, recall {method['predicted_recall']:.4f} at the threshold"
    found = show.count(stats["counts"][f"similar_{side}"], "similar pair")
    closest = stats["details"]["closest"][side]
    more = ""
    if closest:
        names, shared = f"{closest['id_a']} and {closest['id_b']}", f"{closest['shared']:,} shared"
        more = f"; the closest: {names}, {closest['similarity']:.3f}, {shared}"
    return f"{side}: {found} ({parameters['threshold']:g} or more{reach}; {how}){more}"


def _recommended(table: Any, user: str, by: str, liked_nothing: bool) -> Iterator[str]:
    """Yield what is recommended to a customer, and why."""
    rows = table.to_pylist()
    if not rows:
        why = "no other customer has any of the same items"
        if liked_nothing:
            why = "none of their ratings is high enough to count as liked (see --like and --view)"
        yield f"for {user}: nothing to recommend; {why}"
        return
    whose = "items of theirs" if by == "items" else "customers"
    yield f"for {user}: score, item, because of these {whose}"
    width = min(40, max(len(str(row["item"])) for row in rows))
    for row in rows:
        yield f"  {row['score']:7.3f}  {row['item']!s:<{width}}  {', '.join(map(str, row['because_of']))}"
