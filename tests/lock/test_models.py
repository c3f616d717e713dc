"""The format: what a dump keeps apart, what round trips, and what can never get into a lock."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envlock.lock import models
from envlock.lock.document import dump, load, parse, validate
from envlock.lock.fact_models import Facts
from envlock.runtime.errors import LockfileError
from tests.locks import document, encode

ROOT = Path(__file__).resolve().parents[2]

WORDS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,20}", fullmatch=True)
VERSIONS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9.!+_-]{0,20}", fullmatch=True)
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20)
NAMES = st.from_regex(r"[a-z0-9]{1,8}(-[a-z0-9]{1,8}){0,2}", fullmatch=True)
FLOATS = st.floats(0, 1e9)


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return objects that have each field, have it as null, or have it not at all."""
    return st.none() | st.fixed_dictionaries({}, optional={name: st.none() | each for name, each in fields.items()})


COUNTS = st.integers(0, 2**40)
BOOLS = st.booleans()
HEX = st.sampled_from(["0a" * 20, "0b" * 32])
ORIGIN = some(url=TEXTS, editable=BOOLS, vcs=WORDS, commit=HEX, sha256=HEX)
TAGS = st.lists(st.just("py3-none-any"), max_size=2)
PACKAGE = some(version=VERSIONS, wheel_tags=TAGS, installer=TEXTS, origin=ORIGIN).filter(lambda item: item is not None)
FACTS = some(
    python=some(implementation=WORDS, version=VERSIONS, abi=TEXTS, prefix_kind=st.sampled_from(["venv", "conda"])),
    packages=st.dictionaries(NAMES, PACKAGE, max_size=3),
    tensorflow=some(distributions=st.lists(NAMES, max_size=2), version=VERSIONS, cuda_build=BOOLS),
    keras=some(version=VERSIONS, config=some(backend=WORDS, epsilon=FLOATS, nnx_enabled=BOOLS)),
    numpy=some(version=VERSIONS, blas=some(name=TEXTS, files=st.lists(TEXTS, max_size=2))),
    cpu=some(vendor=TEXTS, flags=st.lists(WORDS, max_size=3), quota=FLOATS, affinity_count=COUNTS),
    system=some(os=TEXTS, libc=WORDS, container=st.lists(TEXTS, max_size=2)),
    environ=st.dictionaries(st.from_regex(r"[A-Z][A-Z0-9_]{0,9}", fullmatch=True), st.none() | TEXTS, max_size=3),
).filter(lambda facts: facts is not None)
REASONS = st.fixed_dictionaries({"reason": TEXTS, "code": TEXTS})
POLICIES = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["strict", "same-arch", "functional"]),
        "overrides": st.dictionaries(st.sampled_from(["cpu.**", "packages.*"]), st.sampled_from(["exact", "ignore"])),
    }
)
DOCUMENTS = st.builds(
    lambda facts, reason, policy: document(
        facts=facts, unavailable={} if reason is None else {"nowhere.at.all": reason}, policy=policy
    ),
    FACTS,
    st.none() | REASONS,
    POLICIES,
)


@pytest.mark.processes
@given(DOCUMENTS)
@settings(max_examples=60)
def test_reading_a_dump_gives_the_same_lock_and_the_same_bytes(fields: dict[str, Any]) -> None:
    lock = validate(fields, "x")
    assert lock.to_document() == fields
    assert parse(dump(lock), "x") == lock
    assert dump(parse(dump(lock), "x")) == dump(lock) == encode(fields)


def test_null_and_absent_are_kept_apart() -> None:
    facts = {"tensorflow": None, "cpu": {"quota": None}, "python": {}}
    assert json.loads(dump(validate(document(facts=facts), "x")))["facts"] == facts


def test_the_dump_is_canonical() -> None:
    fields = document(facts={"cpu": {"quota": 1.5, "flags": ["é"]}}, unavailable={})
    expected = """\
{
  "$schema": "https://example.org/schema.json",
  "created_by": "envlock 0.1.0",
  "facts": {
    "cpu": {
      "flags": [
        "e"
      ],
      "quota": 1.5
    }
  },
  "lock_version": 1,
  "policy": {
    "name": "strict",
    "overrides": {}
  },
  "unavailable": {}
}
"""
    fields["facts"]["cpu"]["flags"] = ["e"]
    assert dump(validate(dict(reversed(fields.items())), "x")).decode() == expected


def test_a_lock_cannot_be_changed() -> None:
    lock = validate(document(), "x")
    with pytest.raises(ValueError, match="Instance is frozen"):
        lock.created_by = "me"  # type: ignore[misc]


