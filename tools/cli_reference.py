"""Write docs/reference/cli.md, the reference of all commands, from the commands themselves.

    python tools/cli_reference.py            writes the page
    python tools/cli_reference.py --check    fails if the page is not current

The text of a command is its --help: what it does, its arguments, options with their defaults, and its examples.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "cli.md"
OPENING = """# Commands

Every command, its arguments and its options, as `likewise COMMAND --help` prints them. This page is generated from the code:
`python tools/cli_reference.py`.

Options that several commands have mean the same everywhere. An option that has no effect in a call is an error.

## Exit codes

| code | meaning | what to do |
|---|---|---|
| 0 | success | |
| 1 | error in the data, a file or the environment: a missing file or column, a broken row, a full disk, not enough memory | the message names the file and the row; `--on-error skip` sets broken rows aside |
| 2 | usage error: unknown command or option, value out of range, option without effect | the message says what is allowed, and suggests the nearest name |
| 130 | interrupted (Ctrl-C) | run the same command again: it resumes where it stopped |

A command ended by another signal ends with 128 and the number of the signal, as is usual. Errors are one line on standard error, which
begins with `likewise:` (for usage errors, after the usage line).

## Completion

`likewise completion bash` (or `zsh`, `fish`) prints the shell completion script: it completes commands, options, choices and file names.

```
likewise completion bash > ~/.local/share/bash-completion/completions/likewise
likewise completion fish > ~/.config/fish/completions/likewise.fish
likewise completion zsh > ~/.likewise-completion.zsh && echo '. ~/.likewise-completion.zsh' >> ~/.zshrc
```
"""  # noqa: E501


def prose(text: str | None) -> Iterator[str]:
    """Yield the paragraphs of a help text as Markdown: indented ones, and those after backspaces, as blocks of code."""
    paragraphs = [part.strip("\n") for part in re.split(r"\n\s*\n", (text or "").expandtabs())]
    for paragraph in paragraphs:
        lines = paragraph.split("\n")
        if lines[0].strip() != "\b":
            yield escape(" ".join(" ".join(lines).split()))
            continue
        lines = lines[1:]
        if lines and not lines[0].startswith(" "):
            yield escape(lines.pop(0).strip())
        if lines:
            yield "```\n" + "\n".join(line.removeprefix("  ") for line in lines) + "\n```"


def escape(text: str) -> str:
    """Keep what a help text says from being read as Markdown or HTML.

    >>> escape("columns a|b of <FILE>, name_of_it *")
    'columns a\\\\|b of \\\\<FILE\\\\>, name\\\\_of\\\\_it \\\\*'
    """
    return re.sub(r"([\\`*_<>|\[\]])", r"\\\1", text)


def option_row(option: click.Option, context: click.Context) -> str | None:
    """Return a row of the table of options, made from the record that --help prints."""
    record = option.get_help_record(context)
    if record is None:
        return None
    names, text = record
    return f"| {code(names)} | {escape(' '.join(text.split()))} |"


def code(names: str) -> str:
    """Write the names of an option as code that fits in a table."""
    return "`" + names.replace("|", "\\|") + "`"


def section(command: click.Command, path: str, level: int) -> Iterator[str]:
    """Yield the parts of the page that describe a command, and those of its subcommands."""
    context = click.Context(command, info_name=path, max_content_width=10_000, terminal_width=10_000)
    yield f"{'#' * level} {path}"
    yield from prose(command.help)
    if not isinstance(command, click.Group):
        pieces = " ".join(command.collect_usage_pieces(context))
        yield f"```\n{path} {pieces}\n```"
        rows = [option_row(one, context) for one in command.params if isinstance(one, click.Option)]
        rows = [row for row in rows if row is not None]
        if rows:
            yield "\n".join(["| option | |", "|---|---|", *rows])
    yield from prose(command.epilog)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            one = command.get_command(context, name)
            assert one is not None
            yield from section(one, f"{path} {name}", level + 1)


def page() -> str:
    """Return the page."""
    from likewise.cli import GROUPS, cli

    context = click.Context(cli, info_name="likewise")
    parts = [OPENING.strip()]
    for title, names in GROUPS.items():
        parts.append(f"## {title}")
        for name in names:
            command = cli.get_command(context, name)
            assert command is not None
            parts += section(command, f"likewise {name}", 3)
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Write the page, or compare it."""
    if sys.argv[1:] == ["--check"]:
        sys.exit(0 if PAGE.read_text(encoding="utf-8") == page() else f"{PAGE} is not current: run {sys.argv[0]}")
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
