"""The line that names an environment: what it digests, and that it stays the same for ever."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

import envlock
from envlock.lock.creation import capture
from envlock.lock.document import dump, parse
from envlock.runtime.collectors import take_snapshot
from envlock.runtime.environment_line import make_line
from tests.conftest import Command
from tests.locks import FACTS, document, encode
from tests.machines import complete

GOLDEN = "envlock:1:sha256:c59cd32fa02ded646cf7e6e6888d6fbf492a843e6a94ec6901de5b566f50200f"
CANONICAL = (
    '{"facts":{"cpu":{"flags":["avx","avx2"],"quota":1.5},'
    '"packages":{"numpy":{"origin":null,"version":"1.26.4","wheel_tags":["cp311-cp311-linux_x86_64"]}},'
    '"python":{"implementation":"cpython","version":"3.11.7"},"tensorflow":null},'
    '"unavailable":{"keras":"permission-denied"}}'
)


def test_the_line_is_the_digest_that_the_page_of_formats_defines() -> None:
    """Lines are printed in papers: where this fails, the definition gets another number, and this value stays."""
    assert make_line(document()) == GOLDEN == f"envlock:1:sha256:{sha256(CANONICAL.encode()).hexdigest()}"


def test_only_what_was_captured_counts() -> None:
    more = {
        "created_by": "envlock 9.0.0",
        "policy": {"name": "functional", "overrides": {"cpu.*": "ignore"}},
        "machines": [{"facts": {"cpu": {"flags": []}}, "unavailable": {}}],
        "project": {"commit": "1" * 40, "dirty": True},
        "unavailable": {"keras": {"reason": "said in other words", "code": "permission-denied"}},
    }
    assert make_line(document(**more)) == GOLDEN
    changed = [
        document(facts={**FACTS, "tensorflow": {"version": "2.21.0"}}),
        document(unavailable={}),
        document(unavailable={"keras": {"reason": "keras.json cannot be read", "code": "not-readable"}}),
    ]
    assert len({GOLDEN, *map(make_line, changed)}) == 4


def test_a_word_of_any_script_is_digested_as_utf_8() -> None:
    digest = sha256('{"facts":{"system":{"name":"Größe"}},"unavailable":{}}'.encode()).hexdigest()
    assert make_line({"facts": {"system": {"name": "Größe"}}, "unavailable": {}}) == f"envlock:1:sha256:{digest}"


def test_the_models_change_nothing_about_it(tmp_path: Path) -> None:
    found = capture(live=take_snapshot(complete(tmp_path / "machine")))
    written = tmp_path / "envlock.lock"
    written.write_bytes(dump(found))
    again = parse(written.read_bytes(), "envlock.lock").to_document()
    assert envlock.cite(written) == make_line(again) == make_line(found.to_document())


@pytest.mark.parametrize("words", [[], ["envlock.lock"], ["-"]])
def test_show_prints_the_line(words: list[str], envlock: Command) -> None:
    data = encode(document())
    (envlock.folder / "envlock.lock").write_bytes(data)
    done = envlock("show", "--line", *words, stdin=data)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{GOLDEN}\n", "")
