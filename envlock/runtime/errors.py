"""Every error envlock raises on purpose.

    EnvlockError                  exit 1 is never used for these unless it is the answer "no"
    +-- UsageError           2    the command line or the configuration asks for something that is not there
    |   +-- TooLateError          `activate()` is called when TensorFlow can no longer be activated
    +-- LockfileError        3    the lockfile cannot be read, is invalid, or newer than this envlock
    +-- FactError            4    a fact that the policy needs could not be collected
    +-- OutsideError         5    container engine, registry or package index: not there, refused, or the build failed
    +-- WriteError           6    a file cannot be written
    +-- ImageMismatch        1    a base image cannot be the locked environment, or is another one than is known
    +-- EnvironmentMismatch  1    the live environment is not the locked one (also a RuntimeError)

The codes are listed in the README; `tests/test_exit_codes.py` compares.
"""

from __future__ import annotations

from envlock.runtime.report import Report, clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class EnvlockError(Exception):
    """A problem that the user can solve: a sentence in `message`, a remedy in `hint`, other lines
    in `details`.

    Python itself prints an exception that is not caught, so `message` and `hint` contain no control
    characters, and `message` has several lines only if `lines` gives them, never because of the
    name of a file.
    """

    exit_code = 1
    details = ""

    def __init__(self, message: str, *, hint: str | None = None, lines: Iterable[str] = ()) -> None:
        self.message = "\n".join(map(clean, (message, *lines)))
        self.hint = clean(hint) if hint is not None else hint
        super().__init__(self.message)

    def __str__(self) -> str:
        if self.hint is None:
            return self.message
        return f"{self.message}\nhint: {self.hint}"


class UsageError(EnvlockError):
    """The command line, a variable or `[tool.envlock]` asks for something that does not exist."""

    exit_code = 2


def make_choice_error(what: str, given: str, choices: Iterable[str]) -> UsageError:
    """Return the error for a word that is not one of those to choose from."""
    return UsageError(f"unknown {what} `{given}`", hint=f"choose from: {', '.join(choices)}")


class TooLateError(UsageError):
    """TensorFlow has already read or started something that cannot be changed any more in this
    process.
    """


class LockfileError(EnvlockError):
    """The lockfile is missing, unreadable, invalid, or written by a newer envlock."""

    exit_code = 3


class FactError(EnvlockError):
    """A fact that the policy needs could not be collected, so that there is no verdict."""

    exit_code = 4


class OutsideError(EnvlockError):
    """A container engine, a registry or a package index does not exist, refused, or failed.

    With `unreachable`, it does not answer at all: every further request would fail, too.
    """

    unreachable = False
    exit_code = 5


class WriteError(EnvlockError):
    """A file cannot be written; its previous content is unchanged."""

    exit_code = 6


class ImageMismatch(EnvlockError):  # noqa: N818 (it is an answer, not a fault)
    """A base image cannot be the locked environment, or is not the one that is known under its
    name.
    """


class EnvironmentMismatch(EnvlockError, RuntimeError):  # noqa: N818 (it is an answer, not a fault)
    """The live environment is not the locked one; `report` has every finding, and the message can
    be its lines.
    """

    exit_code = 1

    def __init__(self, message: str, report: Report, *, hint: str | None = None) -> None:
        first, *others = message.split("\n")
        super().__init__(first, hint=hint, lines=others)
        self.report = report
        self.exit_code = report.exit_code  # 4 if nothing differs and a fact is unknown

    def __reduce__(self) -> tuple[type, tuple[str, Report]]:
        """Support pickling from a worker process: an exception that cannot be unpickled blocks a
        pool.
        """
        return EnvironmentMismatch, (self.message, self.report)
