"""The program: `envlock`, and `python -m envlock`. The command line is an extra of the distribution."""

import _signal  # type: ignore[import-not-found]  # `signal` imports enum, too: 20 ms in which Ctrl-C shows a traceback
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

FORWARDED = "ENVLOCK_FORWARDED"
"""The folders of those that have handed over already: each asks the next one on the PATH, and none is asked twice."""


def main() -> None:
    """Run the command line; exit with 2 and say what it needs where that is not here."""
    interruptible = _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler
    if (
        interruptible
    ):  # while it is loaded, Ctrl-C ends the process as it does any program: without a traceback
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    program = _program()
    if interruptible:
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)
        sys.unraisablehook = _ask_again
    try:
        sys.exit(program())
    except KeyboardInterrupt:
        sys.exit(130)


def _ask_again(lost: "Any") -> None:
    """Repeat, a little later, a Ctrl-C that came within a finalizer, as imports have them: Python only shows it."""
    if issubclass(lost.exc_type, KeyboardInterrupt):
        _signal.signal(_signal.SIGALRM, _signal.default_int_handler)
        _signal.setitimer(_signal.ITIMER_REAL, 0.01)
    else:
        sys.__unraisablehook__(lost)


def _program() -> "Callable[[], int | None]":
    """Return what this installation and these words need: the command line, or the runtime half's."""
    from pathlib import Path

    if not (Path(__file__).parent / "cli").is_dir() or _is_rank(
        sys.argv[1:]
    ):  # in an image: the runtime half alone
        from envlock.fleet.command import main as runtime

        return lambda: runtime(sys.argv[1:])
    if sys.version_info < (3, 10):  # noqa: UP036 (what scripts import runs on 3.8, so it can be installed there)
        _without("Python 3.10 or newer")
    _without_plugins()
    try:
        from envlock.cli import main as program
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("envlock"):
            raise
        _without(error.name)
    return program


def _without_plugins() -> None:
    """Let pydantic, when it is imported, look for no plugins.

    It would read the entry points of every distribution on the import path, and fail at the first malformed ones.
    PYDANTIC_DISABLE_PLUGINS, the variable against it, would reach the programs that this one starts. With a pydantic
    that has no such module any more, this does nothing.
    """
    from types import SimpleNamespace

    sys.modules.setdefault("pydantic.plugin._loader", SimpleNamespace(get_plugins=tuple))  # type: ignore[arg-type]


def _is_rank(words: "list[str]") -> bool:
    """Return whether a rank of a job reports its own environment: thousands may, and none needs the whole program."""
    if words[:2] != ["fleet", "report"] or os.environ.get("ENVLOCK_PYTHON"):
        return False
    from importlib.util import find_spec

    elsewhere = any(word in ("-h", "--help") or word.startswith("--python") for word in words)
    return not elsewhere and find_spec("tensorflow") is not None


def _without(what: str) -> "NoReturn":
    """Hand over to the envlock that is installed as a tool, or say what this one needs."""
    asked = _asked()
    tool = _tool(asked)
    if tool is not None:
        environ = {
            "ENVLOCK_PYTHON": sys.executable,
            **os.environ,
            FORWARDED: os.pathsep.join(sorted(asked)),
        }
        os.execve(tool, [tool, *sys.argv[1:]], environ)  # noqa: S606 (in this process's place, without a shell)
    sys.stderr.write(
        f"error: the command line needs {what}\n"
        'hint: install it outside the environment, in a checkout of envlock: `uv tool install ".[cli]"`\n'
    )
    sys.exit(2)


def _asked() -> "set[str]":
    """Return the folders of this `envlock`, and of those that have handed over to it."""
    from pathlib import Path

    ours = [str(Path(program).parent.resolve()) for program in (sys.argv[0], sys.executable)]
    return {each for each in [*ours, *os.environ.get(FORWARDED, "").split(os.pathsep)] if each}


def _tool(asked: "set[str]") -> "str | None":
    """Return the next `envlock` on the PATH, such as that of `uv tool install` after those of environments."""
    import shutil
    from pathlib import Path

    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return shutil.which(
        "envlock",
        path=os.pathsep.join(each for each in folders if str(Path(each).resolve()) not in asked),
    )


if __name__ == "__main__":
    main()
