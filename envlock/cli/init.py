"""`envlock init`"""

from __future__ import annotations

from typing import Annotated

import envlock
from envlock.cli.output import emit, talk
from envlock.cli.parser import Command, make_app, make_choice
from envlock.runtime.policies import names

app = make_app()

NEXT = {
    "strict": 'policy strict is for one machine, or equal ones; for others write `policy = "bits"` there, and run '
    "`envlock capture --canary --for PROGRAM` with your program, such as train.py:step",
    "bits": "next: `envlock capture --canary --for PROGRAM` with your program, such as train.py:step; the locked thread "
    "counts are required, and `envlock run` sets them",
}
"""What a policy needs, or where another one fits."""


@app.command(cls=Command)
def init(
    policy: Annotated[
        str, make_choice(names(), "policy", "--policy", "-p", help="Policy of new lockfiles.")
    ] = "strict",
) -> None:
    """Add envlock's settings to pyproject.toml, and print files for pre-commit, GitHub and make.

    It asks nothing, and keeps the settings that exist. `envlock capture` then writes the lockfile.

    \b
    Examples:
      envlock init          in the project's folder
      envlock init -p bits  for machines that differ
    """
    file, files = envlock.init(policy)
    if file is None:
        talk("pyproject.toml has [tool.envlock] already")
    else:
        talk(f"wrote {file}: [tool.envlock] with policy {policy}")
        if policy in NEXT:
            talk(NEXT[policy])
    emit(files.rstrip("\n"))
