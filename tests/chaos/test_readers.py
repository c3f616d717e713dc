"""Whatever a file or an answer holds, its reader reads it or refuses it: soon, in little memory, in one sentence."""

from __future__ import annotations

import json
import re
import struct
import subprocess
import sys
import zlib
from importlib.metadata import PathDistribution
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from envlock.evidence.diverge.trace import TraceError
from envlock.image.bases.manifest import RegistryError
from envlock.runtime.files.record_rows import Row
from tests.chaos.attack import MEGABYTES, Outcome, attack, loaded
from tests.chaos.readers import READERS

SHORT = 40
SEED = 17
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", READERS)
def test_no_damaged_input_does_harm(name: str, tmp_path: Path) -> None:
    outcome = attack(READERS[name], name, tmp_path, inputs=SHORT, seed=SEED)
    assert (outcome.inputs, outcome.wrong) == (SHORT, {}), outcome.first


@pytest.mark.chaos
@pytest.mark.processes
@pytest.mark.parametrize("name", READERS)
def test_no_damaged_input_of_many_does_harm(name: str, record_property: Any) -> None:
    inputs = READERS[name].inputs
    words = [sys.executable, "-m", "tests.chaos.attack", name, str(inputs), str(SEED + 1)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=3000, check=True)
    outcome = loaded(done.stdout)
    record_property("attack", f"{name}: {_sentence(outcome)}")
    print(f"{name}: {_sentence(outcome)}")
    assert (outcome.inputs, outcome.wrong) == (inputs, {}), outcome.first
    assert outcome.megabytes < MEGABYTES
    assert 0 < outcome.inputs - outcome.refused


def _sentence(outcome: Outcome) -> str:
    slowest = f"slowest {outcome.slowest:.2f} s of CPU time"
    return f"{outcome.inputs} inputs, {outcome.refused} refused, {slowest}, {outcome.megabytes:.0f} MB"


def test_there_are_a_hundred_thousand_and_the_page_says_how_many() -> None:
    inputs = sum(each.inputs for each in READERS.values())
    assert inputs >= 100_000
    page = (ROOT / "docs" / "contributing" / "attacks.md").read_text(encoding="utf-8")
    assert f"damaged inputs of {len(READERS)} readers" in page
    assert f"{inputs:,} inputs" in page


def _unchecked(stream: BinaryIO, name: str) -> list[bytes]:
    """Unpack a trace without its checksum."""
    try:
        return zlib.decompressobj(-15).decompress(stream.read()[10:]).splitlines()
    except zlib.error:
        raise TraceError("damaged") from None


PLANTS: dict[str, tuple[str, Any]] = {
    "METADATA": ("envlock.packages.installation._ForgivingDistribution.read_text", PathDistribution.read_text),
    "paste": ("envlock.workflows.pastes.clean", str),
    "cpuinfo": ("envlock.runtime.facts._find_problem", lambda value: None),
    "os-release": ("envlock.runtime.facts._find_problem", lambda value: None),
    "numpy config": ("envlock.runtime.facts._find_problem", lambda value: None),
    "build_info": ("envlock.runtime.collectors.tensorflow.is_version", lambda text: True),
    "trace on disk": ("envlock.evidence.diverge.trace._iter_lines", _unchecked),
    "source": ("envlock.linter.files._read_code", lambda path: (Path(path).read_text("utf-8"), None)),
    "fleet": ("envlock.fleet.folder.is_statement", lambda value: isinstance(value, dict)),
    "lockfile": ("envlock.runtime.compare.is_same", lambda left, right: True),
    "WHEEL": ("envlock.runtime.collectors.packages._is_tag", lambda text: True),
    "direct_url.json": ("envlock.runtime.collectors.packages.strip_url_secrets", lambda url: url),
    "keras.json": ("envlock.runtime.collectors.keras_settings._parse_as_keras", json.loads),
    "NVML": ("envlock.runtime.gpu.devices.is_version", lambda text: True),
    "NVML process": ("envlock.runtime.gpu.probe._decode", json.loads),
    "ELF": ("envlock.diagnosis.fatbin.check_header", lambda head, machine: struct.unpack("<Q", head[:8])),
    "ld.so.cache": ("envlock.runtime.loader.ld_cache._HEADER", 0),
    "trace": ("envlock.evidence.diverge.trace._parse_line", lambda line, name: json.loads(line)),
    "results": ("envlock.reports.text._disarm_line", lambda line: line),
    "canary": ("envlock.evidence.canary.canary_run._check_fields", lambda answer, wanted: answer),
    "pyproject.toml": ("envlock.lock.settings.read_toml", lambda file: tomllib.loads(file.read_text())),
    "uv.toml": ("envlock.packages.index._add_login", lambda url, *_: urlsplit(url).geturl()),
    "registry": ("envlock.image.bases.manifest.check", lambda data, digest, reference: None),
    "challenge": ("envlock.image.bases.registry.can_have_login", lambda *_: True),
    "docker config": ("envlock.image.bases.logins._unreadable", lambda path, why: RegistryError(path.read_text())),
    "pip report": ("envlock.packages.index._SHA256", re.compile(r"(?s).*")),
    "wheel": ("envlock.packages.wheel_files._unsound", lambda file, why: ValueError(why)),
    "RECORD": ("envlock.runtime.files.record_rows.parse_row", lambda fields: Row(fields[0], fields[1], None)),
    "notebook": ("envlock.linter.notebooks._join_source", lambda cell: cell["source"]),
}
"""By reader: a defence, and what takes its place."""


def test_a_defence_of_every_reader_is_taken_away() -> None:
    assert set(PLANTS) == set(READERS)


@pytest.mark.parametrize("name", PLANTS)
def test_without_a_defence_the_attack_succeeds(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*PLANTS[name])
    assert attack(READERS[name], name, tmp_path, inputs=600, seed=SEED, until_wrong=True).wrong
