"""`SCRIPT[:FUNCTION]`, as written on a command line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from envlock.runtime.errors import UsageError


@dataclass(frozen=True)
class Target:
    """What is run: a function of a script, or the whole script where `function` is None."""

    script: Path
    function: str | None
    args: tuple[str, ...] = ()
    """What the script finds in `sys.argv[1:]`."""

    def __str__(self) -> str:
        return str(self.script) if self.function is None else f"{self.script}:{self.function}"


def target(text: str, args: tuple[str, ...] = ()) -> Target:
    """Return what `SCRIPT[:FUNCTION]` means; a file whose own name has a colon comes first.

    Raises:
        UsageError: there is no such script, or the function's name is none.
    """
    whole = Path(text)
    if whole.is_file():
        return Target(whole, None, args)
    script, colon, function = text.rpartition(":")
    path = Path(script if colon else text)
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "is not there"
        raise UsageError(f"the script {path} {what}", hint="write SCRIPT.py, or SCRIPT.py:FUNCTION")
    if not all(part.isidentifier() for part in function.split(".")):
        raise UsageError(f"`{function}` is no name of a function", hint="write SCRIPT.py:FUNCTION")
    return Target(path, function, args)
