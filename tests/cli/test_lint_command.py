"""`envlock lint` as a shell, a workflow and pre-commit see it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import jsonschema
import pytest
import yaml

from envlock.data.lint_tables import load_lint_rules
from envlock.reports import FORMATS
from tests.conftest import Command
from tests.locks import FACTS, document, encode
from tests.machines import distribution, write

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "tests/reports/sarif-schema-2.1.0.json").read_text(encoding="utf-8"))
BAD = """\
import tensorflow as tf

tf.config.experimental.enable_op_determinism
x = tf.constant("é"); tf.random.set_seed = 1
"""
WHY = load_lint_rules()["ENV101"].why
TEXT = f"""\
train.py:3:1: ENV101 error: tf.config.experimental.enable_op_determinism is named but not called, so this does nothing
    tf.config.experimental.enable_op_determinism
train.py:4:23: ENV102 error: this replaces the function tf.random.set_seed and sets nothing
    x = tf.constant("é"); tf.random.set_seed = 1

ENV101: a switch without its parentheses (1)
    why: {WHY}
    fix: Add the parentheses.

ENV102: a value assigned to a function (1)
    why: The assignment replaces the function and sets nothing, without an error.
    fix: Call it with the value.

2 errors in 1 file, for TensorFlow 2.15.1 (as given)
"""


@pytest.fixture
def project(envlock: Command) -> Path:
    """Return a folder with a bad file; the linter's own environment has no TensorFlow that counts."""
    return write(envlock.folder, {"train.py": BAD})


def test_findings_for_people(envlock: Command, project: Path) -> None:
    done = envlock("lint", "train.py", "--tf", "2.15.1")
    assert (done.returncode, done.stdout, done.stderr) == (1, TEXT, "")


def test_nothing_found_is_exit_0(envlock: Command) -> None:
    (envlock.folder / "a.py").write_text("x = 1\n")
    done = envlock("lint", ".", "--tf", "2.15.1")
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        "no findings in 1 file, for TensorFlow 2.15.1 (as given)\n",
        "",
    )


def test_notes_alone_are_exit_0(envlock: Command) -> None:
    (envlock.folder / "a.py").write_text("import tensorflow as tf\ntf.keras.optimizers.SGD().minimize(loss, weights)\n")
    write(envlock.folder, {"pyproject.toml": '[tool.envlock.lint]\nignore = ["ENV202"]\n'})
    done = envlock("lint", ".", "--tf", "2.15.1")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "1 note in 1 file, for TensorFlow 2.15.1 (as given)"


def test_json_is_for_programs(envlock: Command, project: Path) -> None:
    done = envlock("lint", ".", "--tf", "2.15.1", "-f", "json")
    report = json.loads(done.stdout)
    head = {key: value for key, value in report.items() if key != "findings"}
    assert head == {
        "report_version": 2,
        "command": "lint",
        "match": False,
        "headline": "2 errors in 1 file, for TensorFlow 2.15.1 (as given)",
        "policy": None,
        "compared": None,
        "notes": [],
        "attachments": {"tensorflow": "2.15.1", "files": 1},
    }
    assert report["findings"][1] == {
        "where": {
            "file": "train.py",
            "line": 4,
            "column": 23,
            "end_line": 4,
            "end_column": 45,
            "text": 'x = tf.constant("é"); tf.random.set_seed = 1',
        },
        "rule": "ENV102",
        "severity": "error",
        "message": "this replaces the function tf.random.set_seed and sets nothing",
        "why": "The assignment replaces the function and sets nothing, without an error.",
        "fix": "Call it with the value.",
        "source": "https://www.tensorflow.org/api_docs/python/tf/random/set_seed",
    }


