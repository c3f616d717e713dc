"""What a rank has asked of the check: the settings that decide how strictly all ranks are judged.

Ranks are judged together, so a setting that differs between them is a finding: otherwise a rank that
has asked for more would start on less. Each row of `SETTINGS` is compared; a new setting is a new
row. Pure.
"""

from __future__ import annotations

from envlock.fleet.node_sets import group_by
from envlock.runtime.assertion import ENFORCING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

    from envlock.fleet.node_sets import Members, Places

    Statement = Dict[str, Any]
    """As in statement.py."""

SHOWN = 5
"""Values of one setting that a message lists."""
VARIABLES = ("ENVLOCK_MODE", "ENVLOCK_POLICY", "ENVLOCK_NO_OVERRIDES")
"""The variables that set them; `fleet run` hands them to ranks that its launcher gives none."""


class Setting:
    """One setting of the check.

    Attributes:
        rule: the rule of the finding if it differs.
        what: what ranks then differ in, as a clause before the list of them.
        describe: the words for a value.
        is_stated: whether a statement has asked for something; one that has not fits any value.
    """

    __slots__ = ("describe", "is_stated", "rule", "what")

    def __init__(
        self,
        rule: str,
        what: str,
        describe: Callable[[object], str],
        is_stated: Callable[[Statement], bool],
    ) -> None:
        self.rule = rule
        self.what = what
        self.describe = describe
        self.is_stated = is_stated


def _describe_lockfile(value: object) -> str:
    if not value:
        return "none"
    return f"sha256:{str(value)[:12]}"


def _describe_overrides(value: object) -> str:
    if value is True:
        return "with them"
    return "ENVLOCK_NO_OVERRIDES"


def _has_looked(statement: Statement) -> bool:
    return bool(statement["root"])


SETTINGS: Mapping[str, Setting] = {
    "lock": Setting(
        "rank-lockfile", "ranks have different lockfiles", _describe_lockfile, _has_looked
    ),
    "policy": Setting(
        "rank-policy",
        "ranks ask for different policies",
        str,
        lambda statement: bool(statement["root"] and statement["policy"]),
    ),
    "overrides": Setting(
        "rank-policy",
        "ranks differ in whether the lockfile's own rules apply",
        _describe_overrides,
        _has_looked,
    ),
    # Ranks that go on whatever is found are a finding of their own, beside ranks that enforce.
    "mode": Setting(
        "rank-mode",
        "ranks differ in whether installed files are read",
        lambda value: f"ENVLOCK_MODE={value}",
        lambda statement: statement["mode"] in ENFORCING,
    ),
}
"""The settings by the names that statements have for them."""


def read_policy(given: Optional[str], environ: Mapping[str, str]) -> Optional[str]:
    """Return the policy that this process asks for: the one given, else that of ENVLOCK_POLICY."""
    return given or environ.get("ENVLOCK_POLICY") or None


def get_asked(statement: Statement) -> Tuple[object, ...]:
    """Return how strictly a statement asks facts to be compared, as a key for ranks that ask alike."""
    return statement["policy"], statement["overrides"]


def iter_differences(
    statements: Sequence[Statement], judge: Mapping[str, object], places: Places
) -> Iterator[Tuple[str, str]]:
    """Yield the rule and the message of each setting that is not the same everywhere.

    Args:
        statements: those of all ranks.
        judge: the settings of the process that compares them, as far as it has any of its own.
        places: names nodes and ranks.
    """
    for name, setting in SETTINGS.items():
        stated = [each for each in statements if setting.is_stated(each)]
        groups = _group_by_value(stated, name)
        values = {members[0][name] for members in groups}
        own = []
        if name in judge and groups and judge[name] not in values:
            own.append(f"this check {setting.describe(judge[name])}")
        if len(values) + len(own) > 1:
            words = _list_values(name, setting, groups, places) + own
            yield setting.rule, f"{setting.what}: {', '.join(words)}"


def _group_by_value(statements: Sequence[Statement], name: str) -> List[Members]:
    return group_by(statements, lambda statement: statement[name])


def _list_values(
    name: str, setting: Setting, groups: Sequence[Members], places: Places
) -> List[str]:
    words = [
        f"{places.describe(members)} {setting.describe(members[0][name])}"
        for members in groups[:SHOWN]
    ]
    if len(groups) > SHOWN:
        words.append(f"{len(groups) - SHOWN:,} more")
    return words


def find_settings(environ: Mapping[str, str]) -> Dict[str, str]:
    """Return the variables of this process that set something."""
    return {name: environ[name] for name in VARIABLES if environ.get(name)}
