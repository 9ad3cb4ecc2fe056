"""Print the rooms of the source tree, how large they are, who imports whom, and how many floors they form.

    python tools/rooms.py                 the tree this script is in
    python tools/rooms.py OTHER/src       another one, to compare

A room is a package or module directly below `likewise`. Imports inside functions count; those for type checkers only do
not. The number of floors is the longest chain of rooms in which each imports the next; rooms that import each other
share a floor and are listed as circles.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from pathlib import Path

PACKAGE = "likewise"


def room_of(module: str, rooms: set[str]) -> str | None:
    """Return the room a dotted name leads to.

    >>> room_of("likewise.search.exact.join", {"search"})
    'search'
    """
    parts = module.split(".")
    return parts[1] if parts[0] == PACKAGE and len(parts) > 1 and parts[1] in rooms else None


def imports_of(tree: ast.AST) -> list[str]:
    """Return the dotted names that a module imports at run time."""
    found: list[str] = []
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.If) and getattr(node.test, "id", getattr(node.test, "attr", "")) == "TYPE_CHECKING":
            stack.extend(node.orelse)
            continue
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found += [f"{node.module}.{alias.name}" for alias in node.names]
        children = ast.iter_child_nodes(node)  # no expression has an import in it
        stack.extend(child for child in children if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case))
    return found


def read(root: Path) -> tuple[dict[str, list[Path]], dict[tuple[str, str], int]]:
    """Return the files of every room, and the number of import statements from one room to another."""
    files: dict[str, list[Path]] = defaultdict(list)
    for path in sorted((root / PACKAGE).rglob("*.py")):
        top = path.relative_to(root / PACKAGE).parts[0].removesuffix(".py")
        if not top.startswith("__"):
            files[top].append(path)
    edges: dict[tuple[str, str], int] = defaultdict(int)
    for room, paths in files.items():
        for path in paths:
            for name in imports_of(ast.parse(path.read_text(encoding="utf-8"))):
                other = room_of(name, set(files))
                if other is not None and other != room:
                    edges[room, other] += 1
    return dict(files), dict(edges)


def components(rooms: list[str], edges: dict[tuple[str, str], int]) -> dict[str, int]:
    """Number the rooms so that two have the same number if each can be reached from the other."""
    reach = {room: {room} for room in rooms}
    changed = True
    while changed:
        changed = False
        for a, b in edges:
            new = reach[b] - reach[a]
            if new:
                reach[a] |= new
                changed = True
    numbers: dict[str, int] = {}
    for room in rooms:
        same = next((other for other in numbers if other in reach[room] and room in reach[other]), None)
        numbers[room] = len(set(numbers.values())) if same is None else numbers[same]
    return numbers


def floors(rooms: list[str], edges: dict[tuple[str, str], int]) -> dict[str, int]:
    """Return the floor of every room: one above the highest room it imports."""
    number = components(rooms, edges)
    level = dict.fromkeys(set(number.values()), 0)
    for _ in level:
        for a, b in edges:
            if number[a] != number[b]:
                level[number[a]] = max(level[number[a]], level[number[b]] + 1)
    return {room: level[number[room]] for room in rooms}


def main() -> None:
    """Print the rooms from the ground up."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / "src"
    files, edges = read(root)
    rooms = sorted(files)
    floor = floors(rooms, edges)
    number = components(rooms, edges)
    width = max(map(len, rooms))
    for room in sorted(rooms, key=lambda one: (floor[one], one)):
        lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files[room])
        below = ", ".join(sorted(b for a, b in edges if a == room))
        size = f"{len(files[room]):>3} files {lines:>6,} lines"
        print(f"{floor[room]:>2}  {room:<{width}}  {size}  imports {below or '-'}")
    circles = {one for one in number.values() if list(number.values()).count(one) > 1}
    print(
        f"{len(rooms)} rooms on {max(floor.values()) + 1} floors; {len(edges)} imports between rooms "
        f"({sum(edges.values()):,} names); {len(circles)} circles"
    )
    for circle in sorted(circles):
        print("circle: " + ", ".join(room for room in rooms if number[room] == circle))


if __name__ == "__main__":
    main()
