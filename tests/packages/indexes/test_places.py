"""Which indexes are asked: pip's and uv's settings in all their places, and nothing of a password in any of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pypi_simple import PYPI_SIMPLE_ENDPOINT

from envlock.packages.indexes.index_settings import (
    ConfigFile,
    Index,
    Settings,
    choose_indexes,
    list_pip_files,
    list_uv_files,
    load,
)
from envlock.runtime.errors import UsageError

HERE = Path("/project")
PUBLIC = Index(PYPI_SIMPLE_ENDPOINT)
A, B, C = (f"https://{name}.example.org/simple" for name in "abc")


def _pip(*texts: str) -> list[ConfigFile]:
    return [ConfigFile(Path(f"/etc/{number}/pip.conf"), text) for number, text in enumerate(texts)]


def _uv(text: str, name: str = "uv.toml") -> list[ConfigFile]:
    return [ConfigFile(HERE / name, text)]


def _urls(found: Settings) -> list[str]:
    return [index.url for index in found.indexes]


def _asked(
    environ: dict[str, str] | None = None,
    asked: list[str] | None = None,
    pip: list[ConfigFile] | None = None,
    uv: list[ConfigFile] | None = None,
) -> list[str]:
    return _urls(choose_indexes(environ or {}, asked=asked or [], pip=pip or [], uv=uv or [], folder=HERE))


def test_where_nobody_says_anything_it_is_the_public_index() -> None:
    assert choose_indexes({}, folder=HERE) == Settings((PUBLIC,))


def test_what_is_asked_for_is_the_only_one() -> None:
    environ = {"PIP_EXTRA_INDEX_URL": B, "UV_INDEX": B, "ENVLOCK_INDEX_URL": f"{B} {C}"}
    assert _asked(environ, asked=[A]) == [A]
    assert _asked(environ) == [B, C]


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"PIP_INDEX_URL": A}, [A]),
        ({"PIP_EXTRA_INDEX_URL": f"{A}\n{B}"}, [A, B, PUBLIC.url]),
        ({"PIP_INDEX_URL": A, "PIP_EXTRA_INDEX_URL": f"{B} {PUBLIC.url}"}, [A, B, PUBLIC.url]),
        ({"PIP_NO_INDEX": "1", "PIP_INDEX_URL": A, "PIP_FIND_LINKS": "/wheels"}, ["file:///wheels"]),
        ({"PIP_NO_INDEX": "0", "PIP_INDEX_URL": A}, [A]),
        ({"PIP_INDEX_URL": ""}, [PUBLIC.url]),
        (
            {"PIP_FIND_LINKS": "wheels ~root/x file:///y%20z"},
            ["file:///project/wheels", "file:///root/x", "file:///y%20z"],
        ),
        ({"UV_DEFAULT_INDEX": A, "UV_INDEX": f"b={B} {C}"}, [B, C, A]),
        ({"UV_INDEX_URL": A, "UV_EXTRA_INDEX_URL": B}, [B, A]),
        ({"UV_INDEX": B}, [B, PUBLIC.url]),
        ({"UV_NO_INDEX": "true", "UV_FIND_LINKS": "/a,/b"}, ["file:///a", "file:///b"]),
        ({"PIP_INDEX_URL": A, "UV_DEFAULT_INDEX": B}, [A, B]),
        ({"PIP_INDEX_URL": f"{A}/", "UV_DEFAULT_INDEX": A}, [f"{A}/"]),
    ],
)
def test_variables(environ: dict[str, str], expected: list[str]) -> None:
    if "~root" in environ.get("PIP_FIND_LINKS", ""):
        expected = [*expected, PUBLIC.url]
    assert _asked(environ) == expected


def test_pip_reads_its_files_in_order_and_the_install_section_last() -> None:
    files = _pip(
        f"[global]\nindex-url = {A}\nextra-index-url =\n    {B}\n    {C}\ncert = /ca.pem\n[install]\nfind_links = /w\n",
        "[global]\nindex-url = https://other.example.org/simple\n[install]\nindex-url =\n[download]\nindex-url = "
        "x://y\n",
    )
    found = choose_indexes({}, pip=files, folder=HERE)
    assert _urls(found) == ["file:///w", "https://other.example.org/simple", B, C]
    assert (found.ca, found.indexes[0].kind) == ("/ca.pem", "links")
    assert choose_indexes({"PIP_CERT": "/mine.pem"}, pip=files, folder=HERE).ca == "/mine.pem"


UV_TOML = f"""
no-build = true
find-links = ["./wheels"]
[[index]]
name = "torch"
url = "{B}"
explicit = true
[[index]]
name = "flat"
url = "https://flat.example.org/links.html"
format = "flat"
[[index]]
url = "{A}"
default = true
[pip]
extra-index-url = ["{C}"]
"""


def test_uv_reads_its_own_file_and_pyproject() -> None:
    expected = ["https://flat.example.org/links.html", "file:///project/wheels", B, C, A]
    assert _asked(uv=_uv(UV_TOML)) == expected
    nested = UV_TOML.replace("[[index]]", "[[tool.uv.index]]").replace("[pip]", "[tool.uv.pip]")
    assert _asked(uv=_uv(f"[tool.uv]\n{nested}", "pyproject.toml")) == expected
    assert _asked(uv=_uv("[project]\nname = 'x'", "pyproject.toml")) == [PUBLIC.url]
    assert _asked(uv=_uv("no-index = true")) == []


@pytest.mark.parametrize(
    "text", ["index = 1", "index = ['x', {url = 1}, {}]", "pip = 3", "index-url = [1]", "[index]\nurl = 'x'"]
)
def test_settings_of_uv_that_mean_nothing(text: str) -> None:
    assert _asked(uv=_uv(text)) == [PUBLIC.url]


@pytest.mark.parametrize(
    ("pip", "uv", "message"),
    [
        (_pip("index-url = x"), [], "cannot read /etc/0/pip.conf: it is not a pip configuration"),
        (_pip("[global]\nx = 1\nx = 2"), [], "cannot read /etc/0/pip.conf: it is not a pip configuration"),
        ([], _uv("index ="), "cannot read /project/uv.toml: it is not TOML"),
        ([], _uv("tool = 1", "pyproject.toml"), "cannot read /project/pyproject.toml: it is not TOML"),
    ],
)
def test_files_that_are_none(pip: list[ConfigFile], uv: list[ConfigFile], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        _asked(pip=pip, uv=uv)
    assert caught.value.message == message


@pytest.mark.processes
@pytest.mark.parametrize(
    "url",
    [
        "ftp://u:s3cret@h/",
        "http://u:s3cret@[/",
        "https://u:s3cret@h:port/",
        "s3://b",
        "https://",
        "file:wheels",
        "file:///a%00b",
    ],
)
def test_what_is_no_index_is_not_shown(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        _asked({"PIP_INDEX_URL": url})
    assert caught.value.message == "a package index is neither a URL nor a folder"


def test_credentials_are_kept_apart() -> None:
    environ = {
        "PIP_INDEX_URL": "https://us%40er:p%3As@a.example.org/simple",
        "UV_INDEX": "torch=https://token@b.example.org/simple plain=https://a.example.org/simple",
    }
    found = choose_indexes(environ, folder=HERE)
    assert _urls(found) == [A, B]
    assert [(index.name, index.user, index.password) for index in found.indexes] == [
        ("plain", "us@er", "p:s"),
        ("torch", "token", None),
    ]
    assert "p:s" not in repr(found)
    assert "token" not in repr(found)


@example({"PIP_INDEX_URL": "~0"})  # nobody's home
@given(st.dictionaries(st.sampled_from(["PIP_INDEX_URL", "UV_INDEX", "PIP_FIND_LINKS"]), st.text(max_size=30)))
def test_no_setting_is_a_bug(environ: dict[str, str]) -> None:
    try:
        found = choose_indexes(environ, folder=HERE)
    except UsageError:
        return
    assert all(index.url.startswith(("http:", "https:", "file:")) for index in found.indexes)


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.processes
def test_pip_looks_where_pip_looks(tmp_path: Path) -> None:
    """pip itself is asked where it would look."""
    environ = {"HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"], "XDG_CONFIG_DIRS": "/etc/one:/etc/two"}
    argv = [sys.executable, "-m", "pip", "config", "debug"]
    told = subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=60, check=True).stdout
    theirs = [line.strip().rpartition(", exists:")[0] for line in told.splitlines() if ", exists:" in line]
    ours = [str(path) for path in list_pip_files(environ, Path(sys.prefix))]
    assert sorted(theirs) == sorted(ours)


def test_the_file_that_pip_is_told_to_read(tmp_path: Path) -> None:
    named = _write(tmp_path / "named.conf", "")
    files = list_pip_files({"PIP_CONFIG_FILE": str(named), "HOME": "/home/me"}, Path("/venv"))
    assert files[-1] == named
    assert [file for file in files if str(file).startswith("/home/me")] == []
    assert list_pip_files({"PIP_CONFIG_FILE": os.devnull}, Path("/venv")) == []


def test_uv_looks_where_uv_looks(tmp_path: Path) -> None:
    project = _write(tmp_path / "a/pyproject.toml", "[tool.uv]\n").parent
    below = project / "b" / "c"
    _write(below / "pyproject.toml", "[project]\nname = 'x'\n")
    environ = {"HOME": str(tmp_path), "XDG_CONFIG_DIRS": str(tmp_path / "etc")}
    system = _write(tmp_path / "etc/uv/uv.toml", "")
    user = tmp_path / ".config/uv/uv.toml"
    assert list_uv_files(environ, below) == [project / "pyproject.toml", user, system]
    own = _write(project / "uv.toml", "")
    assert list_uv_files(environ, below) == [own, user, system]
    assert list_uv_files({**environ, "UV_CONFIG_FILE": "/x/uv.toml"}, below) == [Path("/x/uv.toml")]
    assert list_uv_files({**environ, "UV_NO_CONFIG": "1"}, below) == []


def test_settings_are_found_on_disk(tmp_path: Path) -> None:
    _write(tmp_path / "venv/pip.conf", f"\ufeff[global]\r\nextra-index-url = {A}\r\n")
    _write(tmp_path / "project/uv.toml", f"index-url = '{B}'\nfind-links = ['wheels']")
    environ = {"HOME": str(tmp_path), "XDG_CONFIG_DIRS": str(tmp_path / "etc"), "PIP_EXTRA_INDEX_URL": ""}
    found = load(prefix=tmp_path / "venv", environ=environ, folder=tmp_path / "project")
    wheels = (tmp_path / "project/wheels").as_uri()
    assert [url for url in _urls(found) if "example.org" in url or url == wheels] == [wheels, A, B]
    assert _urls(load([C], environ=environ, folder=tmp_path)) == [C]


def test_a_file_that_is_too_large_or_no_file(tmp_path: Path) -> None:
    large = _write(tmp_path / "pip.conf", "x" * 200_000)
    for path, why in ((large, "it is larger than 128 KB"), (tmp_path, "Is a directory")):
        with pytest.raises(UsageError) as caught:
            load(environ={"PIP_CONFIG_FILE": str(path), "HOME": "/nowhere"}, folder=tmp_path)
        assert caught.value.message == f"cannot read {path}: {why}"
