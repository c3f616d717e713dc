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

from envlock.runtime.report import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from envlock.runtime.report import Report


class EnvlockError(Exception):
    """A problem the user can act on: a sentence in `message`, the way out in `hint`, other lines in `details`.

    Python itself prints an exception that nobody catches: no character of `message` and `hint` moves a terminal, and
    `message` has further lines only where `lines` gives them, not from the name of a file.
    """

    exit_code = 1
    details = ""

    def __init__(self, message: str, *, hint: str | None = None, lines: Iterable[str] = ()) -> None:
        self.message = "\n".join(map(clean, (message, *lines)))
        self.hint = hint
        if hint is not None:
            self.hint = clean(hint)
        super().__init__(self.message)

    def __str__(self) -> str:
        if self.hint is None:
            return self.message
        return f"{self.message}\nhint: {self.hint}"


class UsageError(EnvlockError):
    """The command line, a variable or `[tool.envlock]` asks for something that does not exist."""

    exit_code = 2


class TooLateError(UsageError):
    """TensorFlow has read or done what can no longer be changed in this process."""


class LockfileError(EnvlockError):
    """The lockfile is missing, unreadable, invalid, or written by a newer envlock."""

    exit_code = 3


class FactError(EnvlockError):
    """A fact that the policy needs could not be collected, so neither yes nor no can be said."""

    exit_code = 4


class OutsideError(EnvlockError):
    """A container engine, a registry or a package index is not there, refused, or failed.

    With `unreachable`, nothing answers there at all: whoever asks for more gets the same.
    """

    unreachable = False
    exit_code = 5


class WriteError(EnvlockError):
    """A file cannot be written; what was there before is untouched."""

    exit_code = 6


class ImageMismatch(EnvlockError):  # noqa: N818 (it is an answer, not a fault)
    """A base image cannot be the locked environment, or is another one than the one that is known by its name."""


class EnvironmentMismatch(EnvlockError, RuntimeError):  # noqa: N818 (it is an answer, not a fault)
    """The live environment is not the locked one; `report` holds every finding, and the message may be its lines."""

    exit_code = 1

    def __init__(self, message: str, report: Report, *, hint: str | None = None) -> None:
        first, *others = message.split("\n")
        super().__init__(first, hint=hint, lines=others)
        self.report = report
        self.exit_code = report.exit_code  # 4 where nothing differs and something could not be told

    def __reduce__(self) -> tuple[type, tuple[str, Report]]:
        """Let it travel from a worker process: an exception that cannot be unpickled hangs a pool."""
        return EnvironmentMismatch, (self.message, self.report)
