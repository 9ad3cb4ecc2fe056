"""`likewise recommend`."""

from __future__ import annotations

import json
from collections.abc import Iterator
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
DIR will hold:
  customers.parquet        pairs of similar customers: id_a, id_b, similarity, shared (elements in both sets)
  items.parquet            pairs of similar items, the same columns
  recommendations.parquet  user, item, score, because_of (customers, or items with --by items)
  run.json                 parameters, counts, seconds, memory, method"""
)
@click.argument("inputs", nargs=-1, required=True, metavar="RATINGS...")
@shared.out
@click.option(
    "--for", "users", multiple=True, metavar="USER", help="Recommend to this customer. Repeatable.  [default: everyone]"
)
@click.option(
    "--only",
    type=click.Choice(["customers", "items", "recommendations"]),
    help="Make one of the three tables only.",
)
@click.option(
    "--by",
    type=click.Choice(["customers", "items"]),
    default="customers",
    show_default=True,
    help="Recommend what similar customers have, or items similar to those the customer has.",
)
@click.option("--count", type=int, default=10, show_default=True, help="Items to recommend to each customer.")
@click.option(
    "--neighbours", type=int, default=50, show_default=True, help="Nearest customers, or items, that have a vote."
)
@click.option("--threshold", type=float, default=0.2, show_default=True, help="Least similarity of a pair.")
@click.option("-k", type=int, help="List only the K most similar of each customer and item, best first.")
@click.option(
    "--view",
    type=click.Choice(["auto", "bought", "liked", "liked-hated", "stars"]),
    default="auto",
    show_default=True,
    help="What goes into the sets. bought: every pair. liked: pairs rated well. liked-hated: two elements for each "
    "item. stars: an item n times, as a bag. auto: liked if there are ratings, else bought.",
)
@click.option(
    "--like", type=float, metavar="X", help="Ratings from X are liked.  [default: upper quarter of the scale]"
)
@click.option("--hate", type=float, metavar="X", help="Ratings up to X are hated.  [default: lower quarter]")
@click.option(
    "--union",
    type=click.Choice(["max", "sum"]),
    default="max",
    show_default=True,
    help="Union of two bags. With the sum, as in MMDS, equal bags have similarity 1/2.",
)
@click.option(
    "--method",
    type=click.Choice(["auto", "count", "exact", "lsh"]),
    default="auto",
    show_default=True,
    help="count, exact: find all pairs. lsh: with the recall asked for. auto: whichever is predicted to be cheapest.",
)
@click.option(
    "--recall",
    type=float,
    default=0.99,
    show_default=True,
    help="With lsh: a pair at the threshold is found with at least this probability.",
)
@shared.seed
@click.option("--user", metavar="COL", help="Column with the customers.  [default: guessed by name; the first]")
@click.option("--item", metavar="COL", help="Column with the items.  [default: guessed by name; the second]")
@click.option("--rating", metavar="COL", help="Column with the ratings.  [default: guessed by name; the third]")
@click.option("--baskets", is_flag=True, help="Text files have one basket per line.  [default: guessed]")
@click.option("--separator", metavar="CHAR", help="Between fields, or the items of a basket.  [default: guessed]")
@click.option(
    "--header/--no-header", default=None, help="Whether the first line names the columns.  [default: guessed]"
)
@click.option(
    "--twice",
    type=click.Choice(["last", "first", "error"]),
    default="last",
    show_default=True,
    help="Which rating counts if a customer rated an item more than once.",
)
@shared.on_error
@shared.threads
@click.option("--memory", metavar="SIZE", help="Limit for the pairs, such as 4GiB.  [default: half of what is free]")
@shared.as_json
def recommend(inputs: tuple[str, ...], out: Path, users: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Recommend items by collaborative filtering, and list similar customers and similar items.

    RATINGS: CSV, TSV, Parquet, JSONL or Arrow files with a customer and an item in each row, and perhaps a rating;
    MovieLens' u.data and ratings.dat; or text files with one basket per line. Compressed or not, folders, globs.
    """
    from likewise.apps.recommend import Recommendations
    from likewise.apps.recommend import recommend as run
    from likewise.cli.options import unescaped
    from likewise.io.publish import check_output
    from likewise.io.read import Files
    from likewise.io.read.find import find

    check_output(out, "recommend", Recommendations.files, [file.path for file in find(Files(list(inputs)))])
    options["separator"] = unescaped(options["separator"])
    show.announce_compilation()
    with show.progress(as_json) as observer:
        result = run(Files(list(inputs)), list(users) or None, progress=observer, **options)
        result.save(out)
    if as_json:
        click.echo(json.dumps(result.stats, indent=2, ensure_ascii=False))
        return
    for line in _summary(result.stats):
        click.echo(line)
    show.set_aside(result.stats)
    for user in users:
        for line in _recommended(result.for_user(user), user, options["by"]):
            click.echo(line)
    click.echo(show.closing(result.stats, str(out)))


def _summary(stats: dict[str, Any]) -> Iterator[str]:
    """Yield lines on what was read, how it became sets, and what was found."""
    counts, details, parameters = stats["counts"], stats["details"], stats["parameters"]
    low, high = details["scale"] or (0, 0)
    kind = f"ratings from {low:g} to {high:g}" if details["scale"] else "purchases"
    yield (
        f"{show.count(counts['customers'], 'customer')}, {show.count(counts['items'], 'item')}, "
        f"{counts['ratings']:,} {kind}; {details['columns']}"
    )
    if counts["set_aside"]:
        yield f"{show.count(counts['set_aside'], 'row')} set aside as broken"
    yield details["sets"]
    for side, method in details.get("methods", {}).items():
        yield _similar(side, method, stats)
    if "recommendations" in counts:
        among = "everyone" if parameters["users"] is None else show.count(len(parameters["users"]), "customer")
        yield f"{show.count(counts['recommendations'], 'recommendation')} for {among}, by {parameters['by']}"
    for note in stats["notes"]:
        yield f"note: {note}"


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


def _recommended(table: Any, user: str, by: str) -> Iterator[str]:
    """Yield what is recommended to a customer, and why."""
    rows = table.to_pylist()
    if not rows:
        yield f"for {user}: nothing to recommend; no other customer has any of the same items"
        return
    whose = "these of their items" if by == "items" else "these customers"
    yield f"for {user}: score, item, because of {whose}"
    width = min(40, max(len(str(row["item"])) for row in rows))
    for row in rows:
        yield f"  {row['score']:7.3f}  {row['item']!s:<{width}}  {', '.join(map(str, row['because_of']))}"
