"""Lock, build and verify TensorFlow environments.

    import envlock
    envlock.assert_locked()     # line 1 of a script
    envlock.activate(seed=42)   # the same, and the recipe that makes TensorFlow deterministic

Importing this imports nothing else: every public name is loaded when it is first asked for.
"""

__version__ = "0.1.0"

_EXPORTS = {
    "Activation": "envlock.runtime.activation",
    "EnvironmentMismatch": "envlock.runtime.errors",
    "EnvlockError": "envlock.runtime.errors",
    "Lockfile": "envlock.lock.models",
    "LockfileError": "envlock.runtime.errors",
    "Report": "envlock.runtime.report",
    "TooLateError": "envlock.runtime.errors",
    "UsageError": "envlock.runtime.errors",
    "activate": "envlock.runtime.activation",
    "assert_locked": "envlock.runtime.assertion",
    "capture": "envlock.api",
    "diff": "envlock.api",
    "diverge": "envlock.divergence.in_process",
    "lint_dataset": "envlock.determinism.dataset",
    "load": "envlock.api",
    "record": "envlock.runtime.recording",
    "recorded": "envlock.runtime.recording",
    "verify": "envlock.api",
}

__all__ = ["__version__", *sorted(_EXPORTS)]

TYPE_CHECKING = False  # not from typing: that import costs 8 ms
if TYPE_CHECKING:
    from envlock.api import capture as capture
    from envlock.api import diff as diff
    from envlock.api import load as load
    from envlock.api import verify as verify
    from envlock.determinism.dataset import lint_dataset as lint_dataset
    from envlock.divergence.in_process import diverge as diverge
    from envlock.lock.models import Lockfile as Lockfile
    from envlock.runtime.activation import Activation as Activation
    from envlock.runtime.activation import activate as activate
    from envlock.runtime.assertion import assert_locked as assert_locked
    from envlock.runtime.errors import (
        EnvironmentMismatch as EnvironmentMismatch,
    )
    from envlock.runtime.errors import (
        EnvlockError as EnvlockError,
    )
    from envlock.runtime.errors import (
        LockfileError as LockfileError,
    )
    from envlock.runtime.errors import (
        TooLateError as TooLateError,
    )
    from envlock.runtime.errors import (
        UsageError as UsageError,
    )
    from envlock.runtime.recording import record as record
    from envlock.runtime.recording import recorded as recorded
    from envlock.runtime.report import Report as Report
else:  # in the else, or mypy accepts envlock.any_typo

    def __getattr__(name):
        """Return a public name, importing its module the first time."""
        if name not in _EXPORTS:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            module = __import__(_EXPORTS[name], fromlist=[name])
        except ModuleNotFoundError as error:
            if error.name is not None and error.name.startswith("envlock"):
                reason = f"envlock.{name} is part of the authoring half, which is not installed here"
            else:
                reason = f"envlock.{name} needs {error.name}"
            raise ImportError(f"{reason}: pip install tf-envlock") from error
        value = getattr(module, name)
        globals()[name] = value
        return value

    def __dir__():
        return sorted(__all__)
