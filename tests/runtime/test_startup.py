"""What runs before a program is a fact: another sitecustomize, usercustomize or .pth hook is another environment."""

from __future__ import annotations

import builtins
import json
import math
import os
import site
import subprocess
import sys
from hashlib import sha256
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from zipfile import ZipFile

import pytest

from envlock.lock.fact_models import StartupFacts
from envlock.runtime.collectors import Snapshot
from envlock.runtime.facts import Unavailable
from envlock.runtime.host import Host
from envlock.runtime.judgement import judge
from envlock.runtime.startup import NAME_LIMIT, READ_LIMIT, collect_startup
from envlock.runtime.tables import table
from tests.locks import document
from tests.machines import machine, write

NOTHING: dict[str, Any] = {"known": [], "modules": {}, "pth": {}, "sitecustomize": None, "usercustomize": None}
PRECEDENCE = (
    "import os; var = 'SETUPTOOLS_USE_DISTUTILS'; enabled = os.environ.get(var, 'local') == 'local'; "
    "enabled and __import__('_distutils_hack').add_shim(); "
)


def digest(text: str) -> str:
    return "sha256:" + sha256(text.encode()).hexdigest()


def found(folder: Path, files: dict[str, str | bytes], name: str = "site-packages", **variables: str) -> dict[str, Any]:
    """Return what runs first where a site folder holds these files."""
    site_folder = write(folder / name, files)
    return collect_startup(machine(folder / "root", site=site_folder, environ=variables))


def test_only_the_lines_that_python_runs_count(tmp_path: Path) -> None:
    files = {
        "hook.pth": "# a comment\n/some/folder\nimport hook\nimport\ttab\n  import not_run\nimportant\n",
        "mine.pth": "/home/somebody/src\n",
        "b.txt": "import b\n",
    }
    here = found(tmp_path, dict(files))
    assert here == {**NOTHING, "pth": {"hook": digest("import hook\nimport\ttab")}}
    files["hook.pth"] = files["hook.pth"].replace("/some/folder", "/another/one")
    assert found(tmp_path, dict(files)) == here
    assert found(tmp_path, {"hook.pth": b"\xef\xbb\xbfimport hook\r\nimport\ttab"}) == here
    assert found(tmp_path, {"hook.pth": "import other\n"})["pth"] == {"hook": digest("import other")}


def test_where_an_environment_lies_changes_nothing(tmp_path: Path) -> None:
    lines = "import sys; sys.path.insert(0, '{}/lib'); exec(open('{}/x').read())\n"
    pairs = [
        found(tmp_path / each, {"x.pth": lines.format(tmp_path / each / "site-packages", sys.prefix)})
        for each in ("one", "two")
    ]
    expected = digest("import sys; sys.path.insert(0, 'SITE/lib'); exec(open('PREFIX/x').read())")
    assert pairs == [{**NOTHING, "pth": {"x": expected}}] * 2


def test_what_known_tools_leave_is_named_and_changes_nothing_else(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "_virtualenv.pth": "import _virtualenv",
        "distutils-precedence.pth": PRECEDENCE,
        "sitecustomize.py": "# apport\n" + "\n".join(table("startup")["sitecustomize.py"]) + "\n",
    }
    known = ["_virtualenv.pth", "distutils-precedence.pth", "sitecustomize.py"]
    assert found(tmp_path, files) == {**NOTHING, "known": known}
    here = found(
        tmp_path, {"_virtualenv.pth": "import _virtualenv\nimport evil\n", "sitecustomize.py": "try:\n    pass\n"}
    )
    assert here == {
        "known": ["distutils-precedence.pth"],
        "modules": {},
        "pth": {"_virtualenv": digest("import _virtualenv\nimport evil")},
        "sitecustomize": digest("try:\n    pass\n"),
        "usercustomize": None,
    }


