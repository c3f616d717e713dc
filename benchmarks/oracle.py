"""The oracle: changes one thing of a real environment at a time, and asks whether envlock's verdict
was right.

    python benchmarks/oracle.py PYTHON [--backend NAME] [--only TEXT] [--like VERSION --lot N] [--most N] [--jobs N]
                                [--again | --report]

PYTHON is the interpreter of an environment with TensorFlow and envlock. The reference programs
(oracle/programs.py) run in it unperturbed three times, and once for each perturbation
(oracle/perturbations.toml, one value or more for each variable of envlock/data/environ.toml, and
the variables of oracle/names.txt); what differs among the three does not count as evidence. Each
result is kept, with what it depends on, in oracle.jsonl in the folder `oracle/<TensorFlow>`, so
that a run that was stopped goes on, and only what has changed is asked again. With `--like`, only
what changed bits on that version is asked, and with `--lot` as many others, drawn by lot (the same
lot each time). With `--backend jax`, Keras computes on JAX (which PYTHON must have), and only the
program of Keras runs, also under the variables of envlock/data/backends.toml. `--again` writes a
new lockfile and asks for all verdicts again, with another envlock: bits do not depend on it.
`--report` prints the table of the stored results.

*Changed and matched* is a false green: the exit code is 1 where there is one, and 4 where nothing
was judged.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import tomllib

HERE = Path(__file__).with_suffix("")
ROOT = Path(__file__).parents[1]
PROGRAMS = HERE / "programs.py"
TIMEOUT = 600  # seconds for the programs, which take 8 on an idle machine
UNPERTURBED = ("unperturbed 1", "unperturbed 2", "unperturbed 3")
POLICIES = ("strict", "bits")
BASE: dict[str, str] = {}
"""Variables of the unperturbed environment besides, by the options."""
ASKED: list[str] = []
"""The programs that run; all of them if empty."""
OF_KIND = {"bool": ["0", "1"], "integer": ["1", "3"]}


@cache
def _dump_programs() -> str:
    return ast.dump(ast.parse(PROGRAMS.read_text(encoding="utf-8")))


@dataclass(frozen=True)
class Change:
    """One perturbation: see perturbations.toml."""

    id: str
    set: dict[str, str] = field(default_factory=dict)
    prefix: tuple[str, ...] = ()
    startup: str | None = None
    keras: str | None = None
    overlay: str | None = None
    shim: str | None = None
    inert: str = ""

    @property
    def key(self) -> str:
        """What its result depends on, beside the environment."""
        asked = json.dumps([asdict(self), _dump_programs()], sort_keys=True)
        return hashlib.sha256(asked.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Outcome:
    """What a perturbation did: parts whose bits changed, and the verdict under one policy."""

    id: str
    changed: tuple[str, ...]
    crashed: bool
    match: bool
    refused: tuple[str, ...]
    inert: str

    @property
    def cell(self) -> str:
        """Return its cell of the table."""
        done = "unchanged"
        if self.crashed:
            done = "could not run"
        elif self.changed:
            done = "changed"
        said = "matched" if self.match else "refused"
        return f"{done}, {said}"


def main() -> int:
    """Run what is asked, print the table, and return the exit code."""
    options = _options()
    version = tensorflow_of(options.python)
    if options.backend:
        BASE["KERAS_BACKEND"] = options.backend
        ASKED.append("keras_fit")
        version += f"-{options.backend}"
    folder = ROOT / "oracle" / version
    folder.mkdir(parents=True, exist_ok=True)
    store = folder / "oracle.jsonl"
    possible = list(all_changes(options.backend))
    if options.only:
        possible = [each for each in possible if any(text in each.id for text in options.only)]
    if options.like:
        possible = choose_like(
            possible, results(ROOT / "oracle" / options.like / store.name), options.lot
        )
    changes = [*map(Change, UNPERTURBED), *possible]
    if not options.report:
        if options.again:
            (folder / "envlock.lock").unlink(missing_ok=True)
        prepare(options.python, folder)
        known = results(store)
        missing = [each for each in changes if options.again == (each.key in known)][: options.most]
        with ThreadPoolExecutor(options.jobs) as pool:
            answers = pool.map(
                lambda each: _asked(options.python, folder, each, known.get(each.key)), missing
            )
            for number, (change, answer) in enumerate(answers, 1):
                print(f"[{number}/{len(missing)}] {change.id}", file=sys.stderr)
                with store.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"key": change.key, **answer}) + "\n")
    known = results(store)
    found = {policy: list(outcomes(known, changes, policy)) for policy in POLICIES}
    print("\n".join(rendered(found)))
    return exit_code([each for policy in POLICIES for each in found[policy]])


def exit_code(judged: Sequence[Outcome]) -> int:
    """Return 1 where bits changed and the verdict was a match, 4 where nothing was judged: no false green of none."""
    if not judged:
        print("nothing was judged: run it without --report first", file=sys.stderr)
        return 4
    return int(any(each.cell == "changed, matched" for each in judged))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "python",
        type=lambda name: Path(name).absolute(),  # it is called in other folders
        help="interpreter of an environment with TensorFlow and envlock",
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="TEXT",
        help="only perturbations with this text in their name, or with one of several",
    )
    parser.add_argument(
        "--backend", default="", choices=["", "jax"], help="what computes for Keras"
    )
    parser.add_argument(
        "--like", metavar="VERSION", help="only what changed bits there, and what is drawn by lot"
    )
    parser.add_argument("--lot", type=int, default=0, help="how many are drawn, with --like")
    parser.add_argument("--most", type=int, help="at most so many that have no result yet")
    parser.add_argument("--jobs", type=int, default=1, help="how many at a time")
    parser.add_argument(
        "--again", action="store_true", help="ask for the verdicts of what is known again"
    )
    parser.add_argument("--report", action="store_true", help="run nothing")
    return parser.parse_args()


def tensorflow_of(python: Path) -> str:
    """Return the version of the environment's TensorFlow."""
    code = "import tensorflow as tf; print(tf.__version__)"
    return subprocess.run(
        [python, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def choose_like(
    possible: Sequence[Change], known: dict[str, dict[str, Any]], lot: int
) -> list[Change]:
    """Return the perturbations that changed bits by some results, and as many others as are asked for.

    The others are those whose names have the lowest digests: drawn by lot, and the same each time.
    """
    everything = [*map(Change, UNPERTURBED), *possible]
    changed = {each.id for each in outcomes(known, everything, POLICIES[0]) if each.changed}
    others = [each for each in possible if each.id not in changed]
    drawn = sorted(others, key=lambda each: hashlib.sha256(each.id.encode()).hexdigest())[:lot]
    return [each for each in possible if each.id in changed or each in drawn]


def all_changes(backend: str = "") -> Iterator[Change]:
    """Yield every perturbation: the table's own, then those of variables with a row, then those without one.

    With another back end of Keras, the settings of that back end come before them.
    """
    with (HERE / "perturbations.toml").open("rb") as file:
        table = tomllib.load(file)
    for row in table["change"]:
        yield Change(**{**row, "prefix": tuple(row.get("prefix", ()))})
    yield from _changes_of_backend(backend, table["values"])
    with (ROOT / "envlock" / "data" / "environ.toml").open("rb") as file:
        variables = tomllib.load(file)["variable"]
    for variable in variables:
        name = variable["name"]
        for value in table["values"].get(name) or OF_KIND[variable["records"]]:
            yield Change(f"{name}={value}", {name: value})
    with_row = {variable["name"] for variable in variables}
    for name in (HERE / "names.txt").read_text(encoding="ascii").split():
        if name not in with_row:
            for value in table["names"].get(name, ["0", "1"]):
                yield Change(f"{name}={value} (no row)", {name: value})


def _changes_of_backend(backend: str, values: dict[str, list[str]]) -> Iterator[Change]:
    """Yield the perturbations of the variables that another back end of Keras reads."""
    with (ROOT / "envlock" / "data" / "backends.toml").open("rb") as file:
        settings = tomllib.load(file)["setting"]
    for setting in settings:
        name = setting["name"]
        if setting["backend"] == backend and name.isupper():
            for value in values.get(name) or OF_KIND[setting["records"]]:
                yield Change(f"{name}={value}", {name: value})


def prepare(python: Path, folder: Path) -> None:
    """Write the lockfile of the unperturbed environment, with its canary, unless it exists."""
    lock = folder / "envlock.lock"
    if not lock.exists():
        words = ["capture", "--quiet", "--canary", "--python", python, "--output", lock]
        argv = [sys.executable, "-m", "envlock", *words]
        subprocess.run(argv, cwd=folder, env=base(folder / "home"), check=True, timeout=TIMEOUT)


def base(home: Path) -> dict[str, str]:
    """Return the variables of the unperturbed environment."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "LANG": "C.UTF-8",
        "CUDA_VISIBLE_DEVICES": "-1",
        "PYTHONHASHSEED": "0",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        **BASE,
    }


def _asked(
    python: Path, folder: Path, change: Change, known: dict[str, Any] | None
) -> tuple[Change, dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="envlock-oracle-") as scratch:
        return change, asked(python, folder, change, Path(scratch), known)


def asked(
    python: Path, folder: Path, change: Change, scratch: Path, known: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return the verdicts and the digests under a perturbation.

    Where a proof is offered, it is asked for as the message says, and the verdict is the one after it.

    Args:
        python: the interpreter of the environment.
        folder: where its lockfile is.
        change: the perturbation.
        scratch: an empty folder.
        known: an earlier answer, whose digests are kept: only the verdicts are asked for.
    """
    environ = perturbed(change, folder, scratch)
    lock = str(folder / "envlock.lock")
    program = [str(PROGRAMS)]
    if known is not None:
        program = ["-c", VERDICTS, str(PROGRAMS)]
    command = [*change.prefix, str(python), *program, lock, *ASKED]
    found = answered(command, environ, scratch)
    if found["verdicts"].get("bits", {}).get("provable"):
        words = ["verify", "-p", "bits", "--python", str(python), lock]
        argv = [*change.prefix, sys.executable, "-m", "envlock", *words]
        subprocess.run(
            argv, cwd=scratch, env=environ, capture_output=True, timeout=TIMEOUT, check=False
        )
        found = {**answered(command, environ, scratch), "proof": True}
    if known is not None:
        found["parts"] = known["parts"]
    return {"id": change.id, **found}


VERDICTS = """
import json, runpy, sys
programs = runpy.run_path(sys.argv[1])
print(json.dumps({"verdicts": {name: programs["verdict"](sys.argv[2], name) for name in programs["POLICIES"]}}))
"""
"""What programs.py says first, without the programs."""


def perturbed(change: Change, folder: Path, scratch: Path) -> dict[str, str]:
    """Return the variables of a perturbed process, and make the files that they name."""
    home = scratch / "home"
    home.mkdir()
    environ = base(home)
    if change.keras is not None:
        (home / ".keras").mkdir()
        (home / ".keras" / "keras.json").write_text(change.keras, encoding="utf-8")
    if change.startup is not None:
        (scratch / "path").mkdir()
        (scratch / "path" / "sitecustomize.py").write_text(change.startup, encoding="utf-8")
        environ["PYTHONPATH"] = str(scratch / "path")
    if change.overlay is not None:
        target = folder / "overlays" / change.overlay
        if not target.exists():
            install = [
                sys.executable,
                "-m",
                "pip",
                "install",
                "--quiet",
                "--no-deps",
                "--target",
                target,
            ]
            subprocess.run([*install, change.overlay], check=True, timeout=TIMEOUT)
        environ["PYTHONPATH"] = str(target)
    if change.shim is not None:
        source, library = scratch / "shim.c", scratch / "shim.so"
        source.write_text(change.shim, encoding="utf-8")
        subprocess.run(
            ["cc", "-O1", "-shared", "-fPIC", "-o", library, source, "-lm"], check=True, timeout=60
        )
        environ["LD_PRELOAD"] = str(library)
    environ.update(change.set)
    return environ


def answered(argv: list[str], environ: dict[str, str], scratch: Path) -> dict[str, Any]:
    """Return the answer of programs.py; one without parts where it did not come to its end.

    It runs in a folder of its own, as some variables let libraries dump into the current one.
    """
    try:
        done = subprocess.run(
            argv, cwd=scratch, env=environ, capture_output=True, timeout=TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        return {"verdicts": {}, "parts": {}, "ended": "did not end"}
    except (OSError, ValueError) as error:
        return {"verdicts": {}, "parts": {}, "ended": str(error)}
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    if done.returncode or not lines:
        words = done.stderr.decode("utf-8", "replace").splitlines()
        return {
            "verdicts": {},
            "parts": {},
            "ended": f"exit {done.returncode}: {(words or [''])[-1][:200]}",
        }
    found: dict[str, Any] = json.loads(lines[-1])
    return found


def results(store: Path) -> dict[str, dict[str, Any]]:
    """Return what is known, by key."""
    if not store.exists():
        return {}
    lines = [json.loads(line) for line in store.read_text(encoding="utf-8").splitlines()]
    return {each["key"]: each for each in lines}


def outcomes(
    known: dict[str, dict[str, Any]], changes: list[Change], policy: str
) -> Iterator[Outcome]:
    """Yield what each perturbation with a result did, against what is the same in all unperturbed runs.

    Raises:
        ValueError: the unperturbed environment does not match its own lockfile, so that no refusal says anything.
    """
    plain = [known[Change(each).key] for each in UNPERTURBED if Change(each).key in known]
    if len(plain) < len(UNPERTURBED):
        return
    if not all(each["verdicts"][policy]["match"] for each in plain):
        raise ValueError(
            f"the unperturbed environment does not match under {policy}: {plain[0]['verdicts'][policy]}"
        )
    runs = [each["parts"] for each in plain]
    stable = {
        part: value
        for part, value in runs[0].items()
        if all(other.get(part) == value for other in runs)
    }
    for change in changes:
        found = known.get(change.key)
        if found is None or change.id in UNPERTURBED:
            continue
        parts, said = found["parts"], found["verdicts"].get(policy, {})
        broken = not parts or any(part.endswith(".failed") for part in parts)
        changed = tuple(
            part for part, value in stable.items() if part in parts and parts[part] != value
        )
        refused = tuple(said.get("refused", ())) or (said.get("error") or "the process ended",)
        yield Outcome(
            change.id,
            changed,
            broken and not changed,
            bool(said.get("match")),
            refused,
            change.inert,
        )


def rendered(found: dict[str, list[Outcome]]) -> Iterator[str]:
    """Yield the table of a Markdown page, and below it every perturbation of the cells that somebody asks about."""
    cells = ("changed, matched", "changed, refused", "unchanged, matched", "unchanged, refused")
    cells += ("could not run, matched", "could not run, refused")
    counts = {policy: Counter(each.cell for each in outcomes) for policy, outcomes in found.items()}
    yield "| Bits, verdict | " + " | ".join(found) + " |"
    yield "|---|" + "---:|" * len(found)
    for cell in cells:
        yield f"| {cell} | " + " | ".join(str(counts[policy][cell]) for policy in found) + " |"
    yield "| all | " + " | ".join(str(len(outcomes)) for outcomes in found.values()) + " |"
    for policy, outcomes in found.items():
        for cell in ("changed, matched", "could not run, matched", "unchanged, refused"):
            listed = [each for each in outcomes if each.cell == cell]
            if listed:
                yield f"\n{policy}: {cell}\n"
            for each in listed:
                why = (
                    f"{len(each.changed)} parts, first {each.changed[0]}"
                    if each.changed
                    else ", ".join(each.refused)
                )
                yield f"- {each.id}: {why}" + (
                    f" (inert: {each.inert})" if each.inert and not each.match else ""
                )


if __name__ == "__main__":
    sys.exit(main())
