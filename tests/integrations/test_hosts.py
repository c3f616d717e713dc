"""Every integration in its real host, in an environment that has them all."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conftest import Command
from tests.exhaustive import exhaustive
from tests.integrations.page import program

pytestmark = pytest.mark.slow

OFF = {"TF_ENABLE_ONEDNN_OPTS": "0"}
DIFFERENCE = "does not match under policy strict: 1 fact differs"
MATCHES = "matches under policy strict"


def said(hosts: Command, code: str, environ: dict[str, str] | None = None) -> Any:
    """Return the JSON value in the last line that a program prints."""
    done = hosts("-W", "error", "-c", code, environ=environ, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_importing_envlock_imports_no_host(hosts: Command) -> None:
    installed = "import importlib.util as u, json; print(json.dumps([n for n in {!r} if u.find_spec(n)]))"
    names = ["IPython", "ipykernel", "mlflow", "nbclient", "numpy", "pytest", "tensorboard", "wandb", "xdist"]
    assert said(hosts, installed.format(names)) == names
    gained = "import json, sys; old = set(sys.modules); import envlock; print(json.dumps([*set(sys.modules) - old]))"
    assert said(hosts, gained) == ["envlock"]


NOTEBOOK = """
import json, sys
import nbformat
from nbclient import NotebookClient

cells = ["%load_ext envlock", *sys.argv[1:]]
page = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in cells])
NotebookClient(page, timeout=200, allow_errors=True, kernel_name="python3").execute()
shown = [output for cell in page.cells for output in cell.outputs]
print(json.dumps([[o.get("data", {}).get("text/html"), o.get("data", {}).get("text/plain"), o.get("evalue"),
                   o.get("text")] for o in shown]))
"""


def notebook(hosts: Command, *cells: str) -> list[list[str | None]]:
    """Return of every output of a notebook: its HTML, its plain text, its error, and what was printed."""
    done = hosts("-c", NOTEBOOK, *cells, timeout=300)
    assert done.returncode == 0, done.stderr
    found: list[list[str | None]] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_a_notebook_shows_the_verdict_and_goes_on(locked_hosts: Command) -> None:
    change = "import os; os.environ['TF_ENABLE_ONEDNN_OPTS'] = '0'"
    matching, line, differing, unknown = notebook(
        locked_hosts, "%envlock", "%envlock line", f"{change}\nreport = %envlock verify\nreport", "%envlock verfy"
    )
    assert (matching[0], line[1]) == (
        f'<p><strong style="color: #2e7d32">{MATCHES}</strong></p>',
        repr(said(locked_hosts, "import envlock, json; print(json.dumps(envlock.cite()))")),
    )
    assert (differing[0] or "").startswith(f'<p><strong style="color: #c62828">{DIFFERENCE}</strong></p>\n<table>')
    assert "environ.TF_ENABLE_ONEDNN_OPTS: locked unset, live 0" in (differing[0] or "")
    assert "invalid choice: 'verfy'" in (unknown[2] or unknown[3] or "")


RUN = """
import json, envlock
run, line = mlflow.last_active_run(), envlock.cite()
found = mlflow.get_run(run.info.run_id)
tags = {name: text for name, text in found.data.tags.items() if name.startswith("envlock")}
stored = mlflow.artifacts.list_artifacts(run_id=run.info.run_id, artifact_path="envlock")
print(json.dumps([line, tags, [each.path for each in stored]]))
"""


@exhaustive
@pytest.mark.parametrize(("environ", "match", "verdict"), [({}, "true", MATCHES), (OFF, "false", DIFFERENCE)])
def test_mlflow_tags_every_run(locked_hosts: Command, environ: dict[str, str], match: str, verdict: str) -> None:
    # The other stores need packages that take minutes.
    plain = {"MLFLOW_ALLOW_FILE_STORE": "true", "MLFLOW_TRACKING_URI": f"file:{locked_hosts.folder}/runs"}
    done = locked_hosts("-c", program("MLflow") + RUN, environ={**environ, **plain}, timeout=300)
    assert done.returncode == 0, done.stderr
    line, tags, stored = json.loads(done.stdout.splitlines()[-1])
    assert tags == {"envlock.lock": line, "envlock.match": match, "envlock.verdict": verdict}
    assert stored == ["envlock/envlock.lock"]


OFFLINE = """
import glob, json, time, envlock
line = envlock.cite()
(stored,) = glob.glob("wandb/offline-run-*/run-*.wandb")
wandb.teardown()
# The process that writes the file may still do so after the run has ended.
deadline = time.monotonic() + 60
while line.encode() not in (data := open(stored, "rb").read()) and time.monotonic() < deadline:
    time.sleep(0.1)
