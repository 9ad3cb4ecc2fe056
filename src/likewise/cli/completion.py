"""`likewise completion`: the script by which a shell completes commands, options and files."""

from __future__ import annotations

from typing import Any, cast

import click

COMPLETE = "_LIKEWISE_COMPLETE"
"""The variable by which a shell asks for completions; click reads it."""
SHELLS = ["bash", "zsh", "fish"]


@click.command(
    epilog="""\b
Once, for every new shell:
  likewise completion bash > ~/.local/share/bash-completion/completions/likewise
  likewise completion fish > ~/.config/fish/completions/likewise.fish
  likewise completion zsh > ~/.likewise-completion.zsh && echo '. ~/.likewise-completion.zsh' >> ~/.zshrc

\b
In this shell only:
  source <(likewise completion bash)"""
)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the shell completion script: it completes commands, options, choices and file names.

    It works for the installed command likewise, not for python -m likewise. Bash must be 4.4 or later.
    """
    from click.shell_completion import ShellComplete, get_completion_class

    found: Any = get_completion_class(shell)
    # BashComplete.source looks for a bash to ask for its version; the script may be for another machine.
    click.echo(ShellComplete.source(found(context.find_root().command, {}, "likewise", COMPLETE)))


def complete_files() -> None:
    """Let click offer file names where it knows nothing better: to click, inputs are any text."""
    from click.shell_completion import CompletionItem, add_completion_class, get_completion_class

    def get_completions(self: Any, args: list[str], incomplete: str) -> Any:
        found = cast(Any, super(type(self), self)).get_completions(args, incomplete)
        if found or not args or incomplete.startswith("-"):
            return found
        return [CompletionItem(incomplete, type="file")]

    for shell in SHELLS:
        base: Any = get_completion_class(shell)
        add_completion_class(type(base.__name__, (base,), {"get_completions": get_completions}), shell)
