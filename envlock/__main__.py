"""The program: `envlock`, and `python -m envlock`. The command line is an extra of the
distribution.

Imports stand inside functions: an import at the top would end in a traceback if Ctrl-C came before
`main` handles it.
"""

# `signal` imports enum, too: 20 ms in which Ctrl-C shows a traceback.
import _signal  # type: ignore[import-not-found]
import gc
import os
import sys

# Loaded already, by the search for this module.
import envlock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

FORWARDED = "ENVLOCK_FORWARDED"
"""The variable that lists the folders of every envlock that has already handed over: each hands
over to the next one on the PATH, and none is asked twice.
"""


OBJECTS_PER_COLLECTION = 200_000
"""New objects between two looks for cycles; loading the program makes a hundred thousand, and frees few."""


def main() -> None:
    """Run the command line; exit with 2 and say what it needs where that is not here."""
    # Looking for cycles took a seventh of the time of a command. mypy does the same:
    # https://github.com/python/mypy/blob/v1.11.0/mypy/build.py#L121
    gc.set_threshold(OBJECTS_PER_COLLECTION)
    # The linter makes millions of nodes and ends with its answer: 4 to 14 % of its time on 307,000 lines, and no memory.
    if sys.argv[1:2] == ["lint"]:
        gc.disable()
    interruptible = _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler
    # While the program is loaded, Ctrl-C ends the process silently, without a traceback.
    if interruptible:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    program = _load_program(sys.argv[1:])
    if interruptible:
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)
        sys.unraisablehook = _repeat_interrupt
    try:
        sys.exit(program())
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        # Nor is one of the cycles that are left worth a look: the process ends, and the system frees them.
        gc.freeze()


def _repeat_interrupt(unraisable: "sys.UnraisableHookArgs") -> None:
    """Raise a Ctrl-C again, shortly after, that came inside a finalizer: Python prints such an
    interrupt and drops it.
    """
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        _signal.signal(_signal.SIGALRM, _signal.default_int_handler)
        _signal.setitimer(_signal.ITIMER_REAL, 0.01)
    else:
        sys.__unraisablehook__(unraisable)


def _load_program(words: "list[str]") -> "Callable[[], int | None]":
    """Return the program that can answer these words here: the whole command line, or that of the
    runtime half.
    """
    # An image contains only the runtime half.
    has_command_line = os.path.isdir(os.path.join(os.path.dirname(__file__), "cli"))
    if not has_command_line or _is_rank(words):
        # The runtime half's own program: thousands of ranks start it, and it is alone in an image.
        from envlock.fleet.command import main as runtime

        return lambda: runtime(words)
    if sys.version_info < (3, 10):  # noqa: UP036 (what scripts import runs on 3.8, so it can be installed there)
        _hand_over("Python 3.10 or newer")
    # Where the command line cannot be loaded, another envlock may answer.
    if words == ["--version"] and _has_module("typer") and _has_module("pydantic"):
        return _print_version
    return _load_command_line()


def _load_command_line() -> "Callable[[], None]":
    _disable_plugins()
    try:
        # An extra: where it cannot be loaded, another envlock may answer.
        from envlock.cli import main as program
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("envlock"):
            raise
        _hand_over(error.name)
    return program


def _has_module(name: str) -> bool:
    # After Ctrl-C is taken care of, as all that `main` needs.
    from importlib.util import find_spec

    return find_spec(name) is not None


def _print_version() -> None:
    """Print the version without a parser, which would take five times as long: shells and scripts ask for it often."""
    try:
        sys.stdout.write(f"envlock {envlock.__version__}\n")
        sys.stdout.flush()
    except (OSError, AttributeError):
        # The stream is closed or its disk is full: the command line reports that itself.
        _load_command_line()()


def _disable_plugins() -> None:
    """Let pydantic, when it is imported, look for no plugins.

    It would read the entry points of every distribution on the import path, and fail at the first
    malformed ones. PYDANTIC_DISABLE_PLUGINS, the variable against it, would reach the programs that
    this one starts. If a later pydantic no longer has that module, this does nothing.
    """
    loader = type(sys)("pydantic.plugin._loader")
    loader.get_plugins = tuple  # type: ignore[attr-defined]
    sys.modules.setdefault(loader.__name__, loader)


def _is_rank(words: "list[str]") -> bool:
    """Return whether the command reports one rank of a job, for which the runtime half is enough:
    there may be thousands of ranks.
    """
    if words[:2] != ["fleet", "report"] or os.environ.get("ENVLOCK_PYTHON"):
        return False
    # The runtime half has neither help nor another interpreter.
    for word in words:
        if word in ("-h", "--help") or word.startswith("--python"):
            return False
    return _has_module("tensorflow")


def _hand_over(missing: str) -> "NoReturn":
    """Replace this process by the next `envlock` on the PATH, or exit and say what is missing."""
    # Most calls hand nothing over.
    import shutil

    # The folders of this `envlock`, and of those that have handed over to it.
    asked = {os.path.realpath(os.path.dirname(file)) for file in (sys.argv[0], sys.executable)}
    asked.update(os.environ.get(FORWARDED, "").split(os.pathsep))
    asked.discard("")
    # For example the one that `uv tool install` made, after those of environments.
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    others = [folder for folder in folders if os.path.realpath(folder) not in asked]
    tool = shutil.which("envlock", path=os.pathsep.join(others))
    if tool is not None:
        # It can be a script that leads back here.
        asked.add(os.path.realpath(os.path.dirname(tool)))
        environ = {
            "ENVLOCK_PYTHON": sys.executable,
            **os.environ,
            FORWARDED: os.pathsep.join(sorted(asked)),
        }
        os.execve(tool, [tool, *sys.argv[1:]], environ)  # noqa: S606 (in this process's place, without a shell)
    sys.stderr.write(
        f"error: the command line needs {missing}\n"
        'hint: install it outside the environment, in a checkout of envlock: `uv tool install ".[cli]"`\n'
    )
    sys.exit(2)


if __name__ == "__main__":
    # `python -m` looks in the current folder first: a `random/` there would be imported, and run,
    # in place of Python's own.
    # With `-P` and `-I`, Python does not.
    if not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
        del sys.path[0]
    main()
