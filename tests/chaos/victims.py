"""Every command that writes a file: the table of what is killed, and under which a disk fails."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager as Context
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pydantic

import envlock as facade
from envlock.__main__ import main as envlock
from envlock.cli import build as build_command
from envlock.evidence import results
from envlock.evidence.diverge import trace_recording
from envlock.guest import launch
from envlock.guest.observer import SEEN
from envlock.image import build, known_images, pin, supply
from envlock.image import image_build as make
from envlock.image.engines.engine import Built
from envlock.image.plan import BuildPlan
from envlock.lock.document import validate
from envlock.packages import archives, index, overlay, wheel_cache
from envlock.packages.local_wheels import into_cache
from envlock.packages.overlay import Wanted, install_overlay
from envlock.runtime.data_contents import render_note
from envlock.runtime.data_files import Survey
from envlock.workflows import content_notes, observed_run, verify_further
from tests.chaos import readers
from tests.evidence.canaries import section
from tests.image.plans import lock as planned_lock
from tests.image.plans import planned, wheelhouse
from tests.locks import document, encode
from tests.packages.identified import lock_document, proof, wheel


@dataclass(frozen=True)
class Victim:
    """A command that writes.

    Attributes:
        prepare: fills a folder with what it needs, and with an older state of what it writes.
        run: is called in that folder.
        writes: what it replaces, each whole or not at all.
        sites: the functions in which it writes, as "ROOM/FILE.py:FUNCTION"; a test compares them with the program's.
        around: is entered once, before all of them.
        may_be_gone: a moment without any state is allowed, which a folder's renaming needs.
        keeps: what else it may leave, by the beginning of the name: parts that the next run goes on with.
        is_whole: tells whether what it has written is whole, where no two runs write the same.
    """

    prepare: Callable[[Path], object]
    run: Callable[[], object]
    writes: tuple[str, ...]
    sites: tuple[str, ...] = ()
    around: Callable[[Path], Context[object]] = lambda folder: nullcontext()
    may_be_gone: bool = False
    keeps: tuple[str, ...] = ()
    is_whole: Callable[[Path], bool] | None = None


def command(*words: str) -> Callable[[], object]:
    """Return what runs a command line; one that says "no" has done its work, too."""

    def run() -> None:
        sys.argv = ["__main__.py", *words]  # of `python -m envlock`
        try:
            envlock()
        except SystemExit as end:
            if end.code not in (0, 1):
                raise

    return run


def holding(**contents: bytes) -> Callable[[Path], object]:
    """Return what fills a folder: by name, where `__` is a dot and `___` a slash."""

    def prepare(folder: Path) -> None:
        for name, content in contents.items():
            path = folder / name.replace("___", "/").replace("__", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    return prepare


def replaced(*what: tuple[object, str, object]) -> Callable[[Path], Context[object]]:
    """Return what puts stand-ins in the place of what a test cannot have: TensorFlow, an engine, a registry."""

    @contextmanager
    def around(folder: Path) -> Iterator[object]:
        before = [(owner, name, getattr(owner, name)) for owner, name, _ in what]
        for owner, name, value in what:
            setattr(owner, name, value)
        try:
            yield None
        finally:
            for owner, name, value in before:
                setattr(owner, name, value)

    return around


# --- locks of this environment, and reports of ranks

KNOWN: dict[str, bytes] = {}
"""What `_after` found in the folder, by path."""


def _after(
    change: Callable[[dict[str, Any]], object], *runs: Callable[[], object]
) -> Callable[[Path], Context[object]]:
    """Return what runs commands once, lets every lock be changed, and keeps what they wrote for `_known`."""

    @contextmanager
    def around(folder: Path) -> Iterator[object]:
        for run in runs:
            pid = os.fork()
            if not pid:
                try:
                    os.chdir(folder)
                    os.dup2(os.open(os.devnull, os.O_RDWR), 2)
                    run()
                finally:
                    os._exit(0)
            os.waitpid(pid, 0)
        KNOWN.clear()
        for path in sorted(each for each in folder.rglob("*") if each.is_file()):
            data = path.read_bytes()
            if path.suffix == ".lock":
                held = json.loads(data)
                change(held)
                data = encode(held)
            KNOWN[str(path.relative_to(folder))] = data
        _known(folder)
        yield None

    return around


def _known(folder: Path) -> None:
    for name, data in KNOWN.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def _same(lock: dict[str, Any]) -> None:
    """Leave a lock as it is."""


def _elsewhere(lock: dict[str, Any]) -> None:
    lock["facts"]["cpu"].update(model_name="Elsewhere", model="999", affinity_count=64)


def _computed(lock: dict[str, Any]) -> None:
    _elsewhere(lock)
    lock["numerics"] = section()
    lock["policy"] = {"name": "bits", "overrides": {}}


def _entered(lock: dict[str, Any]) -> None:
    lock["project"] = {"entry": ["train.py"], "held": {}}


@contextmanager
def _all(folder: Path, each: Sequence[Callable[[Path], Context[object]]]) -> Iterator[object]:
    with ExitStack() as stack:
        for around in each:
            stack.enter_context(around(folder))
        yield None


def _both(*each: Callable[[Path], Context[object]]) -> Callable[[Path], Context[object]]:
    return lambda folder: _all(folder, each)


LOCK = encode(document())
PYPROJECT = b'[project]\nname = "mine"\n\n[tool.envlock]\npolicy = "strict" # why\n'
OTHER = encode(document(created_by="envlock 0.0.9"))
FLAGGED = encode(document(facts={**document()["facts"], "environ": {"XLA_FLAGS": "b"}}))
CAPTURE = command("capture", "-q", "--without-tensorflow")
RANK = {"ENVLOCK_FLEET_RANK": "0", "ENVLOCK_FLEET_SIZE": "1", "ENVLOCK_FLEET_NODE": "n0", "ENVLOCK_FLEET_JOB": "j1"}


def _ranked(run: Callable[[], object]) -> Callable[[], object]:
    def ranked() -> None:
        os.environ.update(RANK)
        run()

    return ranked


REPORT = _ranked(command("fleet", "report", "--to", "reports"))


# --- wheels

NAMES = ("aa-1.0-py3-none-any.whl", "bb-1.0-py3-none-any.whl")
CONTENT = {f"/files/{name}": name.encode() * 20_000 for name in NAMES}
PROVEN = {name[:2]: proof("1.0", wheel(name, CONTENT[f"/files/{name}"])) for name in NAMES}


def _wheels(folder: Path) -> None:
    """Write a lock of wheels that the cache has."""
    (folder / "envlock.lock").write_bytes(encode(lock_document(PROVEN)))
    cache = Path(os.environ["XDG_CACHE_HOME"])
    shutil.rmtree(cache, ignore_errors=True)
    for name in NAMES:
        content = CONTENT[f"/files/{name}"]
        place = wheel_cache.prepare(cache / "envlock", hashlib.sha256(content).hexdigest())
        (place / name).write_bytes(content)


def _given(folder: Path) -> None:
    (folder / NAMES[1]).write_bytes(CONTENT[f"/files/{NAMES[1]}"])
    shutil.rmtree(os.environ["XDG_CACHE_HOME"], ignore_errors=True)


def _run_pip(_: index.PackageIndex, words: Sequence[str], wanted: Sequence[index.Wanted], draft: Path) -> str:
    """Do what pip does: write what it would install, or download it."""
    name = NAMES[1]
    if words[0] == "download":
        folder = Path(words[words.index("--dest") + 1])
        folder.mkdir()
        (folder / name).write_bytes(CONTENT[f"/files/{name}"])
        return ""
    archive = {"hashes": {"sha256": hashlib.sha256(CONTENT[f"/files/{name}"]).hexdigest()}}
    info = {"url": f"http://127.0.0.1/{name}", "archive_info": archive}
    rows = [{"metadata": {"name": each.name}, "download_info": info} for each in wanted]
    Path(words[words.index("--report") + 1]).write_text(json.dumps({"install": rows}), encoding="utf-8")
    return ""


def _fetch(_: str, receive: Callable[[bytes], object]) -> SimpleNamespace:
    for chunk in (OTHER, OTHER):
        receive(chunk)
    return SimpleNamespace(status=200)


# --- images


@cache
def plan() -> BuildPlan:
    """Return what is to be built; it is made before anything fails."""
    return planned("wheels")


def _context(folder: Path) -> None:
    plan()
    (folder / "envlock.lock").write_bytes(LOCK)
    (folder / "context").mkdir()
    (folder / "context" / "Dockerfile").write_bytes(b"FROM an/older:one\n")
    wheelhouse(folder / "wheelhouse")


BUILT = encode(planned_lock())


def _pinned(source: str, *_: object, **__: object) -> pin.Pin:
    return pin.Pin(validate(json.loads(OTHER), source), "a/base:1", ())


def _supplied(lock: Any, *_: object, **__: object) -> supply.Supplied:
    """Return a lock with other wheels, so that it is written."""
    built = validate(json.loads(BUILT), "x")
    chosen: Any = SimpleNamespace(warnings=(), kept=built.base_image)
    return supply.Supplied(lock.model_copy(update={"identity": built.identity}), chosen, plan())


def _built(folder: Path) -> None:
    _context(folder)
    (folder / "envlock.lock").write_bytes(BUILT)


def _image(source: str, *_: object, **__: object) -> build.BuiltImage:
    """Build in an engine that only lists the context, and give the image a name."""
    engine: Any = SimpleNamespace(build=lambda order, **_: sorted(each.name for each in order.context.iterdir()))
    chosen: Any = SimpleNamespace(kept=SimpleNamespace(platform="linux/amd64"))
    wish: Any = SimpleNamespace(wheelhouse=Path("wheelhouse"), network="none", no_cache=False)
    built: Any = make._build(plan(), chosen, engine, wish, print)
    assert "Dockerfile" in built
    return build.BuiltImage("x:1", None, validate(json.loads(BUILT) | {"created_by": "envlock 0.0.9"}, source), ())


IMAGE = Built(f"sha256:{'1' * 64}", (), "docker", "28.0", {})

# --- runs

SCRIPT = b"import numpy as np\n\ndef step():\n    return {'x': np.arange(3.0)}\n"
RUNS = readers.json_lines(*readers.RUNS[:-1])
"""All but the run that failed."""


@contextmanager
def _drawing(folder: Path) -> Iterator[object]:
    """Let matplotlib be loaded, and what it keeps be there."""
    from matplotlib import pyplot

    yield pyplot


def _are_whole_results(folder: Path) -> bool:
    return len(results.read(folder).finished) == 2


def _overlaid(words: Sequence[str], *_: object, **__: object) -> launch.Ended:
    site = Path(words[words.index("--target") + 1])
    site.mkdir()
    (site / "a.py").write_bytes(b"1")
    return launch.Ended(0, b"", b"", 1)


def _traced(request: Any, folder: Path) -> Any:
    folder.mkdir()
    (folder / "0.trace").write_bytes(readers.TRACE)
    return SimpleNamespace(traces=[folder / "0.trace"], failures=[], comparison=SimpleNamespace(steps=1))


def _said(*_: object, **__: object) -> launch.Ended:
    lines = b"".join(launch.MARK.encode() + line + b"\n" for line in readers.canary_lines()[0].splitlines())
    return launch.Ended(0, lines, b"", 1.0)


def _seen(prepared: object, environ: dict[str, str]) -> int:
    folder, _, _ = environ["PYTHONPATH"].partition(os.pathsep)
    Path(folder, SEEN).write_text(f"imported\t{pydantic.__file__}\n", encoding="utf-8")
    return 0


def _matching(*_: object, **__: object) -> Any:
    return SimpleNamespace(match=True, equal=1)


PROOFS = "cache/envlock/proofs"


NOTES = "cache/envlock/data"
NOTE = render_note(Survey([]).state, "sha256:00")


def _uncached(folder: Path) -> None:
    shutil.rmtree(folder.parent / "cache", ignore_errors=True)


def _proven(folder: Path) -> None:
    _known(folder)
    _uncached(folder)


def _model() -> bytes:
    """Return a `.keras` file as far as its members go."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name in ("metadata.json", "config.json", "model.weights.h5"):
            archive.writestr(zipfile.ZipInfo(name), name * 1000)
    return data.getvalue()


