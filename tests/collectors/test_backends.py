"""JAX and PyTorch: versions and settings are facts wherever they are installed, and nothing is imported."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from envlock.data.backends import load_backend_table
from envlock.lock.creation import capture
from envlock.runtime.collectors import frameworks, take_snapshot
from envlock.runtime.compare import LIBRARIES, OWN_SECTIONS
from envlock.runtime.facts import Unavailable
from envlock.runtime.host import Host
from envlock.runtime.tables import table
from tests.machines import distribution, machine, write

VERSION = """\
from typing import Optional
__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip']
__version__ = '2.9.0+cu128'
debug = False
cuda: Optional[str] = '12.8'
git_version = '0fabc3ba44823f257e70ce397d989c8de5e362c1'
hip: Optional[str] = None
"""
X64 = "JAX_ENABLE_X64"


def host_of(tmp_path: Path, started_with: Any = None, *packages: str, **environ: str) -> Host:
    site = tmp_path / "site-packages"
    for name in ("keras", *packages):
        distribution(site, name, "2.9.0+cu128" if name == "torch" else "3.12.0")
    for name in packages:
        write(site / name, {"__init__.py": "raise SystemExit", "version.py": VERSION})
    return machine(tmp_path / "root", site=site, environ=environ, started_with=started_with)


def facts(host: Host, backend: str) -> Any:
    collect = {"jax": frameworks.collect_jax, "torch": frameworks.collect_torch}
    return collect[backend](host)


def setting(tmp_path: Path, name: str, started_with: Any = None, **environ: str) -> Any:
    backend, packages = ("jax", ("jax", "jaxlib")) if name.startswith("JAX") else ("torch", ("torch",))
    host = host_of(tmp_path, started_with, *packages, KERAS_BACKEND=backend, **environ)
    return facts(host, backend)["settings"][name]


@pytest.mark.parametrize("backend", [None, "tensorflow", "openvino", "jax", "torch"])
def test_a_library_is_a_fact_whatever_computes_for_keras(tmp_path: Path, backend: str | None) -> None:
    """TensorFlow loads the data and JAX computes: `JAX_ENABLE_X64=1` matched."""
    environ = {"JAX_ENABLE_X64": "1"} if backend is None else {"JAX_ENABLE_X64": "1", "KERAS_BACKEND": backend}
    host = host_of(tmp_path, None, "jax", "jaxlib", "torch", **environ)
    assert facts(host, "jax")["settings"][X64] == "1"
    assert facts(host, "torch")["version"] == "2.9.0+cu128"


def test_what_is_not_installed_is_none(tmp_path: Path) -> None:
    host = host_of(tmp_path, None, KERAS_BACKEND="openvino", JAX_ENABLE_X64="1")
    assert (facts(host, "jax"), facts(host, "torch")) == (None, None)
    assert take_snapshot(host).facts["jax"] is None


def test_a_jax_without_jaxlib_says_so(tmp_path: Path) -> None:
    assert facts(host_of(tmp_path, None, "jax"), "jax")["jaxlib"] is None


@pytest.mark.parametrize(
    ("name", "value", "recorded"),
    [
        ("JAX_SOFTMAX_CUSTOM_JVP", "0", "0"),
        ("JAX_OF_NEXT_YEAR", "a secret", "sha256:"),
        ("JAX_LOG_COMPILES", "1", None),
        ("JAX_COORDINATOR_ADDRESS", "10.0.0.1:1234", None),
        ("JAX_PROCESS_ID", "3", None),
        ("JAX_\N{LATIN SMALL LETTER E WITH ACUTE}", "1", None),
        ("JAX_A-B", "1", None),
        ("JAX_" + "A" * 125, "1", None),
        ("TORCHINDUCTOR_FREEZING", "1", "1"),
        ("OMP_DYNAMIC", "1", "1"),
        ("MKL_DISABLE_FAST_MM", "1", "1"),
        ("OMP_NUM_THREADS", "1", None),  # a fact of `environ`
        ("TORCH_NCCL_BLOCKING_WAIT", "1", None),
        ("OMP_PROC_BIND", "true", None),
    ],
)
def test_a_variable_that_only_the_library_reads_is_a_fact_unless_it_is_harmless(
    tmp_path: Path, name: str, value: str, recorded: str | None
) -> None:
    """Each release has new ones: `JAX_DISABLE_MOST_OPTIMIZATIONS=1` was in no table, and gives other bits."""
    library = "jax" if name.startswith("JAX") else "torch"
    host = host_of(tmp_path, None, "jax", "jaxlib", "torch", **{name: value})
    found = facts(host, library)["settings"].get(name)
    assert (found or "None").startswith(str(recorded))
    assert name not in facts(host, "torch" if library == "jax" else "jax")["settings"]


def test_a_variable_that_no_table_knows_counts_as_at_the_start_once_its_library_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jax", SimpleNamespace())
    host = host_of(tmp_path, {"JAX_NEW": "1"}, "jax", "jaxlib")
    assert facts(host, "jax")["settings"]["JAX_NEW"].code == "set-after-start"


def test_what_is_locked_of_jax(tmp_path: Path) -> None:
    host = host_of(tmp_path, None, "jax", "jaxlib", KERAS_BACKEND="jax", JAX_ENABLE_X64="1", JAX_PLATFORMS="a/secret")
    found = facts(host, "jax")
    assert (found["version"], found["jaxlib"], found["settings"][X64]) == ("3.12.0", "3.12.0", "1")
    assert found["settings"]["JAX_PLATFORMS"].startswith("sha256:")
    assert list(found["settings"]) == [row.name for row in load_backend_table().setting if row.backend == "jax"]
    assert sum(value is not None for value in found["settings"].values()) == 2
    assert capture(live=take_snapshot(host)).facts.jax.settings[X64] == "1"  # type: ignore[union-attr, index]


def test_keras_on_numpy_computes_with_jax_too(tmp_path: Path) -> None:
    """keras/src/backend/numpy/nn.py imports jax, and linalg.py SciPy."""
    host = host_of(tmp_path, None, "jax", "jaxlib", "scipy", KERAS_BACKEND="numpy", JAX_ENABLE_X64="1")
    assert facts(host, "jax")["settings"][X64] == "1"
    assert capture(live=take_snapshot(host)).facts.jax.settings[X64] == "1"  # type: ignore[union-attr, index]


@pytest.mark.parametrize(
    ("backend", "packages", "lacking"),
    [("numpy", ("jax", "jaxlib"), "scipy"), ("numpy", ("scipy",), "jax"), ("jax", ("jax",), "jaxlib")],
)
def test_a_back_end_without_what_it_needs_says_so(
    tmp_path: Path, backend: str, packages: tuple[str, ...], lacking: str
) -> None:
    found = facts(host_of(tmp_path, None, *packages, KERAS_BACKEND=backend), "jax")
    assert (found.code, found.reason) == (
        "no-backend",
        f"Keras is to compute with {backend}, but no {lacking} is installed",
    )


def test_what_is_locked_of_pytorch(tmp_path: Path) -> None:
    host = host_of(tmp_path, None, "torch", KERAS_BACKEND="torch", ATEN_CPU_CAPABILITY="avx2")
    found = facts(host, "torch")
    assert found.pop("settings")["ATEN_CPU_CAPABILITY"] == "avx2"
    assert found == {
        "version": "2.9.0+cu128",
        "cuda": "12.8",
        "git_version": "0fabc3ba44823f257e70ce397d989c8de5e362c1",
        "hip": None,
    }
    (tmp_path / "site-packages/torch/version.py").unlink()
    assert facts(Host(host.root, host.environ, host.path), "torch")["cuda"] is None


def test_keras_json_selects_a_back_end_as_well(tmp_path: Path) -> None:
    home = write(tmp_path / "home", {"keras.json": '{"backend": "torch"}'})
    assert facts(host_of(tmp_path, None, "torch", KERAS_HOME=str(home)), "torch")["version"] == "2.9.0+cu128"


@pytest.mark.parametrize(
    ("backend", "packages", "missing"), [("jax", ["jax"], "jaxlib"), ("jax", [], "jax"), ("torch", [], "torch")]
)
def test_a_back_end_that_is_not_installed_is_no_evidence(
    tmp_path: Path, backend: str, packages: list[str], missing: str
) -> None:
    found = facts(host_of(tmp_path, None, *packages, KERAS_BACKEND=backend), backend)
    reason = f"Keras is to compute with {backend}, but no {missing} is installed"
    assert found == Unavailable(reason, "no-backend")


def test_a_back_end_that_another_module_hides_is_no_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = host_of(tmp_path, None, "torch", KERAS_BACKEND="torch")
    write(tmp_path / "beside", {"torch.py": ""})
    monkeypatch.chdir(tmp_path / "beside")
    host.path = ["", *host.path]
    reason = "a torch beside the script or in the current folder is imported instead of the installed one"
    assert facts(host, "torch") == Unavailable(reason, "shadowed")


class Level(Enum):
    """As some of JAX's options are."""

    STANDARD = "standard"
    STRICT = "strict"


