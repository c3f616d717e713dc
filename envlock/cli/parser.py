"""How command lines are parsed: programs of one command, fast completion, options with choices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from io import StringIO
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from envlock.cli.output import say
from envlock.runtime.errors import UsageError, make_choice_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    # The newest Typer, with which types are checked, contains a copy of click's code; older ones
    # import click.
    from typer._click.core import Command as AnyCommand
    from typer._click.core import Context
    from typer._click.exceptions import ClickException


def _find_parser_error() -> type[ClickException]:
    """Return the class of the parser's errors, for which Typer has no public name."""
    for base in typer.BadParameter.__mro__:
        if base.__name__ == "ClickException":
            return base
    raise TypeError("typer.BadParameter does not inherit from ClickException")


ParserError = _find_parser_error()


def complain(error: ClickException) -> int:
    """Print the parser's own error with control characters escaped; return the exit code."""
    words = StringIO()
    error.show(words)
    say(words.getvalue())
    return int(error.exit_code)


METAVARS = {
    **dict.fromkeys(("runs", "seed", "steps", "step", "ranks"), "N"),
    **dict.fromkeys(("output", "python", "wheelhouse", "save", "html", "path"), "PATH"),
    **dict.fromkeys(("select", "ignore"), "RULE"),
    "a": "A",
    "b": "B",
    "image": "IMAGE",
    "reason": "TEXT",
    "setup": "LINES",
    "tag": "NAME",
}
"""The help's names for the values of parameters, by parameter; its own `metavar` goes before this
table.
"""


class Group(TyperGroup):
    """A group of commands; for completion its options are not converted."""

    def resolve_command(
        self, ctx: Context, args: list[str]
    ) -> tuple[str | None, AnyCommand | None, list[str]]:
        """Return the named command, as the parser does.

        Raises:
            UsageError: there is no command with this name; the hint names the nearest.
        """
        names = self.list_commands(ctx)
        if not ctx.resilient_parsing and args[0] not in names and not args[0].startswith("-"):
            hint = f"`{ctx.command_path} --help` lists the commands"
            for nearest in get_close_matches(args[0], names, n=1):
                hint = f"did you mean `{nearest}`?"
            raise UsageError(f"unknown command `{args[0]}`", hint=hint)
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Parse the words; during completion, the group's own options are not converted, which
        saves 60 ms.
        """
        if not ctx.resilient_parsing:
            return list(super().parse_args(ctx, args))
        self.get_params = lambda ctx: []  # type: ignore[method-assign]
        try:
            return list(super().parse_args(ctx, args))
        finally:
            del self.get_params


class Command(TyperCommand):
    """A command; for completion its options are not converted, and its help shows values in
    capitals.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for param in self.params:
            if param.metavar is None and not getattr(param, "is_flag", False):
                param.metavar = METAVARS.get(param.name or "")

    def collect_usage_pieces(self, ctx: Context) -> list[str]:
        """Return the words after the command's name in the usage line."""
        # Braces mean a choice elsewhere, but Typer writes them around every argument.
        return [
            piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)
        ]

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Parse the words; during completion only their number matters, and not converting them
        saves 60 ms.
        """
        if ctx.resilient_parsing:
            return []
        return list(super().parse_args(ctx, args))


def make_app(**options: Any) -> typer.Typer:
    """Return the program of one command."""
    return typer.Typer(
        rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False, **options
    )


def make_choice(choices: Sequence[str], what: str, *flags: str, **options: Any) -> object:
    """Return an option with a fixed set of values; the help and the completion list them.

    Raises:
        UsageError: from the option's parser, for any other value.
    """
    return typer.Option(
        *flags,
        parser=_make_parser(choices, what),
        metavar="|".join(choices),
        autocompletion=_make_completer(choices),
        **options,
    )


def _make_parser(choices: Sequence[str], what: str) -> Callable[[str], str]:
    def parse(value: str) -> str:
        if value not in choices:
            raise make_choice_error(what, value, choices)
        return value

    return parse


def _make_completer(choices: Sequence[str]) -> Callable[[str], list[str]]:
    def complete(incomplete: str) -> list[str]:
        return [name for name in choices if name.startswith(incomplete)]

    return complete
