"""`envlock verify` and the commands of a rank, where only the runtime half is installed.

This command line uses the standard library only. `envlock fleet report` always runs here: as each
rank of a job, it must not spend the time that loading the whole program takes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys

from envlock.fleet.rank_process import become, write_statement
from envlock.runtime.assertion import locate
from envlock.runtime.errors import EnvlockError, UsageError
from envlock.runtime.image import verify_image
from envlock.runtime.lockfile import read_file
from envlock.runtime.policies import names
from envlock.runtime.report import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Dict, List, NoReturn, Tuple

    Words = argparse.Namespace
    Parsers = argparse._SubParsersAction["Parser"]

ONLY = "only `envlock verify` and `envlock fleet` are here: this is the runtime half of envlock"
FORMATS = ("text", "json")


class Parser(argparse.ArgumentParser):
    """A parser whose error messages contain no control characters."""

    def error(self, message: str) -> NoReturn:
        super().error(clean(message))


def main(argv: List[str]) -> int:
    """Run the command and return its exit code; the README has the table of them."""
    # Everything after `--` is another program with its own options, which are not parsed here.
    at = argv.index("--") if "--" in argv else len(argv)
    parser = Parser(
        "envlock", description="The runtime half of envlock, which verifies.", epilog=ONLY
    )
    commands = parser.add_subparsers(dest="command", metavar="verify|fleet", required=True)
    verify = commands.add_parser("verify", help="Check that this environment is the locked one.")
    _add_lock(verify, "[default: that of the image]")
    verify.add_argument("--deep", action="store_true", help="Also hash every installed file.")
    verify.add_argument("--format", "-f", choices=FORMATS, default=FORMATS[0])
    verify.set_defaults(run=_verify)
    fleet = commands.add_parser(
        "fleet", help="Check that all ranks of a job have the same environment."
    )
    _add_fleet(fleet.add_subparsers(dest="fleet", metavar="report|run", required=True))
    asked = parser.parse_args(argv[:at])
    asked.words = argv[at + 1 :]
    try:
        code: int = asked.run(asked)
    except EnvlockError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    return code


def _add_lock(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument("lock", nargs="?", help=f"Lockfile. {default}")
    parser.add_argument(
        "--policy", "-p", choices=names(), default=os.environ.get("ENVLOCK_POLICY") or None
    )


def _add_fleet(commands: Parsers) -> None:
    helps: Dict[str, Tuple[Callable[[Words], int], str]] = {
        "report": (_report, "Write the report of one rank to a shared folder."),
        "run": (_run, "Run a command, after --, in all ranks or in none."),
    }
    for name, (function, text) in helps.items():
        parser = commands.add_parser(name, help=text)
        _add_lock(parser, "[default: the nearest, if any]")
        parser.add_argument(
            "--to", metavar="DIR", help="Folder that all nodes share. [default: .envlock-fleet]"
        )
        parser.add_argument("--launcher", choices=["files"], help="How ranks meet.")
        parser.add_argument("--timeout", type=float, default=120.0, metavar="SECONDS")
        parser.add_argument("--quiet", "-q", action="store_true")
        parser.set_defaults(run=function)


def _report(asked: Words) -> int:
    write_statement(asked.to, asked.lock)
    return 0


def _run(asked: Words) -> int:
    if not asked.words:
        raise UsageError("no command to run", hint="write one after `--`")
    return become(asked.words, asked.to, asked.lock, asked.policy, asked.timeout)


def _verify(asked: Words) -> int:
    answer = verify_image(read_file(locate(asked.lock)), asked.policy, deep=asked.deep)
    text = json.dumps(answer.to_json(), indent=2) if asked.format == "json" else answer.to_text()
    sys.stdout.write(text + "\n")
    return answer.exit_code