print(json.dumps([line, settings["envlock"], line.encode() in data, b"envlock.lock" in data, b"environment" in data]))
"""


@pytest.mark.parametrize(("environ", "match", "verdict"), [({}, "true", MATCHES), (OFF, "false", DIFFERENCE)])
def test_an_offline_run_of_wandb_has_the_environment(
    locked_hosts: Command, environ: dict[str, str], match: str, verdict: str
) -> None:
    code = program("Weights & Biases") + "    settings = dict(wandb.run.config)\n" + OFFLINE
    plain = {"WANDB_MODE": "offline", "WANDB_SILENT": "true"}
    done = locked_hosts("-c", code, environ={**environ, **plain}, timeout=300)
    assert done.returncode == 0, done.stderr
    line, settings, *stored = json.loads(done.stdout.splitlines()[-1])
    assert settings == {"lock": line, "match": match, "verdict": verdict}
    assert stored == [True, True, True]


def test_wandb_without_a_run_is_refused(locked_hosts: Command) -> None:
    done = locked_hosts("-c", "from envlock.integrations.wandb import log_lock; log_lock()", timeout=100)
    assert done.returncode == 1
    assert "UsageError: no run of W&B is active" in done.stderr


EVENTS = """
import json, envlock
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator("logs/train")
events.Reload()
(event,) = events.Tensors("envlock")
(text,) = event.tensor_proto.string_val
plugin = events.SummaryMetadata("envlock").plugin_data.plugin_name
print(json.dumps([envlock.cite(), plugin, text.decode().splitlines()]))
"""


@pytest.mark.parametrize(("environ", "match", "verdict"), [({}, "true", MATCHES), (OFF, "false", DIFFERENCE)])
def test_tensorboard_reads_the_environment_as_a_text(
    locked_hosts: Command, environ: dict[str, str], match: str, verdict: str
) -> None:
    line, plugin, text = said(locked_hosts, program("TensorBoard") + EVENTS, environ)
    assert plugin == "text"
    rows = [f"| lock | `{line}` |", f"| match | `{match}` |", f"| verdict | `{verdict}` |"]
    assert text == ["| envlock | |", "|---|---|", *rows]


@exhaustive
def test_pytest_finds_the_plugin_of_the_wheel(locked_hosts: Command) -> None:
    (locked_hosts.folder / "test_it.py").write_text("import envlock\n\ndef test_it(bits): bits([1, 2])\n")
    recorded = locked_hosts("-m", "pytest", "-W", "error", "--envlock-update", timeout=100)
    assert recorded.returncode == 0, recorded.stdout + recorded.stderr
    held = locked_hosts("-c", "import envlock, pytest; raise SystemExit(pytest.main(['-W', 'error', '--envlock']))")
    assert held.returncode == 0, held.stdout + held.stderr
    assert f"envlock: {MATCHES} (envlock.lock)" in held.stdout.splitlines()
    refused = locked_hosts("-m", "pytest", "--envlock", environ=OFF)
    first = f"ERROR: envlock: {locked_hosts.folder}/envlock.lock: {DIFFERENCE}"
    assert (refused.returncode, refused.stderr.splitlines()[0]) == (4, first)
