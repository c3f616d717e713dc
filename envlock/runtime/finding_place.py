"""What a finding is about: a fact, or a place in a file."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict


class Where:
    """What a finding is about: a fact, or a place in a file.

    Attributes:
        fact: the dotted path of a fact, such as `tensorflow.version`; of an installed file, its
            path.
        operation: an operation of TensorFlow.
        file, line, column, end_line, end_column: a place; lines and columns count from 1; 0 means
            unknown.
        function: the function that contains the place.
        text: the line of code.
        part: the part of the project, where that is not its own code: `tests`, or `uncalled`.
    """

    __slots__ = (
        "column",
        "end_column",
        "end_line",
        "fact",
        "file",
        "function",
        "line",
        "operation",
        "part",
        "text",
    )

    def __init__(
        self,
        fact: str = "",
        *,
        file: str = "",
        line: int = 0,
        column: int = 0,
        end_line: int = 0,
        end_column: int = 0,
        function: str = "",
        operation: str = "",
        text: str = "",
        part: str = "",
    ) -> None:
        self.fact = fact
        self.file = file
        self.line = line
        self.column = column
        self.end_line = end_line
        self.end_column = end_column
        self.function = function
        self.operation = operation
        self.text = text
        self.part = part

    def __str__(self) -> str:
        if not self.file:
            return self.fact or self.operation
        numbers = filter(None, (self.line, self.column))
        return ":".join([self.file, *map(str, numbers)])

    def to_json(self) -> Dict[str, object]:
        """Return it as JSON values, without keys for unknown parts."""
        values: Dict[str, object] = {}
        for name in self.__slots__:
            value = getattr(self, name)
            if value:
                values[name] = value
        return values