def test_what_hides_the_module_of_a_known_hook_runs_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The policies let setuptools differ, and its hook is a usual one: another module of that name matched."""
    files: dict[str, str | bytes] = {
        "distutils-precedence.pth": PRECEDENCE,
        "_distutils_hack/__init__.py": "",
        "setuptools-65.dist-info/METADATA": "Metadata-Version: 2.1\nName: setuptools\nVersion: 65\n",
        "other.py": "",
    }
    site_folder, path = write(tmp_path / "site-packages", files), write(tmp_path / "path", {"other.py": "x = 1\n"})
    expected = {**NOTHING, "known": ["distutils-precedence.pth"]}
    beside = write(tmp_path / "script", {"_distutils_hack.py": "import math\n", "hack.py": ""})
    monkeypatch.chdir(beside)  # not on the path yet when hooks run
    for modules in ({}, {"_distutils_hack": digest("import math\n")}):
        host = machine(tmp_path / "root", site=site_folder, environ={"PYTHONPATH": str(path)})
        host.path = [str(beside), str(path), *host.path]
        assert collect_startup(host) == {**expected, "modules": modules}
        write(path, {"_distutils_hack.py": "import math\n"})


@pytest.mark.parametrize(
    ("module", "function", "other"),
    [(math, "sin", lambda x: x), (builtins, "sum", lambda x: x), (math, "sin", math.cos), (builtins, "sum", math.fsum)],
)
def test_a_function_that_was_replaced_is_named(
    module: ModuleType, function: str, other: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever made the code at the start do so: a variable, another file."""
    monkeypatch.setattr(module, function, other)
    facts = found(tmp_path, {})
    monkeypatch.undo()
    assert facts == {**NOTHING, "replaced": [f"{module.__name__}.{function}"]}
    assert found(tmp_path, {}) == NOTHING


def test_an_empty_sitecustomize_is_not_a_known_one(tmp_path: Path) -> None:
    assert found(tmp_path, {"sitecustomize.py": ""}) == {**NOTHING, "sitecustomize": digest("")}


@pytest.mark.parametrize("name", ["sitecustomize", "usercustomize"])
@pytest.mark.parametrize("ending", [".py", "/__init__.py", ".pyc", *EXTENSION_SUFFIXES])
def test_the_first_module_of_that_name_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, ending: str
) -> None:
    monkeypatch.setattr(site, "ENABLE_USER_SITE", True)
    first, second = write(tmp_path / "first", {}), write(tmp_path / "second", {name + ".py": "second = 1\n"})
    host = machine(tmp_path / "root", environ={"PYTHONPATH": str(first)})
    host.path = [str(first), str(second)]
    assert collect_startup(host)[name] == digest("second = 1\n")
    write(first, {name + ending: "first = 1\n"})
    assert collect_startup(Host(str(tmp_path / "root"), host.environ, host.path))[name] == digest("first = 1\n")


ADDED = 'site.addsitedir(__import__("os").fsdecode(b"{0}"))'


@pytest.mark.parametrize("line", [f"import site; {ADDED}", 'import site; site.addsitedir("{0}"); ' + ADDED])
def test_a_line_that_only_adds_folders_of_packages_is_no_code(line: str, tmp_path: Path) -> None:
    added = tmp_path / "added" / "site-packages"
    write(added, {"x.pth": "import x\n"})
    overlay = write(tmp_path / "overlay" / "site-packages", {"_uv_ephemeral_overlay.pth": line.format(added)})
    host = machine(tmp_path / "root")
    host.path = [str(overlay), str(added)]
    assert collect_startup(host) == {**NOTHING, "pth": {"x": digest("import x")}}
    host.path.remove(str(added))  # something has taken it off again
    assert list(collect_startup(Host(str(tmp_path / "root"), host.environ, host.path))["pth"]) == [
        "_uv_ephemeral_overlay"
    ]


@pytest.mark.parametrize(
    "line",
    [
        f"import site; {ADDED}; import evil",
        f"import site, evil; {ADDED}",
        'import site; site.addsitedir("{0}" + open("/evil").read())',
        'import site; site.addsitedir(evil("{0}"))',
    ],
)
def test_a_line_that_does_more_is_code(line: str, tmp_path: Path) -> None:
    site_folder = tmp_path / "site-packages"
    assert list(found(tmp_path, {"x.pth": line.format(site_folder)})["pth"]) == ["x"]


def test_a_module_that_takes_its_own_folder_off_the_path_counts(tmp_path: Path) -> None:
    own = "import os, sys\nsys.path.remove(os.path.dirname(__file__))\n"
    write(tmp_path / "tool", {"sitecustomize.py": own})
    environ = {"PYTHONPATH": str(tmp_path / "tool")}
    assert found(tmp_path, {}, **environ)["sitecustomize"] == digest(own)
    assert found(tmp_path / "else", {}) == NOTHING


