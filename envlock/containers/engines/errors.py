"""What goes wrong with a container engine."""

from __future__ import annotations

from envlock.runtime.errors import OutsideError


class EngineError(OutsideError):
    """The engine is not there, refuses, lacks something, or the build failed: one sentence, and what to do."""
