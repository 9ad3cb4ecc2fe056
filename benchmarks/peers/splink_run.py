"""splink on DuckDB: the models of its own examples, for FEBRL 4 and for people.

The corpus is a folder with a.parquet and, if two files are linked, b.parquet. FEBRL 4 has the blocking rules, the
comparisons (the detailed model) and the training of splink's example "febrl4", with its million random pairs. People
have those of the example "deduplicate_50k_synthetic", with its ten million, and comparisons from splink's library for
all fields but the address, which depends on the postcode: splink's examples advise against comparing both. With --way
tight, people are blocked on few rules with few pairs each, as splink's guide to performance advises. With --way
general, any table: a comparison from splink's library for each column, by the kind of its values, and blocking on
every column, or the beginning of a text, that makes few enough pairs, or on two columns that do together. Pairs that
agree in two columns, if these are no more than there are records, are the deterministic rules of the prior. The answer
has every pair with a match probability of at least 0.2, or LEAST_IN_GENERAL.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import splink.comparison_library as cl  # type: ignore[import-not-found]
from common import Arguments, Phases, parser
from splink import DuckDBAPI, Linker, SettingsCreator, block_on
from splink.internals.exceptions import EMTrainingException  # type: ignore[import-not-found]

LEAST = 0.2
LEAST_IN_GENERAL = 1e-4
"""With --way general the prior may be far off: a higher limit would hide what the best threshold reaches."""

RANDOM_PAIRS = {"febrl": 1e6, "people": 1e7}


def febrl() -> tuple[SettingsCreator, list[Any], float, list[Any]]:
    """The settings, the deterministic rules, their recall, and the blocking rules for training."""
    settings = SettingsCreator(
        link_type="link_only",
        unique_id_column_name="id",
        blocking_rules_to_generate_predictions=[
            block_on("given_name", "surname"),
            "l.given_name = r.surname and l.surname = r.given_name",
            block_on("date_of_birth"),
            block_on("soc_sec_id"),
            block_on("state", "address_1"),
            block_on("street_number", "address_1"),
            block_on("postcode"),
        ],
        comparisons=[
            cl.NameComparison("given_name").configure(term_frequency_adjustments=True),
            cl.NameComparison("surname").configure(term_frequency_adjustments=True),
            cl.DateOfBirthComparison(
                "date_of_birth", input_is_string=True, datetime_format="%Y%m%d", invalid_dates_as_null=True
            ),
            cl.DamerauLevenshteinAtThresholds("soc_sec_id", [1, 2]),
            cl.ExactMatch("street_number").configure(term_frequency_adjustments=True),
            cl.DamerauLevenshteinAtThresholds("postcode", [1, 2]).configure(term_frequency_adjustments=True),
        ],
    )
    sure = [block_on("soc_sec_id"), block_on("given_name", "surname", "date_of_birth")]
    return settings, sure, 0.8, [block_on("date_of_birth"), block_on("postcode")]


TIGHT = [
    block_on("surname", "birth_date"),
    block_on("given_name", "birth_date"),
    block_on("given_name", "surname", "postcode"),
    block_on("phone"),
    block_on("email"),
]


def people(tight: bool) -> tuple[SettingsCreator, list[Any], float, list[Any]]:
    """The same for people."""
    settings = SettingsCreator(
        link_type="dedupe_only",
        unique_id_column_name="id",
        blocking_rules_to_generate_predictions=TIGHT
        if tight
        else [
            block_on("surname", "birth_date"),
            block_on("given_name", "birth_date"),
            block_on("given_name", "surname"),
            block_on("postcode", "given_name"),
            block_on("postcode", "birth_date"),
            block_on("phone"),
            block_on("email"),
            block_on("address", "substr(given_name,1,1)"),
            block_on("substr(given_name,1,2)", "substr(surname,1,2)", "substr(birth_date,1,4)"),
        ],
        comparisons=[
            cl.ForenameSurnameComparison(
                "given_name", "surname", forename_surname_concat_col_name="given_name_surname_concat"
            ),
            cl.DateOfBirthComparison("birth_date", input_is_string=True, invalid_dates_as_null=True),
            cl.DamerauLevenshteinAtThresholds("postcode", [1, 2]).configure(term_frequency_adjustments=True),
            cl.DamerauLevenshteinAtThresholds("phone", [1, 2]),
            cl.EmailComparison("email"),
        ],
    )
    sure = [
        block_on("given_name", "surname", "birth_date"),
        block_on("substr(given_name,1,2)", "surname", "phone"),
        block_on("birth_date", "email"),
    ]
    return settings, sure, 0.7, [block_on("given_name", "surname"), block_on("birth_date")]


MOST_PAIRS = 3_000_000
"""Pairs of a blocking rule, at most, with --way general."""

BEGINNING = 8
"""Letters of a text that are blocked on, with --way general."""


def values_of(tables: list[pa.Table], column: str) -> list[list[str | None]]:
    """The values of a column as texts."""
    return [table[column].cast(pa.string()).to_pylist() for table in tables]


def pairs_of(keys: list[list[Any]]) -> int:
    """The pairs of records with equal keys: of two tables, or of one with itself."""
    counts = [Counter(key for key in side if key is not None and None not in key) for side in keys]
    if len(counts) == 2:
        return sum(count * counts[1][key] for key, count in counts[0].items())
    return sum(count * (count - 1) // 2 for count in counts[0].values())


def compared(column: str, values: list[str]) -> Any:
    """The comparison of a column from splink's library, by what its values look like."""
    some = values[:: max(1, len(values) // 1_000)] or [""]

    def mostly(pattern: str) -> bool:
        return sum(bool(re.fullmatch(pattern, value)) for value in some) >= 0.8 * len(some)

    if mostly(r"[^@ ]+@[^@ ]+"):
        return cl.EmailComparison(column)
    if mostly(r"\d{4}-\d{2}-\d{2}"):
        return cl.DateOfBirthComparison(column, input_is_string=True, invalid_dates_as_null=True)
    if mostly(r"(19|20)\d{6}"):
        return cl.DateOfBirthComparison(
            column, input_is_string=True, datetime_format="%Y%m%d", invalid_dates_as_null=True
        )
    if mostly(r"\W*[\d ().,/+-]{5,}\W*"):
        return cl.DamerauLevenshteinAtThresholds(column, [1, 2])
    if mostly(r"\W*[\d.,]{1,4}\W*"):
        return cl.ExactMatch(column).configure(term_frequency_adjustments=True)
    if mostly(r"[^\W\d]+(\W+[^\W\d]+)?"):
        return cl.NameComparison(column).configure(term_frequency_adjustments=True)
    return cl.JaroWinklerAtThresholds(column, [0.95, 0.88, 0.8, 0.7])


def named(column: str) -> str:
    """A name that is no word of SQL."""
    return column if column == "id" else f"c_{re.sub(r'[^0-9a-z]+', '_', column.lower())}"


def general(tables: list[pa.Table]) -> tuple[SettingsCreator, list[Any], float, list[Any]]:
    """The same for any tables."""
    names = [name for name in tables[0].column_names if name != "id" and all(name in t.column_names for t in tables)]
    texts = {name: values_of(tables, name) for name in names}
    names = [name for name in names if len({v for side in texts[name] for v in side if v}) > 1]
    if len(names) < 2:
        raise SystemExit("there is one column: none is left to train on beside that of the blocking rule")
    keys: dict[tuple[str, ...], list[list[Any]]] = {}
    for name in names:
        keys[name,] = [[v and (v,) for v in side] for side in texts[name]]
        begin = f"substr({name},1,{BEGINNING})"
        keys[begin,] = [[v and (v[:BEGINNING],) for v in side] for side in texts[name]]
    for one, other in combinations(names, 2):
        sides = zip(texts[one], texts[other], strict=True)
        keys[one, other] = [[(v, w) if v and w else None for v, w in zip(*side, strict=True)] for side in sides]
    counts = {rule: pairs_of(found) for rule, found in keys.items()}
    small: list[tuple[str, ...]] = [rule for rule, count in counts.items() if 0 < count <= MOST_PAIRS]
    rules = list(filter(lambda rule: len(rule) == 1, small))
    few = {rule[0] for rule in rules}
    rules += [rule for rule in small if len(rule) == 2 and not few & set(rule)]
    settings = SettingsCreator(
        link_type="link_only" if len(tables) == 2 else "dedupe_only",
        unique_id_column_name="id",
        blocking_rules_to_generate_predictions=[block_on(*rule) for rule in rules],
        comparisons=[compared(name, [v for side in texts[name] for v in side if v]) for name in names],
    )
    records = sum(table.num_rows for table in tables)
    sure = [rule for rule, count in counts.items() if len(rule) == 2 and 0 < count <= records] or rules[:1]
    trained = sorted((rule for rule in rules if rule[0] in names), key=lambda rule: -counts[rule])[:3]
    return settings, [block_on(*rule) for rule in sure], 0.7, [block_on(*rule) for rule in trained or rules[:2]]


class Asked(Arguments):
    """The arguments, and the blocking of people."""

    way: str


def read(path: Path, prepared: bool) -> pa.Table:
    """A table; of people, with given name and surname together, as the comparison of both needs them."""
    table = pq.read_table(path)
    if prepared:
        pairs = zip(table["given_name"].to_pylist(), table["surname"].to_pylist(), strict=True)
        table = table.append_column("given_name_surname_concat", pa.array([f"{one} {other}" for one, other in pairs]))
    return table


def main() -> None:
    """Train, predict, write."""
    options = parser()
    options.add_argument("--way", choices=["example", "tight", "general"], default="example")
    asked = options.parse_args(namespace=Asked())
    asked.out.mkdir(parents=True, exist_ok=True)
    logging.getLogger("splink").setLevel(logging.ERROR)
    phases = Phases()
    two = (asked.corpus / "b.parquet").exists()
    with phases("read"):
        prepared = not two and asked.way != "general"
        tables = [read(asked.corpus / f"{name}.parquet", prepared) for name in ("a", "b")[: 1 + two]]
    with phases("train"):
        if asked.way == "general":
            tables = [table.rename_columns([named(name) for name in table.column_names]) for table in tables]
            settings, sure, recall, rules = general(tables)
        else:
            settings, sure, recall, rules = febrl() if two else people(asked.way == "tight")
        database = DuckDBAPI()
        registered = [database.register(table) for table in tables]
        linker = Linker(registered if two else registered[0], settings)
        linker.training.estimate_probability_two_random_records_match(sure, recall=recall)
        linker.training.estimate_u_using_random_sampling(
            max_pairs=RANDOM_PAIRS["febrl" if two else "people"], seed=asked.seed
        )
        failed = 0
        for rule in rules:
            try:
                linker.training.estimate_parameters_using_expectation_maximisation(
                    rule, estimate_without_term_frequencies=True
                )
            except EMTrainingException:
                failed += 1
    with phases("predict"):
        least = LEAST_IN_GENERAL if asked.way == "general" else LEAST
        found = linker.inference.predict(threshold_match_probability=least)
        query = "select id_l as id_a, id_r as id_b, match_probability as score from {this}"
        table = found.query_sql(query).as_pyarrow_table()
    pq.write_table(table, asked.out / "pairs.parquet")
    phases.report(rules_without_training=failed)


if __name__ == "__main__":
    main()
