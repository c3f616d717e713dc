"""What counts as the same line: every fact, and nothing beside the facts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from envlock.lock.creation import capture
from envlock.runtime.collectors import take_snapshot
from envlock.runtime.environment_line import make_line, parse_line
from envlock.runtime.errors import UsageError
from envlock.runtime.facts import iter_leaves
from tests.machines import complete
from tests.runtime.test_citation import GOLDEN


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return a lockfile with facts in every section."""
    return capture(live=take_snapshot(complete(tmp_path_factory.mktemp("machine")))).to_document()


def others(value: Any) -> Iterator[Any]:
    """Yield what a fact can be instead, the nearest first."""
    yield from ([] if value is None else [None])
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield value + 1
        yield str(value)
    elif isinstance(value, str):
        yield f"{value} "
    elif isinstance(value, list):
        yield [*value, "more"]
        yield from ([value[:-1]] if value else [])
    else:
        yield "something"


def with_fact(lock: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Return a lockfile with another value of a fact; `...` removes it."""
    changed: dict[str, Any] = json.loads(json.dumps(lock))
    node = changed["facts"]
    *above, last = path.split(".")
    for name in above:
        node = node[name]
    node[last] = value
    if value is ...:
        del node[last]
    return changed


def test_no_other_value_of_any_fact_has_the_same_line(whole: dict[str, Any]) -> None:
    found = list(iter_leaves(whole["facts"]))
    lines = [make_line(whole)]
    for path, value in found:
        lines += [make_line(with_fact(whole, path, other)) for other in (*others(value), ...)]
    assert len(found) > 150
    assert len(set(lines)) == len(lines)


def test_a_line_knows_no_policy_machines_commit_or_proofs(whole: dict[str, Any]) -> None:
    changes: list[dict[str, Any]] = [
        {"policy": {"name": "functional", "overrides": {"**": "ignore"}}},
        {"machines": [{"facts": {"cpu": None}, "unavailable": {}}]},
        {"project": {"commit": "1" * 40, "dirty": True, "held": {"numpy": "imported"}}},
        {"created_by": "envlock 9.9.9", "identity": {"packages": {}}, "image": {}, "numerics": {}},
    ]
    assert {make_line({**whole, **change}) for change in changes} == {make_line(whole)}


def test_a_line_is_taken_as_it_is_pasted() -> None:
    assert parse_line(f"  {GOLDEN}\n") == GOLDEN


@pytest.mark.parametrize("digest", ["", "sha256:", "sha256:" + "0" * 63, "sha256:" + "0" * 65, "sha256:" + "G" * 64])
def test_what_is_cut_off_or_misread_is_no_line(digest: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_line(f"envlock:1:{digest}")
    assert str(caught.value) == (
        f"not a line of `envlock show --line`: envlock:1:{digest[:70]}\n"
        "hint: give the whole line: `envlock:1:sha256:` and 64 hexadecimal digits"
    )


@pytest.mark.parametrize(("line", "shown"), [("", '""'), ("otherlock:1:x", "otherlock:1:x"), ("\x1b[2J", "\\x1b[2J")])
def test_a_message_shows_what_was_given(line: str, shown: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_line(line)
    assert caught.value.message == f"not a line of `envlock show --line`: {shown}"


def test_a_line_of_a_later_definition_is_no_misreading() -> None:
    with pytest.raises(UsageError) as caught:
        parse_line("envlock:2:blake3:0123")
    assert str(caught.value) == (
        "a line of version 2; this envlock reads version 1\nhint: use an envlock that prints lines of that version"
    )
