"""The bed by hand: `python -m tests.image.bed up` brings it up and leaves it up, `down` takes it down.

eval "$(python -m tests.image.bed up)"      # then `docker` is its engine, and $NGC a base image
"""

from __future__ import annotations

import shlex
import sys

from tests.image.bed import session
from tests.image.bed.debian import BedError


def main(command: str) -> None:
    """Run one of the commands."""
    if command == "down":
        session.down()
        return
    with session.shared(keep=True) as bed:
        (session.folder() / "keep").touch()
    variables = {**bed.engine.environ, "NGC": bed.ngc, "CUDA": bed.cuda, "PYTHON_SLIM": bed.python}
    variables["ENTER"] = " ".join(bed.engine.enter)
    for name, value in variables.items():
        print(f"export {name}={shlex.quote(value)}")


if __name__ == "__main__":
    if sys.argv[1:] not in (["up"], ["down"]):
        sys.exit(f"{__doc__}\nusage: python -m tests.image.bed up|down")
    try:
        main(sys.argv[1])
    except BedError as error:
        sys.exit(f"error: {error}")
