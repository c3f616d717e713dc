"""The Keras collector: versions, and the defaults that keras.json and KERAS_BACKEND set unseen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from envlock.lock.creation import capture
from envlock.lock.document import dump
from envlock.runtime.collectors import take_snapshot
from envlock.runtime.collectors.keras_settings import DEFAULTS, collect
from envlock.runtime.facts import Unavailable
from envlock.runtime.host import Host
from tests.machines import distribution, machine, write


def with_keras(tmp_path: Path, keras_json: str | bytes | None, **environ: str) -> Host:
    distribution(tmp_path / "site", "keras", "3.5.0")
    home = tmp_path / "keras home"
    if keras_json is not None:
        write(home, {"keras.json": keras_json})
    return machine(tmp_path / "root", site=tmp_path / "site", environ={"KERAS_HOME": str(home), **environ})


def config(host: Host) -> Any:
    found: Any = collect(host)
    return found["config"]


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        ({"keras": "3.5.0"}, ("3.5.0", None)),
        ({"keras": "2.15.0"}, ("2.15.0", None)),
        ({"keras": "3.5.0", "tf_keras": "2.17.0"}, ("3.5.0", "2.17.0")),
        ({"tf_keras": "2.17.0"}, (None, "2.17.0")),
        ({"keras_nightly": "3.6.0.dev1", "tf_keras_nightly": "2.18.0.dev1"}, ("3.6.0.dev1", "2.18.0.dev1")),
        ({"keras": "3.5.0", "keras_nightly": "3.6.0.dev1"}, ("3.5.0", None)),
    ],
)
def test_the_versions(versions: dict[str, str], expected: tuple[Any, Any], tmp_path: Path) -> None:
    for name, version in versions.items():
        distribution(tmp_path / "site", name, version)
    found: Any = collect(machine(tmp_path / "root", site=tmp_path / "site"))
    assert (found["version"], found["legacy_version"], found["config"]) == (*expected, DEFAULTS)


def test_an_empty_keras_home_is_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "here", {"keras.json": '{"floatx": "float64"}'})
    monkeypatch.chdir(tmp_path / "here")
    assert config(with_keras(tmp_path, None, KERAS_HOME=""))["floatx"] == "float64"


def test_without_keras_there_is_none(tmp_path: Path) -> None:
    distribution(tmp_path / "site", "keras_tuner", "1.4.0")
    assert collect(machine(tmp_path / "root", site=tmp_path / "site")) is None


@pytest.mark.parametrize(
    ("keras_json", "changes"),
    [
        (None, {}),
        ("", {}),
        ("{}", {}),
        ('{"floatx": "float16", "backend": "jax"}', {"floatx": "float16", "backend": "jax"}),
        ('{"epsilon": 1e-05}', {"epsilon": 1e-05}),
        ('{"image_data_format": "channels_first"}', {"image_data_format": "channels_first"}),
        ('{"nnx_enabled": true, "unknown": "SECRET"}', {"nnx_enabled": True}),
        ("not json", {}),
        ('{"floatx": "float32", "floatx": "float16"}', {"floatx": "float16"}),  # Keras minds neither of these
        ('{"floatx": "float16", "x": NaN}', {"floatx": "float16"}),
        (b"\xff\xfe", {}),
    ],
)
def test_keras_json(keras_json: str | bytes | None, changes: dict[str, Any], tmp_path: Path) -> None:
    assert config(with_keras(tmp_path, keras_json)) == {**DEFAULTS, **changes}


@pytest.mark.parametrize(
    ("keras_json", "name"),
    [
        ('{"floatx": 16}', "floatx"),
        ('{"floatx": "float\\u001b16"}', "floatx"),
        ('{"epsilon": "1e-7"}', "epsilon"),
        ('{"epsilon": 1}', "epsilon"),
        ('{"backend": null}', "backend"),
        ('{"backend": "_x"}', "backend"),
        ('{"backend": "x y"}', "backend"),
        ('{"backend": ""}', "backend"),
        ('{"nnx_enabled": 1}', "nnx_enabled"),
    ],
)
def test_a_value_of_another_kind_is_unavailable(keras_json: str, name: str, tmp_path: Path) -> None:
    host = with_keras(tmp_path, keras_json)
    problem = Unavailable(f"keras.json has an unexpected value for {name}", "malformed")
    assert config(host) == {**DEFAULTS, name: problem}
    assert b'"keras"' in dump(capture(live=take_snapshot(host)))


@pytest.mark.parametrize("value", ["jax", "torch"])
def test_keras_backend_beats_keras_json(value: str, tmp_path: Path) -> None:
    host = with_keras(tmp_path, '{"backend": "numpy"}', KERAS_BACKEND=value)
    assert config(host) == {**DEFAULTS, "backend": value}


@pytest.mark.parametrize("value", ["_x", "a b", "x" * 33, "\udcff", "$(x)"])
def test_a_backend_that_is_no_word_is_unavailable(value: str, tmp_path: Path) -> None:
    host = with_keras(tmp_path, None, KERAS_BACKEND=value)
    assert config(host) == {**DEFAULTS, "backend": Unavailable("KERAS_BACKEND names an unknown backend", "malformed")}


def test_an_empty_keras_backend_is_none(tmp_path: Path) -> None:
    assert config(with_keras(tmp_path, '{"backend": "jax"}', KERAS_BACKEND="")) == {**DEFAULTS, "backend": "jax"}


def test_a_keras_json_that_cannot_be_read_is_unavailable(tmp_path: Path) -> None:
    host = with_keras(tmp_path, None)
    (tmp_path / "keras home" / "keras.json").mkdir(parents=True)
    assert config(host) == Unavailable("keras.json cannot be read: Is a directory", "permission-denied")


def test_the_home_folder_is_where_keras_looks_without_keras_home(tmp_path: Path) -> None:
    distribution(tmp_path / "site", "keras", "3.5.0")
    write(tmp_path / "home" / ".keras", {"keras.json": '{"floatx": "float64"}'})
    host = Host(str(tmp_path), {"HOME": str(tmp_path / "home")}, [str(tmp_path / "site")], {})
    assert config(host) == {**DEFAULTS, "floatx": "float64"}
