"""What an index holds, whether it is sound, and how it is mended."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from likewise.base.words import counted
from likewise.errors import DamagedError
from likewise.index.change import OWN_VALUES, Change
from likewise.index.manifest import Manifest
from likewise.index.scheme import Scheme
from likewise.index.store import Store


@dataclass(frozen=True)
class Report:
    """The result of a check: what was read, what is not part of the index, and what was lost in a repair."""

    items: int
    values: int
    bytes: int
    unused: int
    lost: int = 0

    def to_dict(self) -> dict[str, int]:
        """Return the numbers by name."""
        return asdict(self)

    def __str__(self) -> str:
        sound = f"{counted(self.items, 'item')}: {counted(self.values, 'value')} of {self.bytes:,} bytes, all sound"
        unused = (
            f"; {counted(self.unused, 'value')} of an interrupted add, which compact removes" if self.unused else ""
        )
        return sound + unused + (f"; {counted(self.lost, 'item')} lost in the repair" if self.lost else "")


def describe(header: Mapping[str, Any], manifest: Manifest, store: Store) -> dict[str, Any]:
    """Return the settings of an index, and what it holds."""
    rows = sum(entry.rows for entry in manifest.segments)
    used = sum(facts[0] for _, facts in manifest.parts())
    return {
        **{name: value for name, value in header.items() if name != "common"},
        "count": manifest.live,
        "removed": rows - manifest.live,
        "different": sum(entry.entries for entry in manifest.segments),
        "ids": manifest.ids,
        "segments": [entry.rows for entry in manifest.segments],
        "generation": manifest.generation,
        "bytes_used": used,
        "bytes_on_disk": store.size(),
        "bytes_per_item": round(used / rows, 1) if rows else None,
    }


def check_index(change: Change, scheme: Scheme, threads: int, repair: bool) -> Report:
    """Check every value against its checksum."""
    with change.store.read() as snapshot:
        view = change.view(snapshot)
        values = size = 0
        known = set(OWN_VALUES)
        for name, (length, checksum) in view.manifest.parts():
            data = snapshot.get(name)
            known.add(name)
            if data is None or len(data) != length or zlib.crc32(data) != checksum:
                raise DamagedError(f"{change.store.where}: the value {name} is damaged")
            values, size = values + 1, size + length
        unused = [name for name in snapshot.names() if name not in known]
    return Report(view.manifest.live, values, size, len(unused))