def test_a_hook_that_imports_the_next_one_is_one_fact(tmp_path: Path) -> None:
    """As PyCharm's does."""
    own = "import sitecustomize\nimport helper\n"
    files: dict[str, str | bytes] = {"sitecustomize.py": own, "helper.py": "x = 1\n"}
    facts = {**NOTHING, "modules": {"helper": digest("x = 1\n")}, "sitecustomize": digest(own)}
    assert found(tmp_path, files) == facts


def test_of_files_of_one_name_the_one_that_python_imports_counts(tmp_path: Path) -> None:
    both = {"sitecustomize.py": "", "sitecustomize.pyc": "old"}
    assert found(tmp_path, {**both, f"sitecustomize{EXTENSION_SUFFIXES[0]}": "C"})["sitecustomize"] == digest("C")
    assert found(tmp_path / "else", dict(both))["sitecustomize"] == digest("")


@pytest.mark.parametrize(
    "member", ["sitecustomize.py", "sitecustomize/__init__.py", "sitecustomize.pyc", "lib/sitecustomize.py"]
)
def test_whatever_python_imports_from_a_zip_file_counts(tmp_path: Path, member: str) -> None:
    archive = tmp_path / "any.name"
    with ZipFile(archive, "w") as opened:
        opened.writestr(member, "zipped = 1\n")
    host = machine(tmp_path / "root")
    host.path = [str(archive / "lib") if member.startswith("lib/") else str(archive)]
    assert collect_startup(host)["sitecustomize"] == digest("zipped = 1\n")


def test_a_zip_file_on_the_import_path_is_looked_into(tmp_path: Path) -> None:
    archive, empty, broken = (tmp_path / each for each in ("full.zip", "empty.zip", "broken.zip"))
    for file, members in ((archive, ["sitecustomize.py"]), (empty, ["other.py"])):
        with ZipFile(file, "w") as opened:
            for member in members:
                opened.writestr(member, "zipped = 1\n")
    broken.write_bytes(b"PK")
    host = machine(tmp_path / "root")
    host.path = [str(tmp_path / "none.zip"), str(broken), str(empty), str(archive)]
    assert collect_startup(host)["sitecustomize"] == digest("zipped = 1\n")


def test_usercustomize_counts_only_where_python_imports_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "ENABLE_USER_SITE", False)
    assert found(tmp_path, {"usercustomize.py": "x = 1\n"}) == NOTHING


def test_without_site_nothing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "ENABLE_USER_SITE", True)
    files: dict[str, str | bytes] = {"x.pth": "import x\n", "sitecustomize.py": "", "usercustomize.py": ""}
    assert found(tmp_path, files)["pth"] == {"x": digest("import x")}
    monkeypatch.setattr(sys, "flags", SimpleNamespace(no_site=1))
    assert found(tmp_path, files) == NOTHING


def test_pth_files_of_other_folders_are_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(tmp_path, {"x.pth": "import x\n"}, "lib") == NOTHING
    folder = str(tmp_path / "site-packages")
    assert found(tmp_path, {"x.pth": "import x\n"}, PYTHONPATH=folder) == NOTHING
    monkeypatch.setattr(site, "getsitepackages", lambda: [folder])
    assert found(tmp_path, {"x.pth": "import x\n"}, PYTHONPATH=folder)["pth"] == {"x": digest("import x")}


def test_a_file_that_cannot_be_read_is_no_evidence(tmp_path: Path) -> None:
    (tmp_path / "site-packages" / "x.pth").mkdir(parents=True)
    assert found(tmp_path, {}) == {
        **NOTHING,
        "pth": {"x": Unavailable("a .pth file cannot be read: Is a directory", "unreadable")},
    }


def test_of_a_long_file_the_first_mebibyte_is_read(tmp_path: Path) -> None:
    start = "x" * READ_LIMIT
    assert found(tmp_path, {"sitecustomize.py": start + "yy"})["sitecustomize"] == digest(start + " and more")