def test_sarif_is_valid_and_names_every_rule(envlock: Command, project: Path) -> None:
    done = envlock("lint", ".", "-f", "sarif")
    log = json.loads(done.stdout)
    jsonschema.validate(log, SCHEMA)
    run = log["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    assert [(r["ruleId"], rules[r["ruleIndex"]]["id"]) for r in run["results"]] == [("ENV101",) * 2, ("ENV102",) * 2]
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize(("form", "start"), [("github", "::error file=train.py,line=3,col=1,"), ("junit", "<?xml")])
def test_the_other_formats(form: str, start: str, envlock: Command, project: Path) -> None:
    done = envlock("lint", ".", "-f", form)
    assert (done.returncode, done.stdout[: len(start)], done.stderr) == (1, start, "")


def locked(version: str | None, variable: str | None = None) -> bytes:
    facts = {**FACTS, "tensorflow": None if version is None else {"version": version}}
    facts["environ"] = {"TF_DETERMINISTIC_OPS": variable}
    return encode(document(facts=facts))


def test_the_lock_says_which_tensorflow_and_whether_the_switch_is_on(envlock: Command) -> None:
    seeded = "import tensorflow as tf\ntf.random.set_seed(7)\n"
    (envlock.folder / "a.py").write_text(f"{seeded}tf.keras.optimizers.SGD().minimize(loss, weights)\n")
    (envlock.folder / "envlock.lock").write_bytes(locked("2.7.4+nv22.1"))
    assert envlock("lint", ".").stdout.splitlines()[-1] == ("1 note in 1 file, for TensorFlow 2.7.4+nv22.1 (locked)")
    (envlock.folder / "envlock.lock").write_bytes(locked("2.7.4", "1"))
    assert envlock("lint", ".").stdout == "no findings in 1 file, for TensorFlow 2.7.4 (locked)\n"
    (envlock.folder / "envlock.lock").write_bytes(b"{")
    assert envlock("lint", ".").returncode == 3


PROJECT = '[tool.envlock.lint]\nselect = ["ENV1"]\nignore = ["ENV102"]\nexclude = ["old"]\n'


def test_the_projects_settings_count_and_the_command_line_goes_before(envlock: Command, project: Path) -> None:
    draws = "import random\nimport tensorflow as tf\nx = tf.constant(random.random())\n"
    write(project, {"pyproject.toml": PROJECT, "old/x.py": BAD, "b.py": draws})

    def rules(*args: str) -> list[str]:
        return [each["rule"] for each in json.loads(envlock("lint", ".", "-f", "json", *args).stdout)["findings"]]

    assert rules() == ["ENV101"]
    assert rules("--select", "ENV2,ENV102") == ["ENV206"]
    assert rules("--select", "ENV") == ["ENV206", "ENV101"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            ["gone.py"],
            "error: cannot read gone.py: No such file or directory\nhint: name existing files and folders\n",
        ),
        (
            [".", "--tf", "two"],
            "error: invalid TensorFlow version `two`\nhint: use the form that `pip list` shows, such as 2.16.2\n",
        ),
        ([".", "-f", "xml"], f"error: unknown format `xml`\nhint: choose from: {', '.join((*FORMATS, 'concise'))}\n"),
    ],
)
def test_wrong_use_is_exit_2(args: list[str], message: str, envlock: Command) -> None:
    done = envlock("lint", *args)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)


def test_a_rule_that_does_not_exist_is_exit_2(envlock: Command, project: Path) -> None:
    done = envlock("lint", ".", "--select", "ENV9")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: unknown rule `ENV9`\nhint: choose from: ENV001, ENV002, ")


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ("selects = []", "`lint` has an unknown key: selects"),
        ("select = [1]", "`lint.select` must be a list of strings"),
        ('ignore = "ENV1"', "`lint.ignore` must be a list of strings"),
    ],
)
def test_wrong_settings_are_exit_2(table: str, problem: str, envlock: Command) -> None:
    file = envlock.folder / "pyproject.toml"
    file.write_text(f"[tool.envlock.lint]\n{table}\n")
    done = envlock("lint", ".")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: [tool.envlock] in {file}: {problem}\n")


def test_a_line_that_would_move_the_cursor_does_not(envlock: Command) -> None:
    (envlock.folder / "a.py").write_text('import random\nrandom.seed() or print("\x1b[2J")\n')
    done = envlock("lint", ".", "--select", "ENV207")
    assert "\x1b" not in done.stdout
    assert '    random.seed() or print("\\x1b[2J")' in done.stdout


def test_the_hooks_of_pre_commit_run(envlock: Command, project: Path) -> None:
    hooks = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))}
    assert set(hooks) == {"envlock-lint", "envlock-capture-check", "envlock-verify"}
    for hook in hooks.values():
        assert {"name", "entry", "language", "description"} <= set(hook)
        assert shlex.split(hook["entry"])[0] == "envlock"
    lint = hooks["envlock-lint"]
    done = envlock(*shlex.split(lint["entry"])[1:], *lint["args"])
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("train.py:3:1: ENV101 error: ")
    check = envlock(*shlex.split(hooks["envlock-capture-check"]["entry"])[1:])
    assert check.returncode == 3  # there is no lockfile
    verify = envlock(*shlex.split(hooks["envlock-verify"]["entry"])[1:])
    assert verify.returncode == 3  # nor here


def test_concise_is_one_line_a_finding(envlock: Command, project: Path) -> None:
    done = envlock("lint", ".", "--tf", "2.15.1", "-f", "concise")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines() == [
        "train.py:3:1: ENV101 error: tf.config.experimental.enable_op_determinism is named but not called, "
        "so this does nothing",
        "train.py:4:23: ENV102 error: this replaces the function tf.random.set_seed and sets nothing",
        "2 errors in 1 file, for TensorFlow 2.15.1 (as given)",
    ]