HOSTILE = [
    *("1.0\n", "\n", "$(touch x)", "`touch x`", '1.0"', "1.0'", "1.0;x", "1.0 x", "1.0\\", "-1.0", "", "1.0\x00"),
    *("1.0\x1b[2J", "../x", "1.0|x", "1.0&x", "1.0>x", "{{x}}", "${x}", "1.0\u2028", "é", "x" * 201),
]
PLACES: dict[str, Any] = {
    "facts.python.version": lambda text: {"facts": {"python": {"version": text}}},
    "facts.python.implementation": lambda text: {"facts": {"python": {"implementation": text}}},
    "facts.packages.{}": lambda text: {"facts": {"packages": {text: {}}}},
    "facts.packages.x.version": lambda text: {"facts": {"packages": {"x": {"version": text}}}},
    "facts.packages.x.wheel_tags.0": lambda text: {"facts": {"packages": {"x": {"wheel_tags": [text]}}}},
    "facts.packages.x.origin.vcs": lambda text: {"facts": {"packages": {"x": {"origin": {"vcs": text}}}}},
    "facts.packages.x.origin.commit": lambda text: {"facts": {"packages": {"x": {"origin": {"commit": text}}}}},
    "facts.tensorflow.version": lambda text: {"facts": {"tensorflow": {"version": text}}},
    "facts.tensorflow.distributions.0": lambda text: {"facts": {"tensorflow": {"distributions": [text]}}},
    "facts.environ.{}": lambda text: {"facts": {"environ": {text: None}}},
    "unavailable.{}": lambda text: {"unavailable": {text: {"reason": "x", "code": "x"}}},
    "policy.name": lambda text: {"policy": {"name": text, "overrides": {}}},
    "policy.overrides.{}": lambda text: {"policy": {"name": "strict", "overrides": {text: "exact"}}},
}


HARMLESS = {(place, value) for place in ("unavailable.{}", "policy.overrides.{}") for value in ("-1.0", "x" * 201)}
"""A dotted path may be long, and its names may begin with a dash."""


@pytest.mark.parametrize("place", PLACES)
def test_a_hostile_name_or_version_is_refused(place: str) -> None:
    for value in HOSTILE:
        if (place, value) not in HARMLESS:
            with pytest.raises(LockfileError) as caught:
                validate(document(**PLACES[place](value)), "x.lock")
            message = caught.value.message
            assert message.startswith("lockfile x.lock is not valid: `"), value
            assert (message.isprintable(), len(message) < 400) == (True, True), message


@pytest.mark.parametrize(
    "value", ["a\nb", "\x1b[2J", "\x00", "\x7f", "\x9b31m", "\u202eb", "\u2066", "\u2028", "x" * 1001]
)
def test_a_text_has_no_control_characters_and_an_end(value: str) -> None:
    for changes in (
        {"created_by": value},
        {"$schema": value},
        {"facts": {"cpu": {"vendor": value}}},
        {"facts": {"environ": {"A": value}}},
        {"unavailable": {"a": {"reason": value, "code": "x"}}},
    ):
        with pytest.raises(LockfileError):
            validate(document(**changes), "x.lock")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"facts": {"cpu": {"sockets": 2}}}, "`facts.cpu.sockets`: Extra inputs are not permitted"),
        ({"facts": {"cpu": {"affinity_count": "2"}}}, "`facts.cpu.affinity_count`: Input should be a valid integer"),
        ({"facts": {"cpu": {"affinity_count": 2.0}}}, "`facts.cpu.affinity_count`: Input should be a valid integer"),
        ({"facts": {"cpu": {"quota": True}}}, "`facts.cpu.quota`: Input should be a valid number"),
        ({"facts": {"cpu": {"flags": "avx"}}}, "`facts.cpu.flags`: Input should be a valid list"),
        (
            {"facts": {"cpu": {"affinity_count": -1}}},
            "`facts.cpu.affinity_count`: Input should be greater than or equal to 0",
        ),
        (
            {"facts": {"python": {"prefix_kind": "nix"}}},
            "`facts.python.prefix_kind`: Input should be 'venv', 'conda' or 'system'",
        ),
        (
            {"facts": {"packages": {"x": None}}},
            "`facts.packages.x`: Input should be a valid dictionary or instance of PackageFacts",
        ),
    ],
)
def test_a_wrong_field_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(LockfileError) as caught:
        parse(encode(document(**changes)), "x.lock")
    assert caught.value.message == f"lockfile x.lock is not valid: {message}"


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (
            {"name": "loose", "overrides": {}},
            "unknown policy `loose` (choose from: strict, bits, same-arch, functional)",
        ),
        (
            {"name": "strict", "overrides": {"cpu": "equal"}},
            "unknown rule `equal` (choose from: "
            "exact, exact_where_asked, exact_where_locked, exact_or_unset, same_minor, "
            "at_least, superset, within_3_percent, proven, ignore)",
        ),
    ],
)
def test_a_policy_that_does_not_exist_is_refused(policy: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    path.write_bytes(encode(document(policy=policy)))
    with pytest.raises(LockfileError) as caught:
        load(path)
    expected = f"invalid policy in the lockfile: {message}"
    assert (caught.value.message, caught.value.hint) == (expected, "capture again")


def test_the_published_schema_is_the_models() -> None:
    """That it is up to date is looked at with everything else that is generated."""
    published = json.loads((ROOT / "envlock" / "data" / "lockfile.schema.json").read_text(encoding="utf-8"))
    assert (published["$id"], published["additionalProperties"]) == (models.SCHEMA_URL, False)


def test_a_section_of_the_models_is_a_section_of_the_reader() -> None:
    from envlock.runtime.collectors import COLLECTORS
    from envlock.runtime.lockfile import OPTIONAL, REQUIRED, SECTIONS

    assert list(Facts.model_fields) == list(SECTIONS) == [*COLLECTORS, "loaded"]
    aliases = {field.alias or name for name, field in models.Lockfile.model_fields.items()}
    assert aliases == set(REQUIRED) | set(OPTIONAL)
