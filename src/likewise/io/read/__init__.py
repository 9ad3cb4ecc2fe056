"""Reading documents: from files of many formats and from objects in memory, as batches of Arrow text.

`open_source` accepts any input and returns a `Source`: its `batches` are read once, and later it returns or writes the
rows that were kept, with all their columns, in their order and format.
"""

from __future__ import annotations

from dataclasses import replace

from likewise.io.mirror import fetch_all
from likewise.io.read.base import Aside, ReadOptions, Source
from likewise.io.read.delimited import Delimited
from likewise.io.read.find import Files, InputFile, files_of, looks_like_files
from likewise.io.read.groups import GroupedDocuments
from likewise.io.read.ipc import Ipc
from likewise.io.read.jsonl import JsonLines
from likewise.io.read.memory import from_object
from likewise.io.read.pages import check_parser
from likewise.io.read.parquet import Parquet
from likewise.io.read.plain import Lines, TextFiles
from likewise.io.read.spooled import SpooledRows
from likewise.io.read.tables import TableFiles, TablePart
from likewise.io.read.warc import Warc, WebArchives
from likewise.io.streams import spooled

__all__ = ["Aside", "Files", "ReadOptions", "Source", "open_source"]

PARTS: dict[str, type[TablePart]] = {
    "parquet": Parquet,
    "arrow": Ipc,
    "jsonl": JsonLines,
    "csv": Delimited,
    "tsv": Delimited,
    "text": Lines,
    "warc": Warc,
}


def open_source(source: object, options: ReadOptions | None = None) -> Source:
    """Return the documents in `source`.

    A string or Path is a file, a folder or a glob, and so is each entry of `Files` or of a list of Path objects.
    A list of strings is a list of files if every string names one, and of documents otherwise. Other objects are tables
    or columns: of pyarrow, pandas or polars, a Hugging Face dataset, a dict of columns, a list of dicts, or any object
    that exports Arrow data. A stream of rows or batches is read to its end now, and kept in a temporary file.
    """
    options = options or ReadOptions()
    if options.html:
        check_parser()
    files = _files(source)
    if options.group is not None:
        return GroupedDocuments(open_source(source if files is None else files, replace(options, group=None)), options)
    if files is None:
        spool = spooled(source, options.text, options.spool)
        return SpooledRows(spool, options) if spool is not None else from_object(source, options)
    found = files.find(options.plain, options.hidden)
    opened = _opened(found.files, options)
    opened.notes = [found.note] if found.note else []
    return opened


def _opened(found: list[InputFile], options: ReadOptions) -> Source:
    fetch_all([file.remote for file in found if file.remote and (file.format != "parquet" or file.compression)])
    if options.id is None and all(file.format == "warc" for file in found):
        options = replace(options, id="url")
        return WebArchives([_part(file, options) for file in found], options)
    if found[0].is_table or options.lines:
        return TableFiles([_part(file, options) for file in found], options)
    texts = TextFiles(found, options)
    if any(map(texts.is_page, found)):
        check_parser()
    return texts


def _part(file: InputFile, options: ReadOptions) -> TablePart:
    return PARTS[file.format](file, options)


def _files(source: object) -> Files | None:
    """Return the files that the source refers to, or None if it is an object in memory."""
    files = files_of(source)
    if files is None and isinstance(source, list | tuple) and source:
        strings = all(isinstance(entry, str) for entry in source)
        return Files(source) if strings and looks_like_files(source) else None
    return files