VICTIMS: dict[str, Victim] = {
    "capture": Victim(holding(envlock__lock=LOCK), CAPTURE, ("envlock.lock",), ("cli/capture.py:_write",)),
    "capture --add-machine": Victim(
        _known,
        command("capture", "-q", "--add-machine"),
        ("envlock.lock",),
        ("cli/capture.py:_add_machine",),
        _after(_elsewhere, CAPTURE),
    ),
    "capture --canary": Victim(
        _known,
        command("capture", "--canary", "--without-tensorflow"),
        ("envlock.lock",),
        ("cli/capture.py:_write",),
        _both(_after(_same, CAPTURE), replaced((launch, "ask", _said))),
    ),
    "verify": Victim(
        _proven,
        command("verify", "-q"),
        (f"../{PROOFS}",),
        ("workflows/verify_further.py:prove_machine",),
        _both(_after(_computed, CAPTURE), replaced((verify_further, "compare_with_lock", _matching))),
        is_whole=lambda path: True,  # each proof is a file of its own
    ),
    "run --observe": Victim(
        _known,
        command("run", "-q", "--observe", "true"),
        ("envlock.lock",),
        ("packages/held_packages.py:add_observed",),
        _both(_after(_entered, CAPTURE), replaced((observed_run, "run_child", _seen))),
    ),
    "lint --write-baseline": Victim(
        holding(
            train__py=b"import tensorflow as tf\n\nprint(tf.random.normal([3]))\n",
            list__json=b'{"baseline_version": 1, "findings": []}\n',
        ),
        command("lint", "train.py", "--tf", "2.21.0", "--baseline", "list.json", "--write-baseline"),
        ("list.json",),
        ("linter/lint.py:write_baseline",),
        # A script that cannot be read is a finding, too.
        is_whole=lambda path: "baseline_version" in json.loads(path.read_bytes()),
    ),
    "ignore": Victim(
        holding(envlock__lock=LOCK, pyproject__toml=PYPROJECT),
        command("ignore", "cpu.quota", "--reason", "it may differ"),
        ("envlock.lock", "pyproject.toml"),
        ("cli/ignore.py:ignore", "lock/settings_changes.py:_write"),
    ),
    "init": Victim(
        holding(pyproject__toml=b'[project]\nname = "mine"\n'),
        command("init"),
        ("pyproject.toml",),
        ("lock/settings_changes.py:_write",),
    ),
    "export": Victim(
        holding(envlock__lock=encode(lock_document(PROVEN)), pylock__toml=b"# old\n"),
        command("export", "--format", "pylock", "-o", "pylock.toml"),
        ("pylock.toml",),
        ("cli/export.py:_write",),
    ),
    "export --wheelhouse": Victim(
        _wheels,
        command("export", "--wheelhouse", "wheelhouse"),
        tuple(f"wheelhouse/{name}" for name in NAMES),
        keeps=("wheelhouse",),
    ),
    "capture --hashes": Victim(
        _given,
        lambda: index.PackageIndex(index.Target("3.11", "cp311", ("any",)), Path("../cache")).find(
            [index.Wanted(NAMES[1][:2], "1.0")]
        ),
        (f"../cache/wheels/{hashlib.sha256(CONTENT[f'/files/{NAMES[1]}']).hexdigest()}/{NAMES[1]}",),
        ("packages/index.py:_fetch", "packages/index.py:_find"),
        replaced((index.PackageIndex, "_run", _run_pip)),
    ),
    "the archive of a standalone Python": Victim(
        holding(python__tar__gz=b"old"),
        lambda: archives.download(
            cast("Any", SimpleNamespace(fetch=_fetch)),
            "http://127.0.0.1/",
            Path("python.tar.gz"),
            sha256=None,
            size=None,
        ),
        ("python.tar.gz",),
        ("packages/archives.py:download",),
    ),
    "hash --add-wheel": Victim(
        _given,
        lambda: into_cache(Path(NAMES[1]), Path("../cache")),
        (f"../cache/wheels/{hashlib.sha256(CONTENT[f'/files/{NAMES[1]}']).hexdigest()}/{NAMES[1]}",),
        ("packages/local_wheels.py:into_cache",),
    ),
    "fleet report": Victim(
        holding(pyproject__toml=b""),
        REPORT,
        ("reports/j1/rank-0.json",),
        keeps=("reports",),
    ),
    "fleet check --vetted": Victim(
        _known,
        _ranked(command("fleet", "check", "reports", "--vetted", "nodes.txt")),
        ("nodes.txt",),
        ("workflows/fleet.py:write_vetted",),
        _after(_same, REPORT),
        is_whole=lambda path: path.read_bytes() == b"n0\n",
        may_be_gone=True,  # a report that cannot be read vets no node
    ),
    "build --output": Victim(
        _context,
        command("build", "-q", "--output", "context"),
        ("context", "envlock.lock"),
        ("image/payload.py:write_context", "cli/build.py:_write"),
        replaced((build, "prepare_build", _supplied)),
        may_be_gone=True,
    ),
    "build --pin": Victim(
        holding(envlock__lock=LOCK),
        command("build", "-q", "--pin"),
        ("envlock.lock",),
        ("cli/build.py:_pin",),
        replaced((build_command, "pin", _pinned)),
    ),
    "build": Victim(
        _built,
        command("build", "-q"),
        ("envlock.lock",),
        ("cli/build.py:_build", "image/payload.py:write_context"),
        replaced((facade, "build", _image)),
    ),
    "stamp": Victim(
        holding(envlock__lock=LOCK, model__keras=_model()),
        lambda: facade.stamp("model.keras", "envlock.lock"),
        ("model.keras",),
    ),
    "stamp, of a SavedModel": Victim(
        holding(envlock__lock=LOCK, saved___saved_model__pb=b"", saved___assets__extra___envlock__json=b"{}"),
        lambda: facade.stamp("saved", "envlock.lock"),
        ("saved/assets.extra/envlock.json",),
    ),
    "repeat --save": Victim(
        holding(train__py=SCRIPT),
        command("repeat", "train.py:step", "--runs", "2", "--save", "saved"),
        ("saved",),
        ("evidence/repeat/repeat.py:repeat",),
        is_whole=_are_whole_results,
    ),
    "repeat --html": Victim(
        holding(a___runs__jsonl=RUNS, b___runs__jsonl=RUNS, page__html=b"old"),
        command("repeat", "--compare", "a", "b", "--html", "page.html"),
        ("page.html",),
        ("cli/repeat.py:repeat",),
        _drawing,
    ),
    "diverge record": Victim(
        holding(train__py=SCRIPT, a__trace=b"old"),
        command("diverge", "record", "train.py:step", "-o", "a.trace"),
        ("a.trace",),
        ("evidence/diverge/trace_recording.py:record",),
        replaced((trace_recording, "observe", _traced)),
    ),
    "the note on a project's data": Victim(
        _uncached,
        lambda: content_notes.write_note("data", Survey([]), "sha256:00", 0),
        (f"../{NOTES}",),
        ("workflows/content_notes.py:write_note",),
        is_whole=lambda notes: all(note.read_bytes() == NOTE for note in notes.iterdir() if len(note.name) == 64),
    ),
    "the note on a built image": Victim(
        _uncached,
        lambda: known_images.remember(IMAGE, "0" * 64, os.environ),
        (f"../cache/envlock/{known_images.PART}",),
        ("image/known_images.py:_write",),
        is_whole=lambda notes: all(
            note.read_text() == IMAGE.image_id for note in notes.iterdir() if not note.name.startswith(".")
        ),
    ),
    "an overlay": Victim(
        holding(overlays___note=b""),
        lambda: install_overlay(Wanted("aa", "1.0"), Path("overlays"), None),
        ("overlays/aa-1.0-key",),
        ("packages/overlay.py:install_overlay",),
        replaced((overlay, "launch", SimpleNamespace(ask=_overlaid)), (overlay, "_make_key", lambda *_: "key")),
        is_whole=lambda folder: (folder / "a.py").read_bytes() == b"1",
    ),
    "envlock.save": Victim(
        holding(envlock__lock=LOCK),
        lambda: facade.save(validate(json.loads(OTHER), "x"), "envlock.lock"),
        ("envlock.lock",),
        (),
    ),
}
"""By command."""
