"""What a Redis store says of itself: which names it has, and under which keys the server keeps their values.

All keys of a store begin with likewise:{NAME}: and, thanks to the braces, belong to one slot.

- version: the id of the last change. It is all that a reader asks for as long as nothing changes.
- catalogue: names, ids and sizes of all values, and the ids of the last changes; JSON with a checksum.
- v:ID:PART: a part of a value. It is written once, and never changed.
- pending: keys of parts that were written for a change that is not committed.
- lock: the token of the writer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from likewise.errors import IncompatibleError
from likewise.index.manifest import pack, unpack

FORMAT = 1
"""Version of how values are kept on the server; what the values are has a version of its own, in the header."""
PART = (1 << 23) - (1 << 12)
"""Bytes of a part: the server does nothing else while it copies one. With what it adds to it, a part takes 8 MiB; one
byte more would take 10."""
RECENT = 256
"""How many changes a catalogue remembers, for a writer whose connection was lost while it committed."""
StoredValues = dict[str, tuple[str, int]]
"""Ids and sizes of values by name."""


class RedisKeys:
    """The keys of a store."""

    def __init__(self, name: str) -> None:
        self.prefix = f"likewise:{{{name}}}:"
        self.version, self.catalogue = f"{self.prefix}version", f"{self.prefix}catalogue"
        self.pending, self.lock = f"{self.prefix}pending", f"{self.prefix}lock"

    def parts(self, id: str, size: int, part: int) -> list[str]:
        """Return the keys of the parts of a value; an empty one has none."""
        return [f"{self.prefix}v:{id}:{number}" for number in range(-(-size // part))]


@dataclass(frozen=True)
class RedisCatalogue:
    """A state of a store. id: of the change that has made it. part: the bytes of a part."""

    id: str
    values: StoredValues
    recent: tuple[str, ...]
    part: int = PART

    def changed(self, id: str, values: StoredValues) -> RedisCatalogue:
        """Return the next state."""
        return RedisCatalogue(id, values, (*self.recent, id)[-RECENT:], self.part)

    def packed(self) -> bytes:
        """Return the catalogue as it is stored."""
        content: dict[str, Any] = {"format": FORMAT, "id": self.id, "part": self.part, "recent": self.recent}
        return pack({**content, "values": self.values})

    @classmethod
    def unpacked(cls, data: bytes, where: str) -> RedisCatalogue:
        """Return a catalogue that was stored."""
        content = unpack(data, f"{where}: the catalogue of the store")
        if content["format"] > FORMAT:
            raise IncompatibleError(
                f"{where}: values are stored in format {content['format']}, by a newer version of likewise; this one "
                f"knows formats up to {FORMAT}"
            )
        values = {name: (id, size) for name, (id, size) in content["values"].items()}
        return cls(content["id"], values, tuple(content["recent"]), content["part"])
