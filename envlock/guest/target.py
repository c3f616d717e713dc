"""What `envlock repeat` and `envlock diverge` run: a script, a module, or a function in one of
these.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from envlock.runtime.errors import UsageError

FORMS = "write SCRIPT.py[:FUNCTION], or PACKAGE.MODULE[:FUNCTION]"
RELATIVE_IMPORT = "attempted relative import"
"""Python's message if a file of a package is run by its path."""


@dataclass(frozen=True)
class Target:
    """What is run: a function of a script, or the whole script if `function` is None."""

    script: Path
    """The script; for a module, the file that it would be in the current folder."""
    function: str | None
    args: tuple[str, ...] = ()
    """The arguments for `sys.argv[1:]`."""
    module: str | None = None
    """The name under which it is imported; None for a file."""

    def __str__(self) -> str:
        return self._with_function(self.module or str(self.script))

    @property
    def name(self) -> str:
        """The name of the script or module, without folders."""
        return self.module or self.script.name

    @property
    def title(self) -> str:
        """The name, with that of the function."""
        return self._with_function(self.name)

    @property
    def folder(self) -> Path:
        """The folder that names of the program's files are relative to: the script's, or the
        current one.
        """
        if self.module is None:
            return self.script.parent
        return Path()

    def to_json(self) -> dict[str, object]:
        """Return the description that the programs of envlock/guest take."""
        return {
            "script": self.module or str(self.script),
            "module": self.module is not None,
            "function": self.function,
            "args": list(self.args),
        }

    def unusable(self, message: str, command: str) -> UsageError:
        """Return the error that it cannot be run, with a hint; `command` is `repeat` or `diverge`."""
        hint = f"run `envlock {command} --help` for what can be run, and how"
        if RELATIVE_IMPORT in message:
            hint = self.by_module(command)
        elif message.startswith("unknown module"):
            hint = "run it in the folder that holds the package, or name that folder in PYTHONPATH"
        elif "ModuleNotFoundError" in message:
            hint = "name the interpreter of an environment that has it: --python .venv/bin/python"
        return UsageError(message, hint=hint)

    def by_module(self, command: str) -> str:
        """Return how to run a file of a package by the name of its module."""
        parts, folder = [self.script.stem], self.script.absolute().parent
        while (folder / "__init__.py").is_file() and folder != folder.parent:
            parts.insert(0, folder.name)
            folder = folder.parent
        name, place = ".".join(parts), str(folder)
        # Without an __init__.py it is unknown where the package begins.
        if len(parts) == 1:
            name, place = f"PACKAGE.{name}", "the folder of the package"
        words = name if self.function is None else f"{name}:{self.function}"
        hint = f"run it by its module: envlock {command} {words}"
        if folder != Path.cwd():
            hint += f", in {place}"
        return hint

    def _with_function(self, name: str) -> str:
        if self.function is None:
            return name
        return f"{name}:{self.function}"


def parse_target(text: str, args: tuple[str, ...] = ()) -> Target:
    """Return the target that `SCRIPT[:FUNCTION]` or `PACKAGE.MODULE[:FUNCTION]` means; a file of that
    name goes first.

    Args:
        text: the words as the user typed them.
        args: for `sys.argv`.

    Raises:
        UsageError: there is no such script, it is a compiled program, or a name is not valid in Python.
    """
    if Path(text).is_file():
        if _is_compiled(Path(text)):
            raise UsageError(
                f"{text} is a compiled program",
                hint=f"{FORMS}; an interpreter is named by --python",
            )
        return Target(Path(text), None, args)
    script, colon, last = text.rpartition(":")
    name, function = (script, last) if colon else (text, None)
    path = Path(name)
    # A file goes first, and a name that ends with .py is that of a file even if it does not exist.
    by_name = not path.is_file() and path.suffix != ".py" and _is_dotted_name(name)
    if not by_name and path.is_dir():
        raise UsageError(f"the script {path} is a folder", hint=FORMS)
    if not by_name and not path.is_file():
        raise UsageError(f"the script {path} is missing", hint=FORMS)
    if function is not None and not _is_dotted_name(function):
        raise UsageError(f"`{function}` is not the name of a function", hint=FORMS)
    if not by_name:
        return Target(path, function, args)
    return Target(Path(*name.split(".")).with_suffix(".py"), function, args, name)


def _is_compiled(path: Path) -> bool:
    """Return whether a file is one that Linux executes itself, such as an interpreter."""
    try:
        with path.open("rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:  # Python says why when it runs the script
        return False


def _is_dotted_name(text: str) -> bool:
    return all(map(str.isidentifier, text.split(".")))
