"""`envlock hash`"""

from __future__ import annotations

from typing import Annotated

import typer

IndexOption = Annotated[
    list[str] | None,
    typer.Option(
        "--index-url",
        "-i",
        envvar="ENVLOCK_INDEX_URL",
        help="An index to ask, before or instead of... Default: those of pip's and uv's settings.",
        show_default=False,
    ),
]
