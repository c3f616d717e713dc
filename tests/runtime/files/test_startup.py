"""What the lines of a .pth file do: as Python's own `site` does with them."""

from __future__ import annotations

import site
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.data import runtime_tables
from envlock.runtime import tables
from envlock.runtime.files.site_packages import find_customizations
from envlock.runtime.files.survey import Survey
from envlock.runtime.files.unowned import is_customization, matches_patterns, read_pth


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", ""),
        ("# import os\n\n  \n", ""),
        ("import os\n", "runs `import os`"),
        ("import\tos\r\n", "runs `import\tos`"),
        ("importlib\n", "adds `importlib` to the import path"),
        ("/a\n/b\nimport x", "runs `import x` and adds `/a` and 1 more to the import path"),
        ("import " + "x" * 100, f"runs `import {'x' * 70}...`"),
    ],
)
def test_what_a_pth_does(text: str, what: str) -> None:
    assert read_pth(text).what == what


@given(
    st.lists(
        st.sampled_from(["", "# x", "import envlock_startup_test", "import\tenvlock_startup_test", "here", " here"])
    )
)
def test_python_does_the_same(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    folder = tmp_path_factory.mktemp("site")
    (folder / "here").mkdir()
    (folder / "envlock_startup_test.py").write_text("")
    (folder / "a.pth").write_text("\n".join(lines))
    path = list(sys.path)
    sys.modules.pop("envlock_startup_test", None)
    sys.path.insert(0, str(folder))
    try:
        site.addpackage(str(folder), "a.pth", set())
        added = [entry for entry in sys.path if entry == str(folder / "here")]
        ran = "envlock_startup_test" in sys.modules
    finally:
        sys.path[:] = path
        sys.modules.pop("envlock_startup_test", None)
    told = read_pth("\n".join(lines))
    assert (bool(told.code), bool([line for line in told.folders if line == "here"])) == (ran, bool(added))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sitecustomize.py", True),
        ("usercustomize", True),
        ("sitecustomize.pyc", True),
        ("sitecustomize.cpython-311-x86_64-linux-gnu.so", True),
        ("sitecustomize.txt", False),
        ("sitecustomized.py", False),
        ("my.sitecustomize.py", False),
    ],
)
def test_what_is_imported_at_every_start(name: str, expected: bool) -> None:
    assert is_customization(name) is expected


DEBIAN = """\
# install the apport exception handler if available
try:
    import apport_python_hook
except ImportError:
    pass
else:
    apport_python_hook.install()
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (DEBIAN, []),
        (DEBIAN + "import os\n", [("runs at every start, and lies in the library of Python itself", "info")]),
        ("", []),
    ],
)
def test_the_sitecustomize_of_debians_own_python(
    text: str, said: list[tuple[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tables.table("files")
    (row,) = [row for row in table["known"] if row["path"] == "/usr/lib/python3*/sitecustomize.py"]
    here = {**row, "path": f"{tmp_path}/usr/lib/python3*/sitecustomize.py"}
    monkeypatch.setitem(tables._read, "files", {**table, "known": [here]})
    library, settings = tmp_path / "usr/lib/python3.11", tmp_path / "etc/python3.11"
    for folder in (library, settings):
        folder.mkdir(parents=True)
    (library / "os.py").touch()
    (library / "sitecustomize.py").symlink_to(settings / "sitecustomize.py")
    (settings / "sitecustomize.py").write_text(text)
    found = find_customizations(Survey([str(library)], [], []))
    assert [(fault.what, fault.severity) for fault in found] == said


SETUPTOOLS = "import os; var = 'SETUPTOOLS_USE_DISTUTILS'; enabled = os.environ.get(var, 'local') == 'local'; "


def test_the_line_of_setuptools_fits_and_one_that_looks_like_it_does_not() -> None:
    (known,) = [row for row in runtime_tables.load_file_table().known if row.path == "distutils-precedence.pth"]
    own = SETUPTOOLS + "enabled and __import__('_distutils_hack').add_shim(); \n"
    assert matches_patterns(read_pth(own), known.lines)
    assert not matches_patterns(read_pth(own.rstrip() + " import evil\n"), known.lines)
    assert not matches_patterns(read_pth(own + "import evil\n"), known.lines)


def test_the_line_of_this_environments_setuptools_is_known() -> None:
    (known,) = [row for row in runtime_tables.load_file_table().known if row.path == "distutils-precedence.pth"]
    installed = [Path(folder, known.path) for folder in sys.path if Path(folder, known.path).is_file()]
    assert all(matches_patterns(read_pth(file.read_text(encoding="utf-8")), known.lines) for file in installed)
