"""Files of every format that likewise reads, and damages to them, all by a seed."""

import bz2
import gzip
import io
import json
import lzma

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

WORDS = [
    "the",
    "and",
    "of",
    "river",
    "stone",
    "naïve",
    "東",
    "京",
    "cloud",
    "seven",
    "ran",
    "blue",
    "a",
    "😀",
    "to",
    "is",
]
PACKED = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def _zstd(data):
    return pa.Codec("zstd").compress(data, asbytes=True)


PACKED[".zst"] = _zstd


def sentences(random, count):
    """Documents, some of them near copies of others."""
    made = []
    for _ in range(count):
        if made and random.random() < 0.3:
            words = random.choice(made).split()
            words[random.randrange(len(words))] = random.choice(WORDS)
        else:
            words = [random.choice(WORDS) for _ in range(random.randrange(5, 40))]
        made.append(" ".join(words))
    return made


def records(random, count=None):
    """Rows that every command finds something in."""
    count = count or random.randrange(6, 60)
    texts = sentences(random, count)
    names = [f"{random.choice(['Ann', 'Bo', 'Zoë', 'Lee'])} {random.choice(['Smith', 'Smyth', 'Wu'])}" for _ in texts]
    return [
        {
            "id": f"r{number:03d}" if number else "r\x1b000",
            "text": text,
            "score": random.choice([number, number / 4]),
            "name": name,
            "city": random.choice(["Rome", "Oslo", "Paris"]),
            "url": f"http://{random.choice(['a.org', 'b.net/mirror'])}/docs/{random.randrange(20)}/page.html",
            "source": f"http://a.org/docs/{random.randrange(9)}.html",
            "target": f"http://b.net/docs/{random.randrange(9)}.html",
            "user": f"u{random.randrange(9)}",
            "item": f"i{random.randrange(12)}",
            "rating": random.randrange(1, 6),
            "print": f"p{number % 4}",
            "x": random.randrange(300),
            "y": random.randrange(300),
            "angle": random.randrange(360),
            "vector": [random.random() for _ in range(8)],
        }
        for number, (text, name) in enumerate(zip(texts, names, strict=True))
    ]


NAMES = pa.dictionary(pa.int8(), pa.string())
TEXT_TYPES = [pa.string(), pa.string(), pa.large_string(), pa.string_view(), pa.binary(), NAMES]
ID_TYPES = [pa.string(), pa.string(), pa.large_string(), pa.string_view(), NAMES]


def table(random, views=True):
    """A table of records whose columns have various types, and more columns that are nested and have nulls."""
    rows = records(random)
    columns = {name: pa.array([row[name] for row in rows]) for name in rows[0]}
    columns["text"] = columns["text"].cast(
        random.choice([kind for kind in TEXT_TYPES if views or "view" not in str(kind)])
    )
    columns["id"] = columns["id"].cast(random.choice([kind for kind in ID_TYPES if views or "view" not in str(kind)]))
    columns["vector"] = columns["vector"].cast(random.choice([pa.list_(pa.float64()), pa.list_(pa.float32(), 8)]))
    if random.random() < 0.5:
        columns["name"] = columns["name"].dictionary_encode()
    more = {
        "tags": [None if random.random() < 0.2 else row["text"].split()[:3] for row in rows],
        "nested": [[[number], [], None] for number in range(len(rows))],
        "struct": [{"a": row["name"], "b": {"c": row["score"]}} for row in rows],
        "when": pa.array([None if random.random() < 0.2 else 1000 * n for n in range(len(rows))], pa.timestamp("ms")),
        "flag": [random.choice([True, False, None]) for _ in rows],
        "nothing": pa.nulls(len(rows)),
    }
    chosen = [name for name in more if random.random() < 0.4]
    return pa.table({**columns, **{name: more[name] for name in chosen}})


def parquet(random):
    out = io.BytesIO()
    pq.write_table(
        table(random, views=False),
        out,
        row_group_size=random.choice([5, 20, 1000]),
        compression=random.choice(["snappy", "none", "gzip", "zstd", "lz4", "brotli"]),
        use_dictionary=random.random() < 0.6,
        data_page_version=random.choice(["1.0", "2.0"]),
        data_page_size=random.choice([200, 1 << 20]),
        store_schema=random.random() < 0.7,
    )
    return out.getvalue()


def arrow(random):
    """The file format, or the stream."""
    out = io.BytesIO()
    whole = table(random)
    options = pa.ipc.IpcWriteOptions(compression=random.choice([None, None, "lz4", "zstd"]))
    new = random.choice([pa.ipc.new_file, pa.ipc.new_stream])
    with new(out, whole.schema, options=options) as writer:
        writer.write_table(whole.unify_dictionaries(), max_chunksize=random.choice([7, 25, 1000]))
    return out.getvalue()


def jsonl(random):
    return "".join(
        json.dumps(row, ensure_ascii=random.random() < 0.5) + random.choice(["\n", "\n", "\r\n"])
        for row in records(random)
    ).encode()


