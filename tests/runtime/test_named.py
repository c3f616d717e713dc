"""What variables lead to is held in place of their text, in both directions."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from envlock.lock.creation import capture
from envlock.lock.document import dump
from envlock.runtime.collectors import take_snapshot, tensorflow
from envlock.runtime.collectors.named_files import collect
from envlock.runtime.host import Host
from envlock.runtime.judgement import judge
from envlock.runtime.lockfile import parse
from envlock.runtime.report import Report
from envlock.runtime.startup import collect_startup
from envlock.runtime.tables import table

LIBM = Path("/lib/x86_64-linux-gnu/libm.so.6")
needs_libm = pytest.mark.skipif(not LIBM.exists(), reason="no glibc of Debian for x86-64 here")


def look(name: str, value: str, root: str = "/") -> object:
    environ = {name: value}
    return collect(Host(root, environ=environ, started_with=environ))[name]


def verify(locked: dict[str, str], live: dict[str, str]) -> Report:
    """Return the verdict under other variables than those of the lockfile."""
    first, second = (take_snapshot(Host(environ=each, started_with=each)) for each in (locked, live))
    return judge(parse(dump(capture(live=first)), "x.lock"), second)


def where(report: Report) -> list[str]:
    return [str(each.where) for each in report.findings if each.severity in report.breaking]


def named() -> list[str]:
    return [row["name"] for row in table("environ") if "names" in row]


def test_nothing_is_named_where_nothing_is_set() -> None:
    found = collect(Host(environ={}, started_with={}))
    assert found == dict.fromkeys(named())


@pytest.mark.parametrize("name", sorted(set(named()) - {"LD_LIBRARY_PATH", "GLIBC_TUNABLES"}))
def test_another_file_under_one_name_is_refused_and_the_same_under_another_is_not(name: str, tmp_path: Path) -> None:
    one, two = tmp_path / "one.so", tmp_path / "two.so"
    one.write_text("--xla_cpu_max_isa=AVX2\n", encoding="utf-8")
    shutil.copy(one, two)
    document = parse(
        dump(capture(live=take_snapshot(Host(environ={name: str(one)}, started_with={name: str(one)})))), "x"
    )

    def judged(path: Path) -> list[str]:
        environ = {name: str(path)}
        return where(judge(document, take_snapshot(Host(environ=environ, started_with=environ))))

    assert judged(two) == []
    one.write_text("--xla_cpu_max_isa=SSE4_2\n", encoding="utf-8")
    assert judged(one) == [f"named.{name}"]
    assert judged(tmp_path / "none.so") == [f"environ.{name}"]


def test_flags_are_the_same_in_a_file_and_in_the_variable(tmp_path: Path) -> None:
    (tmp_path / "flags").write_text("--xla_cpu_max_isa=AVX2\n--xla_secret=1", encoding="utf-8")
    inline = look("XLA_FLAGS", "--xla_cpu_max_isa=AVX2 --xla_secret=1")
    assert isinstance(inline, list)
    assert inline[0] == "--xla_cpu_max_isa=AVX2"
    assert inline[1].startswith("sha256:")
    assert look("XLA_FLAGS", str(tmp_path / "flags")) == inline


@needs_libm
def test_a_search_path_is_held_by_what_it_puts_in_front(tmp_path: Path) -> None:
    folder = tmp_path / "lib"
    folder.mkdir()
    assert look("LD_LIBRARY_PATH", str(folder)) is None
    shutil.copy(LIBM, folder)
    assert look("LD_LIBRARY_PATH", str(folder)) is None
    assert look("LD_LIBRARY_PATH", str(LIBM.parent)) is None
    data = bytearray(LIBM.read_bytes())
    data[-1] ^= 1
    (folder / LIBM.name).write_bytes(data)
    assert str(look("LD_LIBRARY_PATH", str(folder))).startswith("['libm.so.6 sha256:")
    assert where(verify({}, {"LD_LIBRARY_PATH": str(folder)})) == ["environ.LD_LIBRARY_PATH"]
    (folder / LIBM.name).rename(folder / "libunrelated.so.6")
    assert look("LD_LIBRARY_PATH", str(folder)) is None
    assert where(verify({}, {"LD_LIBRARY_PATH": str(folder)})) == []


@needs_libm
def test_a_library_for_this_processor_goes_first(tmp_path: Path) -> None:
    folder = tmp_path / "glibc-hwcaps" / "x86-64-v2"
    folder.mkdir(parents=True)
    (folder / LIBM.name).write_bytes(LIBM.read_bytes() + b"x")
    assert str(look("LD_LIBRARY_PATH", str(tmp_path))).startswith("['libm.so.6 sha256:")


def test_only_tunables_that_choose_code_count() -> None:
    assert look("GLIBC_TUNABLES", "glibc.malloc.arena_max=1:glibc.pthread.rseq=0") is None
    assert look("GLIBC_TUNABLES", "glibc.malloc.perturb=85:glibc.malloc.arena_max=1") == ["glibc.malloc.perturb=85"]
    assert where(verify({}, {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2"})) == ["environ.GLIBC_TUNABLES"]
    assert where(verify({}, {"GLIBC_TUNABLES": "glibc.rtld.nns=8"})) == []


def test_what_the_system_preloads_counts_as_preloaded(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/ld.so.preload").write_text("# comment\n/lib/p.so # why\n", encoding="utf-8")
    assert look("LD_PRELOAD", "", str(tmp_path)) is None
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/p.so").write_text("x", encoding="utf-8")
    found = look("LD_PRELOAD", "", str(tmp_path))
    assert str(found).startswith("['sha256:")
    (tmp_path / "etc/ld.so.preload").unlink()
    assert look("LD_PRELOAD", "/lib/p.so", str(tmp_path)) == found


def test_an_override_of_a_variable_is_one_of_what_it_leads_to(tmp_path: Path) -> None:
    file = tmp_path / "one"
    file.write_text("x", encoding="utf-8")
    environ = {"NCCL_CONF_FILE": str(file)}
    document = parse(dump(capture(live=take_snapshot(Host(environ=environ, started_with=environ)))), "x")
    document["policy"]["overrides"] = {"environ.NCCL_CONF_FILE": "ignore"}
    file.write_text("y", encoding="utf-8")
    assert where(judge(document, take_snapshot(Host(environ=environ, started_with=environ)))) == []


def test_a_lockfile_without_what_variables_lead_to_is_held_by_their_text(tmp_path: Path) -> None:
    file = tmp_path / "one"
    file.write_text("x", encoding="utf-8")
    environ = {"NCCL_CONF_FILE": str(file)}
    live = take_snapshot(Host(environ=environ, started_with=environ))
    document = parse(dump(capture(live=live)), "x")
    del document["facts"]["named"]
    report = judge(document, live)
    assert report.match
    assert [each.message for each in report.findings] == ["1 fact is not held by this lockfile: named"]
    assert report.headline.endswith(", but does not hold all that this envlock looks at")
    environ["NCCL_CONF_FILE"] += "x"
    other = take_snapshot(Host(environ=environ, started_with=environ))
    assert where(judge(document, other)) == ["environ.NCCL_CONF_FILE"]


# --- effects


def test_a_seed_that_is_written_in_another_way_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("envlock.runtime.collectors.python._hash_text", lambda host: 7)
    assert where(verify({"PYTHONHASHSEED": "0"}, {"PYTHONHASHSEED": "00"})) == []


def test_a_seed_that_python_ignores_is_refused_by_its_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    hashes = iter([7, 8])
    monkeypatch.setattr("envlock.runtime.collectors.python._hash_text", lambda host: next(hashes))
    assert where(verify({"PYTHONHASHSEED": "0"}, {"PYTHONHASHSEED": "0"})) == ["python.hash"]


def test_a_personality_of_32_bits_is_no_other_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    name = os.uname()
    monkeypatch.setattr(os, "uname", lambda: os.uname_result((*name[:4], "i686")))
    assert Host().uname()[2] == "x86_64"


# --- what is loaded by convention, and at the start


def site(tmp_path: Path) -> Path:
    folder = tmp_path / "lib/python3.11/site-packages"
    (folder / "tensorflow").mkdir(parents=True)
    (folder / "tensorflow/__init__.py").touch()
    return folder


def collect_plugins(folder: Path, **environ: str) -> object:
    found = tensorflow.collect(Host(path=[str(folder)], environ={"HOME": str(folder), **environ}))
    assert isinstance(found, dict)
    return found["plugins"]


def test_a_plug_in_is_held_by_its_content_wherever_tensorflow_looks(tmp_path: Path) -> None:
    folder = site(tmp_path)
    plugins = folder / "tensorflow-plugins"
    assert collect_plugins(folder) == []
    plugins.mkdir()
    assert collect_plugins(folder) == []
    (plugins / "libp.so").write_text("x", encoding="utf-8")
    one = collect_plugins(folder)
    (plugins / "libp.so").write_text("y", encoding="utf-8")
    assert one != collect_plugins(folder) != []
    user = tmp_path / f"user/lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    user.mkdir(parents=True)
    plugins.rename(user / plugins.name)
    assert collect_plugins(folder) == []
    assert str(collect_plugins(folder, PYTHONUSERBASE=str(tmp_path / "user"))).startswith("['sha256:")


def modules(folder: Path, line: str) -> dict[str, object]:
    (folder / "zz.pth").write_text(line, encoding="utf-8")
    found: dict[str, object] = collect_startup(Host(path=[str(folder)]))["modules"]
    return found


def test_a_module_behind_a_hook_is_held_and_so_is_what_it_imports(tmp_path: Path) -> None:
    folder = site(tmp_path)
    (folder / "hook.py").write_text("import os\nfrom part import thing\n", encoding="utf-8")
    (folder / "part").mkdir()
    (folder / "part/__init__.py").touch()
    (folder / "part/thing.py").write_text("from . import other\n", encoding="utf-8")
    (folder / "part/other.py").write_text("x = 1\n", encoding="utf-8")
    found = modules(folder, "import sys, hook; hook.start()\n")
    assert sorted(found) == ["hook", "part", "part-other", "part-thing"]
    (folder / "part/other.py").write_text("x = 2\n", encoding="utf-8")
    again = modules(folder, "import sys, hook; hook.start()\n")
    assert {name for name in found if found[name] != again[name]} == {"part-other"}


def test_a_hook_that_imports_installed_packages_adds_nothing(tmp_path: Path) -> None:
    folder = site(tmp_path)
    (folder / "held.py").touch()
    (folder / "held-1.0.dist-info").mkdir()
    (folder / "held-1.0.dist-info/METADATA").write_text("Name: held\nVersion: 1.0\n", encoding="utf-8")
    (folder / "other.py").touch()
    (folder / "package-1.0.dist-info").mkdir()
    (folder / "package-1.0.dist-info/RECORD").write_text("other.py,,\n", encoding="utf-8")
    assert modules(folder, "import held, other, json\n") == {}


def test_a_module_that_hides_another_since_the_capture_is_refused_by_name() -> None:
    live = take_snapshot(Host())
    document = parse(dump(capture(live=live)), "x")
    live.facts["python"]["shadows"] = {"random": "sha256:" + "0" * 64}
    live.facts["python"]["startup"]["modules"] = {"hook": "sha256:" + "0" * 64}
    assert where(judge(document, live)) == ["python.shadows.random", "python.startup.modules.hook"]
    del document["facts"]["python"]["shadows"]
    del document["facts"]["python"]["startup"]["modules"]
    assert [each.rule for each in judge(document, live).findings] == ["not-held"]