@pytest.mark.parametrize(
    ("config", "started", "environ", "expected"),
    [
        ({}, {}, {}, None),
        ({}, {X64: "1"}, {X64: "1"}, "1"),
        ({"jax_enable_x64": False}, {}, {}, None),
        ({"jax_enable_x64": True}, {}, {}, "true"),
        ({"jax_enable_x64": True}, {X64: "on"}, {X64: "on"}, None),
        ({"jax_enable_x64": True}, {X64: "1"}, {X64: "1"}, "1"),
        ({"jax_enable_x64": False}, {X64: "1"}, {X64: "1"}, "false"),
        ({"jax_enable_x64": False}, {}, {X64: "1"}, None),
        ({"jax_enable_x64": True}, {}, {X64: "1"}, "true"),
    ],
)
def test_once_jax_is_imported_what_it_has_in_effect_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: Any, started: Any, environ: Any, expected: str | None
) -> None:
    monkeypatch.setitem(sys.modules, "jax", SimpleNamespace(config=SimpleNamespace(**config)))
    found = setting(tmp_path, X64, started, **environ)
    if environ.get(X64) == "on":  # is no value that a lock holds as it is
        assert found.startswith("sha256:")
    else:
        assert found == expected


def test_a_variable_that_changed_after_jax_was_imported_is_no_evidence_where_jax_does_not_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert setting(tmp_path / "before", "JAX_PLATFORMS", {}, JAX_PLATFORMS="cpu") == "cpu"
    monkeypatch.setitem(sys.modules, "jax", SimpleNamespace())
    reason = "it has changed since the process started, and its reader is imported"
    assert setting(tmp_path / "after", "JAX_PLATFORMS", {}, JAX_PLATFORMS="cpu") == Unavailable(
        reason, "set-after-start"
    )


