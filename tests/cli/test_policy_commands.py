"""`envlock explain` and `ignore`, and what a project cannot weaken."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest
import tomllib

from tests.conftest import Command
from tests.machines import distribution

DETERMINISTIC = {"TF_CUDNN_DETERMINISTIC": "1"}
PATH = "environ.TF_CUDNN_DETERMINISTIC"


def test_one_fact_is_explained(envlock: Command) -> None:
    assert envlock("capture", "-q").returncode == 0
    done = envlock("explain", PATH, environ=DETERMINISTIC)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[:5] == [
        PATH,
        "  locked: unset",
        "  live: 1",
        "  rule in force: exact (policy strict)",
        "  rules: strict exact, bits exact, same-arch exact, functional ignore",
    ]
    (found,) = json.loads(envlock("explain", PATH, "--format", "json", environ=DETERMINISTIC).stdout)
    assert (found["locked"], found["live"], found["rule"]) == (None, "1", "exact")
    assert found["source"].startswith("fwr13y: https://")


def test_a_remedy_is_explained_as_a_refusal_prints_it(envlock: Command) -> None:
    """With the locked value; as VALUE, where there is none."""
    assert "Give the process VALUE CPUs, as locked" in envlock("explain", "cpu.affinity_count").stdout
    assert envlock("capture", "-q").returncode == 0
    assert "{locked}" not in envlock("explain", "cpu.*").stdout
    refused = envlock("verify", environ=DETERMINISTIC).stdout
    (fix,) = [line.strip() for line in refused.splitlines() if line.strip().startswith("fix: ")]
    assert fix in envlock("explain", PATH, environ=DETERMINISTIC).stdout


def test_a_node_explains_all_below_it_without_a_lock(envlock: Command) -> None:
    found = json.loads(envlock("explain", "packages.pip", "--format", "json").stdout)
    assert {each["path"].rpartition(".")[2] for each in found} == {"installer", "origin", "version", "wheel_tags"}
    assert {(each["rule"], "locked" in each) for each in found} == {("ignore", False)}


def test_what_is_loaded_is_not_called_absent_where_nobody_looked(envlock: Command, tmp_path: Path) -> None:
    assert envlock("capture", "-q").returncode == 0
    lock = json.loads((tmp_path / "envlock.lock").read_bytes())
    lock["facts"]["loaded"] = {"libm": ["libm.so.6 1"]}
    lock["facts"]["system"]["os"] = "other"
    (tmp_path / "envlock.lock").write_text(json.dumps(lock), encoding="utf-8")
    told = envlock("explain", "loaded.libm").stdout
    assert "  live: unknown (only `envlock verify` looks at what is loaded)\n" in told
    differing = json.loads(envlock("explain", "system", "--format", "json").stdout)
    assert [each["path"] for each in differing] == ["system.os"]


@pytest.mark.parametrize("command", ["explain", "ignore"])
def test_a_path_that_no_fact_can_have(command: str, envlock: Command) -> None:
    words = ["--reason", "x"] if command == "ignore" else []
    done = envlock(command, "packges.pip.**", *words)
    message = "error: no fact matches `packges.pip.**`\nhint: did you mean `packages.pip.**`?\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)


def test_what_may_differ_is_listed_with_its_reason(envlock: Command) -> None:
    assert envlock("capture", "-q").returncode == 0
    text = envlock("explain").stdout
    assert "  ignore: packages.*.installer\n      why: The program that unpacked a wheel" in text
    groups = json.loads(envlock("explain", "--format", "json").stdout)
    assert {each["rule"] for each in groups} >= {"ignore"}


def test_ignore_writes_the_rule_and_its_reason_and_keeps_the_rest(envlock: Command, tmp_path: Path) -> None:
    settings = tmp_path / "pyproject.toml"
    settings.write_text(
        '# ours\n[project]\nname = "x"  # a name\n[tool.envlock]\npolicy = "same-arch"\n', encoding="utf-8"
    )
    assert envlock("capture", "-q").returncode == 0
    assert envlock("verify", environ=DETERMINISTIC).returncode == 1
    done = envlock("ignore", PATH, "--reason", "no GPU here")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f'wrote {settings}: "{PATH}" = "ignore"\nwrote envlock.lock: policy same-arch\n'
    text = settings.read_text(encoding="utf-8")
    assert text.startswith('# ours\n[project]\nname = "x"  # a name\n')
    assert f'"{PATH}" = "ignore" # no GPU here\n' in text
    assert tomllib.loads(text)["tool"]["envlock"]["policy"] == {"name": "same-arch", PATH: "ignore"}
    verified = envlock("verify", environ=DETERMINISTIC)
    more = " (1 difference allowed, `envlock verify -v` lists all)"
    said = f"matches under policy same-arch, with 1 override{more}\n"
    assert (verified.returncode, verified.stdout) == (0, said)
    assert envlock("capture", "--check").returncode == 0


def test_ignore_keeps_line_ends_and_tables_out_of_order(envlock: Command, tmp_path: Path) -> None:
    settings = tmp_path / "pyproject.toml"
    text = (
        '[tool.ruff]\r\nline-length = 100 # ours\r\n\r\n[project]\r\nname = "x"\r\n\r\n[tool.mypy]\r\nstrict = true\r\n'
    )
    settings.write_bytes(text.encode())
    for number, path in enumerate(("cpu.quota", "cpu.model_name"), 1):
        assert envlock("ignore", path, "--reason", "x").returncode == 0
        written = settings.read_bytes().decode()
        assert "\n" not in written.replace("\r\n", "")
        assert [line for line in text.split("\r\n") if line not in written.split("\r\n")] == []
        assert len(tomllib.loads(written.replace("\r\n", "\n"))["tool"]["envlock"]["policy"]) == number


def test_a_reason_that_cannot_be_kept_is_refused(envlock: Command, tmp_path: Path) -> None:
    settings = tmp_path / "pyproject.toml"
    settings.write_text('tool.envlock.policy = {name = "strict"}\n', encoding="utf-8")
    done = envlock("ignore", "cpu.quota", "--reason", "x")
    message = (
        f"error: an inline table in {settings} cannot hold the reason\nhint: write it as `[tool.envlock.policy]`\n"
    )
    assert (done.returncode, done.stderr) == (2, message)
    assert settings.read_text(encoding="utf-8") == 'tool.envlock.policy = {name = "strict"}\n'


def test_ignore_without_a_lock_or_a_project_begins_one(envlock: Command, tmp_path: Path) -> None:
    assert envlock("ignore", "cpu.quota", "--reason", "a quota").returncode == 0
    assert (tmp_path / "pyproject.toml").read_text(encoding="utf-8").endswith('"cpu.quota" = "ignore" # a quota\n')
    assert not (tmp_path / "envlock.lock").exists()


def test_the_locks_own_rules_cannot_weaken_what_is_asked_for(envlock: Command, tmp_path: Path) -> None:
    assert envlock("ignore", PATH, "--reason", "x").returncode == 0
    assert envlock("capture", "-q").returncode == 0
    forbidden = {**DETERMINISTIC, "ENVLOCK_NO_OVERRIDES": "1"}
    assert envlock("verify", environ=DETERMINISTIC).returncode == 0
    assert envlock("verify", "-p", "strict", "--no-overrides", environ=DETERMINISTIC).returncode == 1
    assert envlock("verify", environ=forbidden).returncode == 1
    for environ, code in ((DETERMINISTIC, 0), (forbidden, 1)):
        argv = [sys.executable, "-c", "import envlock; envlock.assert_locked()"]
        done = subprocess.run(argv, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr


def test_a_mistyped_pattern_in_the_settings_is_an_error(envlock: Command, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.envlock.policy]\n"packges.pip.**" = "ignore"\n', encoding="utf-8")
    done = envlock("capture")
    assert (done.returncode, done.stderr) == (
        2,
        f"error: [tool.envlock] in {tmp_path}/pyproject.toml: no fact matches `packges.pip.**`\n"
        "hint: did you mean `packages.pip.**`?\n",
    )


def test_what_changes_no_bits_does_not_make_the_gate_red(envlock: Command, tmp_path: Path) -> None:
    """pip upgraded, ruff and a notebook kernel added: reported, and let through by strict."""
    site = tmp_path / "site"
    distribution(site, "pip", "23.2.1", {})
    environ = {"PYTHONPATH": str(site)}
    assert envlock("capture", "-q", environ=environ).returncode == 0
    for name in ("pip-23.2.1.dist-info",):
        (site / name).rename(site / "pip-26.0.dist-info")
    (site / "pip-26.0.dist-info" / "METADATA").write_text("Name: pip\nVersion: 26.0\n", encoding="utf-8")
    for name in ("ruff", "ipykernel", "jupyter_client", "psutil"):
        distribution(site, name, "1.0", {})
    done = envlock("verify", "-v", environ=environ)
    assert (done.returncode, done.stdout.partition("\n")[0]) == (0, "matches under policy strict")
    for name in ("pip", "ruff", "ipykernel", "jupyter-client", "psutil"):
        assert f"packages.{name}" in done.stdout
    distribution(site, "scipy", "1.0", {})
    assert envlock("verify", environ=environ).returncode == 1


# --- init


def test_init_adds_settings_once_and_prints_snippets(envlock: Command, tmp_path: Path) -> None:
    settings = tmp_path / "pyproject.toml"
    settings.write_text('[project]\nname = "x" # ours\n', encoding="utf-8")
    done = envlock("init", "-p", "bits")
    assert (done.returncode, done.stderr.partition("\n")[0]) == (
        0,
        f"wrote {settings}: [tool.envlock] with policy bits",
    )
    text = settings.read_text(encoding="utf-8")
    assert text.startswith('[project]\nname = "x" # ours\n')
    assert tomllib.loads(text)["tool"] == {"envlock": {"policy": "bits"}}
    again = envlock("init")
    assert (again.returncode, again.stderr) == (0, "pyproject.toml has [tool.envlock] already\n")
    assert settings.read_text(encoding="utf-8") == text
    assert envlock("capture", "-q").returncode == 0
    assert json.loads((tmp_path / "envlock.lock").read_bytes())["policy"]["name"] == "bits"


# --- the name of a cause


def upgrade_numpy(site: Path, version: str) -> None:
    for folder in site.glob("numpy*.dist-info"):
        shutil.rmtree(folder)
    distribution(site, "numpy", version, {})
    (site / "numpy").mkdir(exist_ok=True)
    for name in ("__init__", "version"):
        (site / "numpy" / f"{name}.py").write_text(f'version = "{version}"\n', encoding="utf-8")


def test_an_upgrade_is_one_finding_that_is_explained_and_accepted_by_its_name(envlock: Command, tmp_path: Path) -> None:
    """As a real upgrade does it: the package, the version of the module and, in a wheel, its BLAS."""
    site = tmp_path / "site"
    environ = {"PYTHONPATH": str(site)}
    upgrade_numpy(site, "1.26.4")
    distribution(site, "scipy", "1.0", {})
    assert envlock("capture", "-q", environ=environ).returncode == 0
    upgrade_numpy(site, "1.25.2")
    said = envlock("verify", environ=environ).stdout.splitlines()
    assert said[:2] == [
        "does not match under policy strict: 1 change (2 facts)",
        "  x numpy 1.26.4 -> 1.25.2 (2 facts)",
    ]
    assert said[-1] == "to get the locked packages: `envlock sync`; for other ways: `envlock explain numpy`"
    found = json.loads(envlock("verify", "-f", "json", environ=environ).stdout)["findings"]
    assert {each["where"]["fact"]: each["cause"] for each in found} == {
        "numpy.version": "numpy",
        "packages.numpy.version": "numpy",
    }
    explained = envlock("explain", "numpy", environ=environ).stdout.splitlines()
    assert [line for line in explained if not line.startswith(" ")] == [
        "numpy.version",
        "packages.numpy.version",
        "to accept what differs: `envlock capture --only numpy`; with all else: `envlock capture`",
    ]
    accepted = envlock("capture", "--only", "numpy", environ=environ)
    assert (accepted.returncode, "warning" in accepted.stderr) == (0, False), "what is named is meant"
    assert envlock("verify", environ=environ).stdout == "matches under policy strict\n"


def test_a_package_that_was_added_removed_or_hidden_is_explained_as_a_refusal_says_it(
    envlock: Command, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    environ = {"PYTHONPATH": str(site)}
    distribution(site, "scipy", "1.0", {})
    assert envlock("capture", "-q", environ=environ).returncode == 0
    assert "packages.scipy.version\n  locked: 1.0\n  live: 1.0\n" in envlock("explain", "scipy", environ=environ).stdout
    (site / "scipy-1.0.dist-info").rename(site / "pandas-1.0.dist-info")
    (site / "pandas-1.0.dist-info" / "METADATA").write_text("Name: pandas\nVersion: 1.0\n", encoding="utf-8")
    distribution(site, "ipykernel", "7.0", {})
    refused = envlock("verify", environ=environ).stdout
    for name, values in {"pandas": ("absent", "1.0"), "scipy": ("1.0", "absent")}.items():
        assert f"x packages.{name}: locked {values[0]}, live {values[1]}\n" in refused
        lines = envlock("explain", f"packages.{name}", environ=environ).stdout.splitlines()
        assert lines[:3] == [f"packages.{name}", f"  locked: {values[0]}", f"  live: {values[1]}"]
        (fix,) = [line for line in lines if line.startswith("  fix: ")]
        assert fix.strip() in refused
        assert lines[-2].startswith(f"to accept what differs: `envlock capture --only packages.{name}`")
    told = envlock("explain", "packages.ipykernel", environ=environ).stdout
    assert "  rule in force: ignore (policy strict)\n" in told, "as it is allowed by verify"
    assert "to accept" not in told


def test_printed_commands_name_a_lockfile_that_they_would_not_find(envlock: Command, tmp_path: Path) -> None:
    """Obeyed: each of them is about the lockfile that refused, and not the nearest one or none."""
    site = tmp_path / "site"
    environ = {"PYTHONPATH": str(site)}
    (tmp_path / "my locks").mkdir()
    named = "'my locks/envlock.lock'"
    distribution(site, "scipy", "1.0", {})
    assert envlock("capture", "-q", "-o", "my locks/envlock.lock", environ=environ).returncode == 0
    (site / "scipy-1.0.dist-info").rename(site / "scipy-2.0.dist-info")
    (site / "scipy-2.0.dist-info" / "METADATA").write_text("Name: scipy\nVersion: 2.0\n", encoding="utf-8")
    assert envlock("capture", "-q", environ=environ).returncode == 0
    refused = envlock("verify", "my locks/envlock.lock", environ=environ).stdout
    assert f"fix: Run `envlock sync {named}` for a new environment" in refused
    ways, explain = refused.splitlines()[-1].split("; for other ways: ")
    assert ways == f"to get the locked packages: `envlock sync {named}`"
    told = envlock(*shlex.split(explain.strip("`"))[1:], environ=environ).stdout.splitlines()
    accept = next(line for line in told if line.startswith("to accept")).split("`")[1]
    done = envlock(*shlex.split(accept)[1:], environ=environ)
    assert "packages.scipy.version: was 1.0, now 2.0" in done.stderr
    assert envlock("verify", "my locks/envlock.lock", environ=environ).returncode == 0
    script = tmp_path / "train.py"
    script.write_text("import envlock\nenvlock.assert_locked()\n", encoding="utf-8")
    words = [sys.executable, str(script)]
    done = subprocess.run(words, cwd=tmp_path / "my locks", capture_output=True, text=True, check=False)
    assert f"`envlock sync {tmp_path}/envlock.lock`" in done.stderr
    # The settings decide which one a command takes, and not what lies nearest.
    (tmp_path / "pyproject.toml").write_text('[tool.envlock]\nlock = "my locks/envlock.lock"\n', encoding="utf-8")
    (site / "scipy-2.0.dist-info").rename(site / "gone")
    for words, named in ([], "sync"), (["envlock.lock"], "sync envlock.lock"):
        last = envlock("verify", *words, environ=environ).stdout.splitlines()[-1]
        assert f"`envlock {named}`" in last


def test_printed_commands_name_the_environment_that_was_examined(envlock: Command, tmp_path: Path) -> None:
    """Obeyed: each of them is about the environment that `--python` named, and not the active one."""
    for name in "other", ".venv":
        venv.create(tmp_path / name)
    (other,) = (tmp_path / "other").glob("lib/python3*/site-packages")
    (nearest,) = (tmp_path / ".venv").glob("lib/python3*/site-packages")
    for site in other, nearest:
        distribution(site, "scipy", "1.0", {})
    environ = {"VIRTUAL_ENV": ""}
    words = ("-q", "--without-tensorflow", "--python", "other")
    assert envlock("capture", *words, environ=environ).returncode == 0
    (other / "scipy-1.0.dist-info").rename(other / "scipy-2.0.dist-info")
    (other / "scipy-2.0.dist-info" / "METADATA").write_text("Name: scipy\nVersion: 2.0\n", encoding="utf-8")
    assert envlock("verify", environ=environ).returncode == 0
    refused = envlock("verify", "--python", "other", environ=environ).stdout
    assert "`envlock sync --python other/bin/python` to change this one" in refused
    explain = refused.splitlines()[-1].partition("; for other ways: ")[2]
    assert explain == "`envlock explain --python other/bin/python packages.scipy.version`"
    by_variable = envlock("verify", environ={**environ, "ENVLOCK_PYTHON": "other"}).stdout
    assert by_variable.splitlines()[-1].endswith("`envlock explain packages.scipy.version`")
    told = envlock(*shlex.split(explain.strip("`"))[1:], environ=environ).stdout.splitlines()
    (accept,) = (line.split("`")[1] for line in told if "--only" in line)
    assert accept == "envlock capture --python other/bin/python --only packages.scipy.version"
    assert envlock(*shlex.split(accept)[1:], environ=environ).returncode == 0
    assert envlock("verify", "--python", "other", environ=environ).returncode == 0
    # The nearest one needs no name, but `sync` would make a new one.
    refused = envlock("verify", environ=environ).stdout
    assert "`envlock sync --python .venv/bin/python` to change this one" in refused
    assert refused.splitlines()[-1].endswith("`envlock explain packages.scipy.version`")


def test_a_name_is_ignored_as_the_facts_that_it_stands_for(envlock: Command, tmp_path: Path) -> None:
    site = tmp_path / "site"
    environ = {"PYTHONPATH": str(site)}
    upgrade_numpy(site, "1.26.4")
    distribution(site, "scipy", "1.0", {"WHEEL": "Tag: py3-none-any\n"})
    assert envlock("capture", "-q", environ=environ).returncode == 0
    shutil.rmtree(site / "scipy-1.0.dist-info")
    distribution(site, "scipy", "2.0", {"WHEEL": "Tag: cp311-cp311-linux_x86_64\n"})
    assert "  x scipy 1.0 -> 2.0 (2 facts)\n" in envlock("verify", environ=environ).stdout
    told = envlock("explain", "scipy", environ=environ).stdout
    assert told.endswith("to let it differ: `envlock ignore scipy --reason TEXT`\n")
    done = envlock("ignore", "scipy", "--reason", "unused")
    assert (done.returncode, '"packages.scipy.**" = "ignore"\n' in done.stderr) == (0, True)
    done = envlock("verify", environ=environ)
    assert (done.returncode, done.stdout.partition(" (")[0]) == (0, "matches under policy strict, with 1 override")
    done = envlock("ignore", "another machine", "--reason", "on trial")
    rules = tomllib.loads((tmp_path / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["envlock"]["policy"]
    assert {"cpu.**", "gpu.**", "system.**", "packages.scipy.**"} < set(rules)
    assert "cuda.cuda_driver.**" not in rules
    assert 'no rule for "cuda.cuda_driver.**": it is about software that computes, and is compared' in done.stderr


def test_a_name_that_no_cause_has(envlock: Command) -> None:
    done = envlock("ignore", "scypi", "--reason", "x")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: no fact matches `scypi`\n")


def test_no_rule_is_written_that_would_have_no_effect(envlock: Command, tmp_path: Path) -> None:
    """What computes is compared whatever a project says; the command that wrote such rules said nothing."""
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\n')
    done = envlock("ignore", "numpy", "--reason", "it is faster")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error: `numpy` is software that computes: no rule of a project lets it differ\n"
        "hint: accept the installed one: `envlock capture --only numpy`\n"
    )
    assert (tmp_path / "pyproject.toml").read_text() == '[project]\nname = "x"\n'
