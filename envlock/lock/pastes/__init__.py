"""What people paste instead of a lockfile, read as a part of one.

A paste states some facts, and nothing about all others: it can differ, and never match. One file here
reads one family of formats; whatever the text, a reader skips what it does not know.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from envlock.lock.pastes import (
    conda,
    dockerfile,
    named_versions,
    nvidia_smi,
    package_locks,
    pip_lists,
    tensorflow_log,
    tf_env,
)
from envlock.lock.pastes.statement import Line, Statement, do_agree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.runtime.facts import Tree


class Format(NamedTuple):
    """A format: its name in a sentence, and its reader."""

    name: str
    read: Callable[[Sequence[Line]], Iterable[Statement]]


FORMATS = (
    Format("report of tf_env_collect.sh", tf_env.read_report),
    Format("freeze", pip_lists.read_pins),
    Format("pip list", pip_lists.read_tables),
    Format("log of pip install", pip_lists.read_logs),
    Format("environment.yml", conda.read_environments),
    Format("conda list", conda.read_tables),
    Format("Dockerfile", dockerfile.read_dockerfile),
    Format("nvidia-smi table", nvidia_smi.read_table),
    Format("log of TensorFlow", tensorflow_log.read_log),
    Format("uv.lock, poetry.lock or pylock.toml", package_locks.read_toml),
    Format("Pipfile.lock", package_locks.read_json),
    Format("list of versions", named_versions.read_versions),
)
LONGEST_LINE = 1000
"""The most characters of a line that is read: these formats have no longer ones."""


class Paste(NamedTuple):
    """What a pasted text states.

    Attributes:
        names: of the formats that were found.
        statements: the first of each path, and of those the first whole value.
        disputed: the paths that the text states twice, with other values; they are not statements.
        unversioned: the packages that it names by the place that they came from alone.
        lines: all lines, for messages.
    """

    names: list[str]
    statements: list[Statement]
    disputed: list[str]
    unversioned: list[str]
    lines: list[str]

    def describe(self) -> str:
        """Return what it is, such as `pasted freeze and nvidia-smi table`."""
        return f"pasted {' and '.join(self.names)}"

    def make_facts(self) -> Tree:
        """Return what it states as the facts of a lockfile."""
        facts: Tree = {}
        for each in self.statements:
            *above, name = each.path.split(".")
            node = facts
            for step in above:
                node = node.setdefault(step, {})
            node[name] = each.value
        return facts


def read_paste(text: str) -> Paste | None:
    """Return what a pasted text states; None if it states nothing in any of the formats."""
    lines = [_unquote(line) for line in text.splitlines()]
    numbered = [(number, line) for number, line in enumerate(lines, 1) if len(line) <= LONGEST_LINE]
    names = []
    found: dict[str, Statement] = {}
    disputed: set[str] = set()
    for each in FORMATS:
        count = len(found)
        for statement in each.read(numbered):
            first = found.setdefault(statement.path, statement)
            if not do_agree(first, statement):
                disputed.add(statement.path)
            elif first.is_loose and not statement.is_loose and first.line != statement.line:
                found[statement.path] = statement
        if len(found) > count:
            names.append(each.name)
    if not found:
        return None
    statements = [each for path, each in sorted(found.items()) if path not in disputed]
    unversioned = sorted({*pip_lists.list_unversioned(numbered)})
    return Paste(names, statements, sorted(disputed), unversioned, lines)


def _unquote(line: str) -> str:
    """Return a line without the marks of a quotation or of code in a thread, and of the reports of an
    environment that PyTorch and TensorBoard print.
    """
    line = line.replace("\t", " ")
    if line.lstrip().startswith(">"):
        line = re.sub(r"^(\s*>)+ ?", "", line)
    line = re.sub(r"^(?:\[(?:pip3?|conda)\] +|INFO: (?:installed: )?)", "", line)
    return line.rstrip().strip("`")
