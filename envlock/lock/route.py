"""Where the TensorFlow of an image comes from."""

from __future__ import annotations

from typing import Literal, get_args

Route = Literal["ngc", "cuda", "wheels"]
ROUTES: tuple[str, ...] = get_args(Route)
