"""What goes wrong with a registry."""

from __future__ import annotations

from envlock.runtime.errors import OutsideError


class RegistryError(OutsideError):
    """A registry was not reached, refused, or has something else than was asked for.

    Attributes:
        ours: somebody else may get further, such as a container engine with logins and certificates of its own.
        gone: it does not have this image, or not any more.
    """

    def __init__(self, message: str, *, hint: str | None = None, ours: bool = False, gone: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.ours = ours
        self.gone = gone
