"""`%envlock` as a shell of IPython calls it, on the runtime half alone; the real shell is in test_hosts.py."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import envlock
from envlock.integrations.jupyter import render_html
from envlock.runtime.finding_place import Where
from envlock.runtime.report import ERROR, INFO, UNKNOWN, Finding, Report, Severity
from tests.machines import distribution

ROOT = Path(envlock.__file__).parent

SHELL = """
import json, sys, types
before = set(sys.modules)

class UsageError(Exception): pass
class Formatter(dict):
    for_type = dict.__setitem__
class Shell:
    magics_manager = types.SimpleNamespace(magics={"line": {}})
    display_formatter = types.SimpleNamespace(formatters={"text/html": Formatter()})
    def register_magic_function(self, function, kind, name):
        self.magics_manager.magics[kind][name] = function

for name in ("IPython", "IPython.core", "IPython.core.error"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["IPython.core.error"].UsageError = UsageError

import envlock
shell = Shell()
envlock.load_ipython_extension(shell)
def ask(line):
    try:
        found = shell.magics_manager.magics["line"]["envlock"](line)
    except UsageError as error:
        return str(error)
    return found if isinstance(found, str) else found.headline
answers = [ask(line) for line in sys.argv[1:]]
envlock.unload_ipython_extension(shell)
left = [*shell.magics_manager.magics["line"], *shell.display_formatter.formatters["text/html"]]
print(json.dumps([answers, left, sorted({name.partition(".")[0] for name in sys.modules} & {"pydantic", "rich"})]))
"""


LOCK = """
import json
from envlock.runtime.collectors import take_snapshot

found = take_snapshot()
policy = {"name": "functional", "overrides": {"environ.**": "ignore"}}
print(json.dumps({"lock_version": 1, "created_by": "a test", "facts": found.facts, "unavailable": found.unavailable,
                  "policy": policy}))
"""


def run(folder: Path, code: str, *lines: str) -> str:
    """Run code where nothing is installed but NumPy's metadata, the runtime half and the integrations."""
    package = folder / "site" / "envlock"
    if not package.exists():
        distribution(package.parent, "numpy", "1.26.4")
        for room in ("runtime", "integrations"):
            shutil.copytree(ROOT / room, package / room)
        shutil.copy(ROOT / "__init__.py", package)
    argv = [sys.executable, "-S", "-c", f"import sys; sys.path.append({str(package.parent)!r})\n{code}", *lines]
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def asked(folder: Path, *lines: str) -> list[str]:
    """Return what the magic answers there."""
    answers, left, loaded = json.loads(run(folder, SHELL, *lines))
    assert (left, loaded) == ([], [])
    found: list[str] = answers
    return found


@pytest.mark.processes
def test_the_runtime_half_answers_all_but_the_doctor(tmp_path: Path) -> None:
    lock = tmp_path / "envlock.lock"
    lock.write_text(run(tmp_path, LOCK), encoding="utf-8")
    hint = "\nhint: write `%envlock [verify|doctor|line] [LOCK] [--policy POLICY]`"
    answers = asked(
        tmp_path,
        "",
        "verify envlock.lock",
        "line",
        "doctor",
        "verify --policy lax",
        "--deep",
        "verify 'x",
        "line a.lock",
    )
    with pytest.raises(envlock.LockfileError) as missing:
        envlock.cite("a.lock")
    assert answers == [
        "matches under policy functional, with 1 override",
        "matches under policy functional, with 1 override",
        envlock.cite(lock),
        "envlock.doctor needs the complete envlock, and only its runtime is installed; "
        'install it as a tool of its own, in a checkout of envlock: uv tool install ".[cli]"',
        "unknown policy `lax`\nhint: choose from: strict, bits, same-arch, functional",
        f"unrecognized arguments: --deep{hint}",
        f"No closing quotation{hint}",
        str(missing.value),
    ]


def finding(severity: Severity, message: str, where: str | Where = "a.fact") -> Finding:
    return Finding(
        "exact", severity, where, message=message, why="It <moves> bits.", fix="Do this\nor that", source="somewhere"
    )


def test_what_decides_is_a_table_and_the_rest_is_folded() -> None:
    findings = [
        finding(ERROR, "a.fact: locked <1>, live 2"),
        finding(UNKNOWN, "b is unknown", Where(file="train.py", line=3)),
        finding(INFO, "c differs & may"),
    ]
    page = render_html(Report(findings, policy="strict", notes=["project: <here>"]))
    assert (
        page
        == """\
<p><strong style="color: #c62828">does not match under policy strict: 1 fact differs; 1 more fact could not be \
collected</strong></p>
<table>
<tr>
<th style="text-align: left"></th>
<th style="text-align: left">finding</th>
<th style="text-align: left">why</th>
<th style="text-align: left">what to do</th>
</tr>
<tr>
<td style="text-align: left"><span style="color: #c62828">error</span></td>
<td style="text-align: left">a.fact: locked &lt;1&gt;, live 2</td>
<td style="text-align: left">It &lt;moves&gt; bits.</td>
<td style="text-align: left">Do this<br>or that</td>
</tr>
<tr>
<td style="text-align: left"><span style="color: #b26a00">unknown</span></td>
<td style="text-align: left">train.py:3: b is unknown</td>
<td style="text-align: left">It &lt;moves&gt; bits.</td>
<td style="text-align: left">Do this<br>or that</td>
</tr>
</table>
<details><summary>differences that are allowed: 1</summary><ul>
<li>c differs &amp; may</li>
</ul></details>
<p>project: &lt;here&gt;</p>"""
    )


def test_a_long_table_is_cut_and_says_so() -> None:
    page = render_html(Report([finding(ERROR, f"fact {number}") for number in range(60)]))
    assert (page.count("fact 49<"), page.count("fact 50<")) == (1, 0)
    assert page.endswith("</table>\n<p>and 10 more: <code>print(report)</code> lists all</p>")