def test_a_concise_line_says_what_lies_apart(envlock: Command, project: Path) -> None:
    write(project, {"test_draws.py": "import numpy as np\n\n\ndef test():\n    print(np.random.rand() == 1)\n"})
    done = envlock("lint", ".", "--tf", "2.15.1", "--select", "ENV205", "-f", "concise")
    assert done.stdout.splitlines() == [
        "test_draws.py:5:11: ENV205 warning: numpy.random.rand draws from NumPy's global generator, "
        "which nothing seeds (in tests)",
        "1 warning in 2 files, for TensorFlow 2.15.1 (as given)",
    ]


def test_a_baseline_is_written_and_leaves_out_what_it_holds(envlock: Command, project: Path) -> None:
    base = ("--tf", "2.15.1", "--baseline", "old.json")
    done = envlock("lint", ".", *base, "--write-baseline")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "wrote old.json: 2 findings\n")
    rows = json.loads((project / "old.json").read_text(encoding="utf-8"))["findings"]
    assert [(row["file"], row["rule"], row["count"]) for row in rows] == [
        ("train.py", "ENV101", 1),
        ("train.py", "ENV102", 1),
    ]
    done = envlock("lint", ".", *base)
    assert done.returncode == 0
    assert "2 findings of the baseline not shown" in done.stdout
    for less in (["other.py"], [".", "--select", "ENV2"]):
        write(project, {"other.py": "x = 1\n"})
        done = envlock("lint", *less, *base)
        assert done.returncode == 0, less
        assert done.stdout.startswith("no findings in "), less
        assert "baseline" not in done.stdout, less
    write(project, {"train.py": BAD.replace("tf.config.experimental.enable_op_determinism\n", "tf.random.set_seed\n")})
    done = envlock("lint", ".", *base, "-f", "json")
    report = json.loads(done.stdout)
    assert [finding["rule"] for finding in report["findings"]] == ["ENV101"]
    assert report["notes"] == [
        "1 finding of the baseline not shown",
        "1 finding of the baseline not found any more: write it again",
    ]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--write-baseline"], "error: --write-baseline needs --baseline FILE"),
        (["--baseline", "gone.json"], "error: cannot read gone.json: No such file or directory"),
        (["--baseline", "train.py"], "error: cannot read train.py: it is not JSON"),
        (["--baseline", "list.json"], "error: cannot read list.json: it is not a baseline"),
        (["--baseline", "gone/x.json", "--write-baseline"], "error: cannot write"),
    ],
)
def test_a_baseline_that_cannot_be_used_is_told(args: list[str], message: str, envlock: Command, project: Path) -> None:
    (project / "list.json").write_text("[]")
    done = envlock("lint", ".", *args)
    assert (done.returncode, done.stdout) == (2 if "cannot write" not in message else done.returncode, "")
    assert done.stderr.startswith(message)


def test_rules_are_ignored_in_the_files_of_a_pattern(envlock: Command, project: Path) -> None:
    settings = '[tool.envlock.lint.per-file-ignores]\n"old/*" = ["ENV1"]\n'
    write(project, {"pyproject.toml": settings, "old/x.py": BAD})
    found = json.loads(envlock("lint", ".", "-f", "json").stdout)["findings"]
    assert {finding["where"]["file"] for finding in found} == {"train.py"}
    (project / "pyproject.toml").write_text("[tool.envlock.lint]\nper-file-ignores = 1\n")
    done = envlock("lint", ".")
    assert done.returncode == 2
    assert "`lint.per-file-ignores` must be a table" in done.stderr


def test_without_a_path_the_project_is_looked_at(envlock: Command) -> None:
    write(envlock.folder, {"pyproject.toml": "[project]\nname = 'x'\n", "src/train.py": BAD, "docs/a.md": ""})
    done = envlock("lint", "--tf", "2.15.1", "-f", "concise")
    assert done.stdout.startswith("src/train.py:3:1: ENV101 error: "), done
    below = Command(envlock.argv, envlock.folder / "docs", envlock.environ)
    assert below("lint", "--tf", "2.15.1", "-f", "concise").stdout.startswith("../src/train.py:3:1: ENV101 "), done


def test_the_installed_tensorflow_is_that_of_the_active_environment(envlock: Command) -> None:
    site = envlock.folder / "env/lib/python3.11/site-packages"
    distribution(site, "tensorflow-cpu", "2.13.1")
    write(envlock.folder, {"env/pyvenv.cfg": "home = /usr/bin\n", "env/bin/python": "", "a.py": "x = 1\n"})
    (envlock.folder / "env/bin/python").chmod(0o755)
    done = envlock("lint", "a.py", environ={"VIRTUAL_ENV": str(envlock.folder / "env")})
    assert done.stdout == "no findings in 1 file, for TensorFlow 2.13.1 (installed)\n", done
