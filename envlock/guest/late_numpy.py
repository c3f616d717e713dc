"""NumPy for programs that run beside the user's: imported when it is needed, not when they are."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType


def import_numpy() -> ModuleType:
    """Return NumPy."""
    # Not at the top: the user's program may have variables to set before NumPy is imported.
    import numpy

    return numpy