def delimited(random, mark):
    rows = records(random)
    names = [name for name in rows[0] if name != "vector"]
    quote = (lambda value: f'"{value}"') if random.random() < 0.5 else str
    lines = [mark.join(names), *(mark.join(quote(row[name]) for name in names) for row in rows)]
    return "\n".join(lines).encode()


def csv(random):
    return delimited(random, ",")


def tsv(random):
    return delimited(random, "\t")


def text(random):
    return "\n".join(sentences(random, random.randrange(3, 40))).encode()


def html(random):
    body = "".join(f"<p>{one}</p>" for one in sentences(random, 5))
    return f"<!doctype html><html><head><title>News</title></head><body><h1>x</h1>{body}</body></html>".encode()


def warc(random):
    made = b""
    for number in range(3):
        page = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + html(random)
        head = f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.org/{number}\r\n"
        head += f"WARC-Date: 2024-01-01T00:00:00Z\r\nWARC-Record-ID: <urn:uuid:{number}>\r\n"
        head += f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(page)}\r\n\r\n"
        made += head.encode() + page + b"\r\n\r\n"
    return made


def npy(random):
    kind = random.choice(["<f4", "<f8", ">f4", "<i4", "|u1", "<u8", "|b1", "<f2"])
    numbers = np.random.default_rng(random.randrange(1 << 30)).integers(0, 2 if kind == "|b1" else 99, (40, 8))
    array = numbers.astype(kind)
    out = io.BytesIO()
    np.lib.format.write_array(
        out, np.asfortranarray(array) if random.random() < 0.3 else array, random.choice([(1, 0), (2, 0), (3, 0)])
    )
    return out.getvalue()


MAKERS = {
    ".parquet": parquet, ".arrow": arrow, ".jsonl": jsonl, ".json": jsonl, ".csv": csv, ".tsv": tsv, ".txt": text,
    ".html": html, ".warc": warc, ".npy": npy,
}  # fmt: skip
FORMATS = [
    ".parquet", ".arrow", ".npy", ".jsonl", ".json", ".csv", ".tsv", ".txt", ".html", ".warc",
    *(ending + pack for pack in (".gz", ".bz2", ".xz", ".zst") for ending in (".jsonl", ".csv")),
    ".txt.gz", ".txt.xz", ".html.gz", ".warc.gz", ".parquet.gz", ".arrow.zst",
]  # fmt: skip
NASTY = [
    b"\0", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\x1b[31m", b'"', b"\r", b"\xef\xbb\xbf", b"{", b"[" * 3000, b"\\ud800",
    b"1e999", b"9" * 400, b"NaN", b"null", b"\n", b",", b"<", b"\x9b31m", b"-1", b"\x80" * 7,
]  # fmt: skip
NUMBERS = [b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\0\0\0\x80", b"\0\0\0\0", b"\x01\0\0\0", b"\0\0\xff\x7f"]


def damage(data, random):
    """Damage the bytes of a file in one of many ways."""
    data = bytearray(data)
    size = max(1, len(data))
    where = random.choice([0, 0, 1, 2, 2])
    low, high = [(0, min(600, size)), (0, size), (max(0, size - 3000), size)][where]

    def place():
        return random.randrange(low, high)

    def stretch():
        start = place()
        return start, min(size, start + random.choice([1, 4, 16, 100, 1000]))

    way = random.choice(
        ["flip"] * 6
        + ["number"] * 3
        + ["nasty"] * 3
        + ["cut", "cut", "zero", "drop", "swap", "twice", "random", "empty"]
    )
    if way == "flip" and data:
        for _ in range(random.choice([1, 1, 1, 2, 8])):
            data[min(place(), len(data) - 1)] ^= 1 << random.randrange(8)
    elif way == "number":
        at = place() // 4 * 4
        data[at : at + 4] = random.choice(NUMBERS)
    elif way == "nasty":
        at = place()
        data[at : at + random.choice([0, 1])] = random.choice(NASTY)
    elif way == "cut":
        del data[random.randrange(size) :]
    elif way == "zero":
        start, stop = stretch()
        data[start:stop] = bytes(stop - start)
    elif way == "drop":
        start, stop = stretch()
        del data[start:stop]
    elif way == "swap":
        (a, b), (c, d) = sorted([stretch(), stretch()])
        data = data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]
    elif way == "twice":
        start, stop = stretch()
        data[start:start] = data[start:stop]
    elif way == "random":
        start, stop = stretch()
        data[start:stop] = random.randbytes(stop - start)
    elif way == "empty":
        data = bytearray(random.randbytes(random.choice([0, 0, 1, 10])))
    return bytes(data)


def file(ending, random):
    """The bytes of a damaged file with this ending; a compressed one is damaged before or after compression."""
    kind, _, pack = ending[1:].partition(".")
    pack = f".{pack}" if pack else ""
    data = MAKERS[f".{kind}"](random)
    if pack and random.random() < 0.4:
        return PACKED[pack](damage(data, random))
    return damage(PACKED[pack](data), random)
