"""The sources that the TensorFlow in an image can come from."""

from __future__ import annotations

from typing import Literal, get_args

Route = Literal["ngc", "cuda", "wheels", "captured"]
ROUTES: tuple[str, ...] = get_args(Route)
COMPLETE: tuple[Route, ...] = ("ngc", "captured")
"""Bases that have the locked packages.

`captured` is the image in which the lockfile was captured.
"""
