"""splink on DuckDB: the models of its own examples, for FEBRL 4 and for people.

The corpus is a folder with a.parquet and, if two files are linked, b.parquet. FEBRL 4 has the blocking rules, the
comparisons (the detailed model) and the training of splink's example "febrl4", with its million random pairs. People
have those of the example "deduplicate_50k_synthetic", with its ten million, and comparisons from splink's library for
all fields but the address, which depends on the postcode: splink's examples advise against comparing both. With --way
tight, people are blocked on few rules with few pairs each, as splink's guide to performance advises. The answer has
every pair with a match probability of at least 0.2.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import splink.comparison_library as cl  # type: ignore[import-not-found]
from common import Arguments, Phases, parser
from splink import DuckDBAPI, Linker, SettingsCreator, block_on

LEAST = 0.2
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
    options.add_argument("--way", choices=["example", "tight"], default="example")
    asked = options.parse_args(namespace=Asked())
    asked.out.mkdir(parents=True, exist_ok=True)
    logging.getLogger("splink").setLevel(logging.ERROR)
    phases = Phases()
    two = (asked.corpus / "b.parquet").exists()
    with phases("read"):
        tables = [read(asked.corpus / f"{name}.parquet", not two) for name in ("a", "b")[: 1 + two]]
    with phases("train"):
        settings, sure, recall, rules = febrl() if two else people(asked.way == "tight")
        database = DuckDBAPI()
        registered = [database.register(table) for table in tables]
        linker = Linker(registered if two else registered[0], settings)
        linker.training.estimate_probability_two_random_records_match(sure, recall=recall)
        linker.training.estimate_u_using_random_sampling(
            max_pairs=RANDOM_PAIRS["febrl" if two else "people"], seed=asked.seed
        )
        for rule in rules:
            linker.training.estimate_parameters_using_expectation_maximisation(
                rule, estimate_without_term_frequencies=True
            )
    with phases("predict"):
        found = linker.inference.predict(threshold_match_probability=LEAST)
        query = "select id_l as id_a, id_r as id_b, match_probability as score from {this}"
        table = found.query_sql(query).as_pyarrow_table()
    pq.write_table(table, asked.out / "pairs.parquet")
    phases.report()


if __name__ == "__main__":
    main()
