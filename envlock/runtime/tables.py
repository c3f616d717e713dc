"""The tables that the runtime half needs, as JSON beside the code.

`tools/generate.py` generates them from `envlock/data/*.toml`, and a test compares the two: Python
3.8 cannot read TOML.
"""

from __future__ import annotations

import os

from envlock.runtime import strict_json
from envlock.runtime.host import read_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict

FOLDER = os.path.join(os.path.dirname(__file__), "data")
_read: Dict[str, Any] = {}


def table(name: str) -> Any:
    """Return the table `name`, which is read once in each process.

    Raises:
        RuntimeError: the file is missing or damaged, so the installation is broken.
    """
    if name not in _read:
        data = read_bytes(os.path.join(FOLDER, name + ".json"), is_noted=False)
        if data is None:
            raise RuntimeError(
                f"envlock is not completely installed: runtime/data/{name}.json is missing"
            )
        try:
            _read[name] = strict_json.parse(data)
        except ValueError as error:
            # Not a ValueError, which a caller may catch and report as a damaged lockfile.
            raise RuntimeError(
                f"envlock is not completely installed: runtime/data/{name}.json: {error}"
            ) from None
    return _read[name]