def test_options_of_other_kinds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = SimpleNamespace(
        jax_numpy_dtype_promotion=Level.STANDARD, jax_default_matmul_precision=None, jax_threefry_partitionable=False
    )
    monkeypatch.setitem(sys.modules, "jax", SimpleNamespace(config=config))
    name = "JAX_NUMPY_DTYPE_PROMOTION"
    assert setting(tmp_path / "1", name) is None
    assert setting(tmp_path / "2", "JAX_DEFAULT_MATMUL_PRECISION") is None
    assert (
        setting(tmp_path / "3", "JAX_THREEFRY_PARTITIONABLE") is None
    )  # what it is by default, depends on the version
    config.jax_numpy_dtype_promotion = Level.STRICT
    assert setting(tmp_path / "4", name) == "strict"


def broken() -> str:
    raise RuntimeError("both the old and the new interface were used")


@pytest.mark.parametrize(
    ("function", "expected"), [(lambda: "highest", None), (lambda: "medium", "medium"), (broken, None), (max, None)]
)
def test_what_no_variable_sets_is_asked_of_pytorch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: Any, expected: str | None
) -> None:
    assert setting(tmp_path / "before", "float32_matmul_precision") is None
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(get_float32_matmul_precision=function))
    assert setting(tmp_path / "after", "float32_matmul_precision") == expected


def test_the_lists_of_back_ends_agree_and_each_row_has_a_source() -> None:
    known = {name: library for name, library in LIBRARIES.items() if library is not None}
    assert {backend: name for name, backends in frameworks.NEEDED.items() for backend in backends} == known
    assert set(table("backends")["settings"]) == set(table("backends")["others"]) == set(OWN_SECTIONS)
    rows = load_backend_table()
    assert [row.name for row in rows.setting if not row.source.startswith(("https://", *rows.evidence))] == []
    assert set(rows.evidence) <= {row.source for row in rows.setting}
    names = [(row.backend, not row.name.isupper(), row.name) for row in rows.setting]
    assert names == sorted(set(names))
    for row in rows.setting:
        assert (row.records == "word") == bool(row.words), row.name
        assert row.name.isupper() or (row.config and row.default), row.name
        assert "Set or unset" in row.fix if row.name.isupper() else "Let the program set" in row.fix