def test_names_fit_a_lockfile_and_two_files_of_one_name_count_both(tmp_path: Path) -> None:
    long = "é" + "n" * 120
    files: dict[str, str | bytes] = {"a.b.pth": "import a\n", "a-b.pth": "import b\n", f"{long}.pth": "import c\n"}
    here = found(tmp_path, files)
    both = digest(f"{digest('import b')} {digest('import a')}")
    assert here["pth"] == {"a-b": both, "-" + "n" * (NAME_LIMIT - 1): digest("import c")}
    StartupFacts.model_validate(here)
    assert found(tmp_path / "other", {".pth": "import x\n"})["pth"] == {"-": digest("import x")}


@pytest.mark.parametrize("first", [".b", "-b"])
def test_of_two_files_of_one_name_one_that_cannot_be_read_tells(tmp_path: Path, first: str) -> None:
    (tmp_path / "site-packages" / f"a{first}.pth").mkdir(parents=True)
    other = {".b": "-b", "-b": ".b"}[first]
    found_here = found(tmp_path, {f"a{other}.pth": "import a\n"})["pth"]["a-b"]
    assert found_here == Unavailable("a .pth file cannot be read: Is a directory", "unreadable")


def lock_of(first: Any, **project: Any) -> dict[str, Any]:
    return document(facts=facts_of(first), unavailable={}, **({"project": project} if project else {}))


def facts_of(first: Any) -> dict[str, Any]:
    python = {"version": "3.11.7", **({} if first is None else {"startup": first})}
    return {"python": python, "packages": {"h5py": {"version": "3.1"}}, "tensorflow": None}


ONE, OTHER = digest("one"), digest("other")


@pytest.mark.parametrize("policy", ["strict", "bits", "same-arch", "functional"])
@pytest.mark.parametrize("name", ["sitecustomize", "usercustomize"])
def test_another_module_is_a_difference(name: str, policy: str) -> None:
    report = judge(lock_of({**NOTHING, name: ONE}), Snapshot(facts_of({**NOTHING, name: OTHER}), {}), policy)
    message = f"python.startup.{name}: locked {ONE}, live {OTHER}"
    severity = "info" if policy == "functional" else "error"
    assert [(each.severity, each.message) for each in report.findings] == [(severity, message)]


def test_a_new_hook_says_which_file_what_was_locked_and_what_to_do() -> None:
    report = judge(lock_of(NOTHING), Snapshot(facts_of({**NOTHING, "pth": {"evil": ONE}}), {}))
    (finding,) = report.findings
    assert finding.message == f"python.startup.pth.evil: locked absent, live {ONE}"
    assert finding.why == (
        "Python runs the import lines of the .pth file of this name in site-packages before the first line of a "
        "program."
    )
    assert finding.fix == (
        "Put back the .pth file of this name in site-packages as it was locked, or remove it where none was locked; if "
        "it is to stay, capture again."
    )


def test_an_older_lockfile_and_known_files_say_nothing() -> None:
    here = Snapshot(facts_of({**NOTHING, "known": ["_virtualenv.pth"], "pth": {"x": ONE}, "sitecustomize": ONE}), {})
    for policy in ("strict", "bits", "same-arch", "functional"):
        assert judge(lock_of(None), here, policy).findings == []
    assert judge(lock_of({**NOTHING, "pth": {"x": ONE}, "sitecustomize": ONE}), here).match


def test_every_known_line_is_one_that_the_deep_check_knows() -> None:
    import re

    rows = [row for row in table("files")["known"] if row["path"].rpartition("/")[2] in table("startup")]
    wrong = [
        line
        for row in rows
        for line in table("startup")[row["path"].rpartition("/")[2]]
        if not any(re.fullmatch(pattern, line) for pattern in row["lines"])
    ]
    assert (len(rows), wrong) == (len(table("startup")), [])


PROGRAM = """
import json
from envlock.runtime.host import Host
from envlock.runtime.startup import collect_startup
print(json.dumps([collect_startup(Host())["sitecustomize"], hasattr(__builtins__, "ran")]))
"""


@pytest.mark.processes
def test_a_real_interpreter_runs_what_is_named(tmp_path: Path) -> None:
    write(tmp_path, {"sitecustomize.py": "import builtins\nbuiltins.ran = True\n"})
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(Path.cwd())])}

    def ask(*options: str) -> Any:
        command = [sys.executable, *options, "-c", PROGRAM]
        return json.loads(subprocess.run(command, env=environ, capture_output=True, check=True, text=True).stdout)

    assert ask() == [digest("import builtins\nbuiltins.ran = True\n"), True]
    assert ask("-S") == [None, False]
