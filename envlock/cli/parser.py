"""How command lines are parsed: programs of one command, completion without a price, options with choices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from io import StringIO
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from envlock.cli.output import say
from envlock.runtime.errors import UsageError

ParserError: Any = next(
    each for each in typer.BadParameter.__mro__ if each.__name__ == "ClickException"
)
"""What the parser raises. Typer holds click's code in some versions and imports it in others: it gives this no name."""


def complain(error: Any) -> int:
    """Print the parser's own words, in which no word of the command line moves a terminal; return the exit code."""
    words = StringIO()
    error.show(words)
    say(words.getvalue())
    return int(error.exit_code)


METAVARS = {
    **dict.fromkeys(("runs", "seed", "steps", "step", "ranks"), "N"),
    **dict.fromkeys(
        ("output", "python", "wheelhouse", "save", "html", "png", "add_wheel", "path"), "PATH"
    ),
    **dict.fromkeys(("select", "ignore"), "RULE"),
    **dict.fromkeys(("tag", "job"), "NAME"),
    **{name: name.upper() for name in ("a", "b", "base", "ours", "theirs", "image")},
    "index_url": "URL",
    "reason": "TEXT",
    "setup": "LINES",
}
"""What the help calls the value of a parameter, by the parameter's name; a `metavar` of its own comes first."""


class Group(TyperGroup):
    """A group of commands; completing its command line parses nothing."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is meant, as the parser does.

        Raises:
            UsageError: there is none of this name; the hint names the nearest.
        """
        names = self.list_commands(ctx)
        if not ctx.resilient_parsing and args[0] not in names and not args[0].startswith("-"):
            nearest = get_close_matches(args[0], names, n=1)
            hint = (
                f"did you mean `{nearest[0]}`?"
                if nearest
                else f"`{ctx.command_path} --help` lists the commands"
            )
            raise UsageError(f"unknown command `{args[0]}`", hint=hint)
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse; while a shell completes, the group's own options need not be converted, which costs 60 ms."""
        if not ctx.resilient_parsing:
            return list(super().parse_args(ctx, args))
        self.get_params = lambda ctx: []  # type: ignore[method-assign]
        try:
            return list(super().parse_args(ctx, args))
        finally:
            del self.get_params


class Command(TyperCommand):
    """A command; completing its command line parses nothing, and its help shows values in capitals."""

    def __init__(self, *args: Any, **words: Any) -> None:
        super().__init__(*args, **words)
        for param in self.params:
            if param.metavar is None and not getattr(param, "is_flag", False):
                param.metavar = METAVARS.get(param.name or "")

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words after the command's name; Typer's braces mean a choice elsewhere, so they are left out."""
        return [
            piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)
        ]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse; while a shell completes, the words count only, and converting them would cost 60 ms."""
        return [] if ctx.resilient_parsing else list(super().parse_args(ctx, args))


def new_app(**words: Any) -> typer.Typer:
    """Return the program of one command."""
    return typer.Typer(
        rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False, **words
    )


def choice(choices: Sequence[str], what: str, *flags: str, **words: Any) -> Any:
    """Return an option that takes one of some names; the help and the completion list them.

    Raises:
        UsageError: from the option's parser, where the value is another.
    """
    return typer.Option(
        *flags,
        parser=_parser(choices, what),
        metavar="|".join(choices),
        autocompletion=_completer(choices),
        **words,
    )


def _parser(choices: Sequence[str], what: str) -> Callable[[str], str]:
    def parse(value: str) -> str:
        if value not in choices:
            raise UsageError(f"unknown {what} `{value}`", hint=f"choose from: {', '.join(choices)}")
        return value

    return parse


def _completer(choices: Sequence[str]) -> Callable[[str], list[str]]:
    def complete(incomplete: str) -> list[str]:
        return [name for name in choices if name.startswith(incomplete)]

    return complete
