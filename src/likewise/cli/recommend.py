"""`likewise tastes`."""

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
  likewise tastes ratings.csv --out tastes/
  likewise tastes u.data --as liked-hated --for 196 --out tastes/            MovieLens: user, item, rating by tabs
  likewise tastes ratings.dat --as stars --union sum --out tastes/           user::item::rating
  likewise tastes sales.parquet --user buyer --item sku --top 20 --out tastes/
  likewise tastes baskets.txt.gz --only items --out tastes/                  one basket a line
  likewise tastes ratings.csv --everyone --by items --out tastes/

\b
DIR will hold:
  customers.parquet        id_a, id_b, similarity, shared (elements that both sets have)
  items.parquet            the same of items
  recommendations.parquet  with --for or --everyone: user, item, score, because_of (items, or customers)
  run.json                 parameters, counts, seconds, memory, method"""
)
@click.argument("inputs", nargs=-1, required=True, metavar="RATINGS...")
@shared.out
@click.option("--user", metavar="COL", help="Column with the customers.  [default: guessed by name; the first]")
@click.option("--item", metavar="COL", help="Column with the items.  [default: guessed by name; the second]")
@click.option("--rating", metavar="COL", help="Column with the ratings.  [default: guessed by name; the third]")
@click.option(
    "--as",
    "view",
    type=click.Choice(["auto", "bought", "liked", "liked-hated", "stars"]),
    default="auto",
    show_default=True,
    help="What goes into the sets. bought: every pair. liked: pairs rated well. liked-hated: two elements for each "
    "item. stars: an item n times, as a bag. auto: liked if there are ratings.",
)
@click.option(
    "--like", type=float, metavar="X", help="Ratings from here on are liked.  [default: upper quarter of the scale]"
)
@click.option("--hate", type=float, metavar="X", help="Ratings up to here are hated.  [default: lower quarter]")
@click.option(
    "--union",
    type=click.Choice(["max", "sum"]),
    default="max",
    show_default=True,
    help="The union of two bags: with the sum, as in the chapter, the highest similarity is 1/2.",
)
@click.option("--threshold", type=float, default=0.2, show_default=True, help="Least similarity of a pair.")
@click.option("--top", type=int, metavar="K", help="Only the K most similar ones of each, best first.")
@click.option(
    "--only", type=click.Choice(["customers", "items"]), help="Only similar customers, or only similar items."
)
@click.option(
    "--for", "users", multiple=True, metavar="USER", help="Recommend items to this customer. May be given again."
)
@click.option("--everyone", is_flag=True, help="Recommend items to every customer.")
@click.option("--count", type=int, default=10, show_default=True, help="Items to recommend to each.")
@click.option(
    "--by",
    type=click.Choice(["customers", "items"]),
    default="customers",
    show_default=True,
    help="customers: items of similar customers. items: those similar to the customer's items.",
)
@click.option(
    "--neighbours", type=int, default=50, show_default=True, help="Nearest items or customers that have a vote."
)
@click.option(
    "--method",
    type=click.Choice(["auto", "count", "exact", "lsh"]),
    default="auto",
    show_default=True,
    help="count, exact: find all pairs. lsh: with the recall asked for. auto: whichever is predicted to be cheapest.",
)
@click.option("--recall", type=float, default=0.99, show_default=True, help="With lsh: of pairs at the threshold.")
@click.option(
    "--baskets", is_flag=True, help="Text files hold one basket a line.  [default: seen from the first lines]"
)
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
@click.option("--seed", type=int, default=1, show_default=True)
@shared.threads
@click.option(
    "--memory", metavar="SIZE", help="How much the pairs may take, such as 4GiB.  [default: half of what is free]"
)
@shared.as_json
def tastes(inputs: tuple[str, ...], out: Path, users: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Find customers with similar tastes and items that go together, from purchases or ratings.

    RATINGS: CSV, TSV, Parquet, JSONL or Arrow files with a customer and an item in each row, and perhaps a rating;
    MovieLens' u.data and ratings.dat; or text files with one basket a line. Compressed or not, folders, globs.
    """
    from likewise.apps.recommend import tastes as find_tastes
    from likewise.apps.recommend.answer import COMMAND, TABLES
    from likewise.cli.options import unescaped
    from likewise.io.read import Files
    from likewise.io.read.find import find
    from likewise.io.write import check_answer

    check_answer(out, COMMAND, TABLES, [file.path for file in find(Files(list(inputs)))])
    options["separator"] = unescaped(options["separator"])
    show.announce_compilation()
    with show.progress(as_json) as observer:
        answer = find_tastes(Files(list(inputs)), users=list(users) or None, progress=observer, **options)
        answer.save(out)
    if as_json:
        click.echo(json.dumps(answer.stats, indent=2, ensure_ascii=False))
        return
    for line in _told(answer.stats):
        click.echo(line)
    show.set_aside(answer.stats)
    for user in users:
        for line in _recommended(answer.recommendations, user, options["by"]):
            click.echo(line)
    click.echo(show.closing(answer.stats, str(out)))


