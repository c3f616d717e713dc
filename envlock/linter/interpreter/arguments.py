"""The arguments of a call as values."""

from __future__ import annotations

import ast
from collections.abc import Sequence as Several
from dataclasses import dataclass, field

from envlock.linter.interpreter.values import Constant, Value
from envlock.linter.names import NAMING_KEYWORDS


@dataclass(slots=True)
class Call:
    """What a call gives.

    Attributes:
        node: the call in the text.
        arguments, keywords: its values.
        starred: whether some of them cannot be seen.
        discarded: whether nothing uses what it returns.
    """

    node: ast.AST
    arguments: list[Value] = field(default_factory=list)
    keywords: dict[str, Value] = field(default_factory=dict)
    starred: bool = False
    discarded: bool = False

    def get(self, name: str, position: int | None = None) -> Value | None:
        """Return an argument by its name or its position, or None where it is not given."""
        if name in self.keywords:
            return self.keywords[name]
        if position is not None and 0 <= position < len(self.arguments):
            return self.arguments[position]
        return None

    def get_constant(self, name: str, position: int | None = None) -> object:
        """Return the constant that an argument is by default; `...` for any other, None where it is
        missing.
        """
        value = self.get(name, position)
        if isinstance(value, Constant):
            return value.value
        if value is not None:
            return value.default
        if self.starred:  # `**options` may give it
            return ...
        return None

    def list_values(self) -> Several[Value]:
        """Return everything that it gives."""
        if not self.keywords:
            return self.arguments
        return [*self.arguments, *self.keywords.values()]

    def list_data(self) -> Several[Value]:
        """Return all arguments but names and titles, which change no result."""
        if not self.keywords:
            return self.arguments
        named = [value for word, value in self.keywords.items() if word not in NAMING_KEYWORDS]
        return [*self.arguments, *named]

    def list_named_values(self) -> list[tuple[str, Value]]:
        """Return everything that it gives with its name, or with its position as text."""
        named = [(str(place), value) for place, value in enumerate(self.arguments)]
        if self.keywords:
            named += self.keywords.items()
        return named

    def get_first(self) -> Value:
        """Return the first argument."""
        if self.arguments:
            return self.arguments[0]
        return Value()
