"""`envlock verify` where only the runtime half is installed, as in an image: the standard library's command line."""

from __future__ import annotations

import os
import sys

from envlock.runtime.assertion import locate
from envlock.runtime.errors import EnvlockError
from envlock.runtime.image import verify_image
from envlock.runtime.lockfile import read_file
from envlock.runtime.policy import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List

ONLY = "only `envlock verify` is here: this is the runtime half of envlock"
FORMATS = ("text", "json")


def main(argv: List[str]) -> int:
    """Run the command; return its exit code, as the README's table has it."""
    import argparse

    parser = argparse.ArgumentParser("envlock", description="The runtime half of envlock, which verifies.", epilog=ONLY)
    commands = parser.add_subparsers(dest="command", metavar="verify", required=True)
    verify = commands.add_parser("verify", help="Check that this environment is the locked one.")
    verify.add_argument("lock", nargs="?", help="Lockfile. [default: that of the image]")
    verify.add_argument("--policy", "-p", choices=names(), default=os.environ.get("ENVLOCK_POLICY") or None)
    verify.add_argument("--deep", action="store_true", help="Also hash every installed file.")
    verify.add_argument("--format", "-f", choices=FORMATS, default=FORMATS[0])
    asked = parser.parse_args(argv)
    try:
        report = verify_image(read_file(locate(asked.lock)), asked.policy, deep=asked.deep)
    except EnvlockError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    if asked.format == "json":
        import json

        sys.stdout.write(json.dumps(report.to_json(), indent=2) + "\n")
    else:
        sys.stdout.write(report.to_text() + "\n")
    return report.exit_code