def _told(stats: dict[str, Any]) -> Iterator[str]:
    """Tell what was read, how it was taken, and what is similar."""
    counts, parameters = stats["counts"], stats["parameters"]
    low, high = stats["scale"] or (0, 0)
    kind = f"ratings from {low:g} to {high:g}" if stats["scale"] else "purchases"
    yield (
        f"{show.count(counts['customers'], 'customer')}, {show.count(counts['items'], 'item')}, "
        f"{counts['pairs']:,} {kind}; {stats['columns']}"
    )
    if counts["set_aside"]:
        yield f"{show.count(counts['set_aside'], 'row')} set aside as broken"
    if counts["repeated"]:
        which = "they count" if parameters["view"] == "stars" and not stats["scale"] else "each pair counts once"
        rule = f"the {parameters['twice']} rating counts" if stats["scale"] else which
        yield f"{show.count(counts['repeated'], 'row')} of a customer and an item that were there before: {rule}"
    yield stats["sets"]
    for side, method in stats["methods"].items():
        yield from _similar(side, method, counts, parameters)
    if counts["customers"] == 1:
        yield "hint: there is one customer; similarity needs two"


def _similar(side: str, method: dict[str, Any], counts: dict[str, Any], parameters: dict[str, Any]) -> Iterator[str]:
    """Tell how many pairs of one side are similar, and which are closest."""
    reach = "" if parameters["top"] is None else f", the {parameters['top']} nearest of each"
    how = "exact"
    if method["taken"] == "lsh":
        how = f"lsh, recall {method['predicted_recall']:.4f} at the threshold"
    found = show.count(counts[f"similar_{side}"], "similar pair")
    closest = method["closest"]
    more = ""
    if closest:
        names, shared = f"{closest['id_a']} and {closest['id_b']}", f"{closest['shared']:,} shared"
        more = f"; the closest: {names}, {closest['similarity']:.3f}, {shared}"
    yield f"{side}: {found} ({parameters['threshold']:g} or more{reach}; {how}){more}"
    if "abridged" in method:
        yield f"  {method['abridged']['items']:,} {side} with equal sets are listed with the first of them only"


def _recommended(table: Any, user: str, by: str) -> Iterator[str]:
    """Tell what is recommended to a customer, and why."""
    rows = [row for row in table.to_pylist() if str(row["user"]) == user.strip()]
    if not rows:
        yield f"for {user}: nothing to recommend; nobody else has what this customer has"
        return
    whose = "these of their items" if by == "items" else "these customers"
    yield f"for {user}: score, item, because of {whose}"
    width = min(40, max(len(str(row["item"])) for row in rows))
    for row in rows:
        yield f"  {row['score']:7.3f}  {row['item']!s:<{width}}  {', '.join(map(str, row['because_of']))}"
