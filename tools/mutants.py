"""Change what decides, one change at a time, and list the changes that no test notices (`make mutants`).

mutmut makes the changes. Each module meets only the tests that are about it: minutes instead of hours, and what only a
test far away would notice counts as unnoticed. Names of modules can be given: `python tools/mutants.py compare rules`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import tomli_w
import tomllib

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / "mutants"
TESTS = {
    "envlock/runtime/compare.py": [
        f"tests/runtime/test_{name}.py" for name in ("compare", "evidence", "proof", "extent")
    ],
    "envlock/runtime/policies.py": [
        "tests/runtime/test_policy.py",
        "tests/runtime/test_tooling.py",
    ],
    "envlock/runtime/judgement.py": [
        *(f"tests/runtime/test_{name}.py" for name in ("judgement", "evidence", "exemptions")),
        "tests/runtime/test_startup.py",
    ],
    "envlock/runtime/machine_proof.py": [
        "tests/runtime/test_proof.py",
        "tests/runtime/test_evidence.py",
    ],
    "envlock/runtime/exemptions.py": ["tests/runtime/test_exemptions.py"],
    "envlock/runtime/extent.py": ["tests/runtime/test_extent.py"],
    "envlock/runtime/comparison_rules.py": ["tests/runtime/test_rules.py"],
    "envlock/runtime/report.py": ["tests/runtime/test_report.py", "tests/runtime/test_extent.py"],
    "envlock/runtime/strict_json.py": ["tests/runtime/test_strict_json.py"],
    "envlock/runtime/recipe.py": [
        "tests/data/test_determinism_tables.py",
        "tests/image/test_plan.py",
    ],
    "envlock/runtime/host.py": ["tests/runtime/test_host.py", "tests/collectors/test_environ.py"],
    "envlock/runtime/locked_wheels.py": ["tests/runtime/test_locked_wheels.py"],
    "envlock/runtime/own_variables.py": [
        "tests/runtime/test_variables.py",
        "tests/runtime/test_evidence.py",
    ],
    "envlock/runtime/facts.py": [
        f"tests/runtime/test_{name}.py" for name in ("facts", "compare", "line")
    ],
    "envlock/runtime/machines.py": [
        "tests/lock/test_machines.py",
        "tests/runtime/test_exemptions.py",
    ],
    "envlock/runtime/lockfile.py": [
        "tests/runtime/test_lockfile.py",
        "tests/lock/test_machines.py",
    ],
    "envlock/runtime/distributions.py": [
        *(f"tests/collectors/test_{name}.py" for name in ("packages", "shadow")),
        "tests/runtime/test_tooling.py",
    ],
    "envlock/runtime/shadows.py": ["tests/collectors/test_shadow.py"],
    "envlock/runtime/tooling.py": ["tests/runtime/test_tooling.py"],
    "envlock/runtime/input_data.py": ["tests/runtime/test_input_data.py"],
    "envlock/runtime/data_contents.py": ["tests/runtime/test_input_data.py"],
    "envlock/runtime/data_files.py": ["tests/runtime/test_input_data.py"],
    "envlock/workflows/verify.py": [
        f"tests/workflows/test_{name}.py" for name in ("verify", "verify_proof")
    ],
    "envlock/workflows/verify_further.py": [
        f"tests/workflows/test_{name}.py" for name in ("verify", "verify_proof", "verify_further")
    ],
    "envlock/workflows/gate.py": ["tests/workflows/test_gate_settings.py"],
    "envlock/runtime/stamp.py": ["tests/runtime/test_stamp.py"],
    **{
        f"envlock/evidence/{module}.py": [
            f"tests/evidence/test_{tests}.py",
            "tests/evidence/test_whole_reports.py",
            "tests/test_empty.py",
        ]
        for module, tests in (
            ("upgrade/upgrade_verdict", "upgrade_verdict"),
            ("bisect/bisection", "bisection"),
        )
    },
    "envlock/image/quoting.py": ["tests/image/test_quoting.py"],
    "envlock/image/plan.py": ["tests/image/test_plan.py"],
}
"""What is changed, and the tests that must notice."""

ALLOWED = 0.05
"""The share of changes of a module that may survive; tests/mutants.md says why each does."""


def main() -> int:
    wanted = sys.argv[1:] or [Path(module).stem for module in TESTS]
    failed = False
    for module, tests in TESTS.items():
        if Path(module).stem in wanted:
            tried, survivors = changed(module, tests)
            failed |= len(survivors) > ALLOWED * tried
            print(
                f"{module}: {len(survivors)} of {tried} changes survive",
                *survivors,
                sep="\n",
                flush=True,
            )
    return int(failed)


def changed(module: str, tests: list[str]) -> tuple[int, list[str]]:
    """Return how many changes were tried, and each that survived: its name and its lines."""
    folder = PLACE / Path(module).stem
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    settings = project["tool"]["mutmut"]
    settings.update(only_mutate=[module], pytest_add_cli_args_test_selection=tests)
    (folder / "pyproject.toml").write_text(tomli_w.dumps(project), encoding="utf-8")
    for name in (*settings["source_paths"], "tests", *settings["also_copy"]):
        (folder / name).symlink_to(ROOT / name)
    _mutmut(folder, "run")
    results = re.findall(
        r"^ *(\S+): (.+)$", _mutmut(folder, "results", "--all", "true"), re.MULTILINE
    )
    if not results or any(how == "not checked" for _, how in results):
        raise SystemExit(f"error: mutmut did not finish; see {folder}")
    left = [
        name for name, how in results if how not in ("killed", "timeout", "caught by type check")
    ]
    return len(results), [f"# {name}\n{_lines(_mutmut(folder, 'show', name))}" for name in left]


def _lines(shown: str) -> str:
    return "\n".join(line for line in shown.splitlines() if re.match(r"[-+](?![-+]{2} )", line))


def _mutmut(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "mutmut", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(
            f"error: mutmut {words[0]} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
