"""The line that identifies the locked environment in a paper, a table of results or an issue."""

from __future__ import annotations

from envlock.runtime.assertion import locate
from envlock.runtime.environment_line import make_line
from envlock.runtime.lockfile import read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from typing import Optional, Union


def cite(path: Optional[Union[str, os.PathLike[str]]] = None) -> str:
    """Return the line that identifies the locked environment: `envlock:1:sha256:` and a digest of
    its facts.

    Two lockfiles with the same facts have the same line, even if their policies, further machines
    or commits differ.

    Args:
        path: the lockfile; else the one that `assert_locked()` would use.

    Raises:
        LockfileError: there is no lockfile, or it is invalid.
    """
    return make_line(read_file(locate(path)))
