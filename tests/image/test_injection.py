"""A hostile lock: whatever stands at any of its strings reaches no Dockerfile, no shell and no argument as syntax."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from envlock.image import render
from envlock.image.payload import list_tars
from envlock.image.plan import Base, BuildPlan, plan
from envlock.lock.document import validate
from envlock.runtime.errors import EnvlockError, LockfileError
from tests.conftest import Command
from tests.exhaustive import exhaustive
from tests.image.plans import BASES, lock, model, without
from tests.locks import encode

MARK = "HOSTILE"
HOSTILE = [
    *(f"{MARK}\nRUN id", f"{MARK}\r\nRUN id", f"{MARK}\n", f"\n{MARK}", f"{MARK}\x0bRUN id", f"{MARK}\x85RUN id"),
    *(f"{MARK}\u2028RUN id", f"{MARK}\u2029RUN id", f"{MARK}\0", f"\x1b[31m{MARK}", f"\u202e{MARK}", f"{MARK}\ud800"),
    *(f'"{MARK}', f'{MARK}"', f'{MARK}" && id "', f"'{MARK}'", f"{MARK}\\", f"\\{MARK}\\n", f"`{MARK}`"),
    *(f"$({MARK})", f"${{{MARK}}}", f"${MARK}", f"{MARK}; id", f"{MARK} && id", f"{MARK} | id", f"<<EOF {MARK}"),
    *(f"# syntax={MARK}", f"# escape=`{MARK}", f"{MARK} # x", f"--{MARK}", f"-r{MARK}", f"@{MARK}", f"../{MARK}"),
    *(f"/{MARK}", f"{MARK}/../..", f"{{{{ {MARK} }}}}", f"{{% {MARK} %}}", f"{MARK} --hash=sha256:0", f"{MARK}[x]"),
    *(f"https://{MARK}", f"{MARK}*", f"~{MARK}", f"{MARK}=1", f"{MARK} {MARK}", MARK * 5000),
]


def strings(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where each string of a document stands; (..., None) stands for the name of the last step."""
    if isinstance(node, str):
        yield path
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        if isinstance(key, str):
            yield (*path, key, None)
        yield from strings(value, (*path, key))


def put(held: dict[str, Any], path: tuple[Any, ...], value: str) -> dict[str, Any]:
    """Return a copy with another string, or another name, there."""
    return dict(_put(held, path, value))


def _put(node: Any, path: tuple[Any, ...], value: str) -> Any:
    if path[1:] == (None,):
        return {value if key == path[0] else key: kept for key, kept in node.items()}
    changed = copy.copy(node)
    changed[path[0]] = _put(node[path[0]], path[1:], value) if path[1:] else value
    return changed


def outputs(made: BuildPlan) -> dict[str, str]:
    """Return all text that somebody else will parse."""
    return {
        "Dockerfile": render.dockerfile(made),
        "apptainer.def": render.apptainer(made),
        ".dockerignore": render.dockerignore(),
        "requirements.txt": "".join(map(render.requirements, made.layers)),
        "packages.txt": render.debian(made),
        "arguments": "\n".join([*made.entrypoint, *made.command, made.user, made.base.reference]),
        "labels": "\n".join(f"{name}={value}" for name, value in made.labels),
        "files": "\n".join(name for members in list_tars(made).values() for name in members),
    }


WHOLE = without(lock(), "mine")
PATHS = sorted(set(strings(WHOLE)), key=str)


def attempt(held: dict[str, Any], base: Base) -> dict[str, str] | EnvlockError:
    """Return what would be written, or why nothing is."""
    try:
        model = validate(held, "x.lock")
        return outputs(plan(model, replace(base, apt=model.base_image.apt if model.base_image else None), None))
    except EnvlockError as error:
        return error


def test_the_corpus_reaches_every_part_of_a_lock() -> None:
    names = {path[0] for path in PATHS}
    assert names == {"$schema", "created_by", "facts", "unavailable", "policy", "identity", "base_image", "image"} | (
        {"lock_version"}
    )
    assert len(PATHS) > 300


@exhaustive
@pytest.mark.slow
@pytest.mark.parametrize("section", sorted({str(path[0]) for path in PATHS}))
def test_nothing_hostile_becomes_syntax(section: str) -> None:
    refused = 0
    routes = itertools.cycle(BASES)  # each value meets each route many times, and each path each route
    for path in PATHS:
        for value in HOSTILE if path[0] == section else ():
            told = attempt(put(WHOLE, path, value), BASES[next(routes)])
            if isinstance(told, EnvlockError):
                assert told.exit_code == 3, (path, value, told)
                assert _names(told.message, path), (path, value, told)
                assert told.message.isprintable()
                refused += 1
            else:
                assert {name for name, text in told.items() if MARK in text} == set(), (path, value)
    assert refused > 0


def _names(message: str, path: tuple[Any, ...]) -> bool:
    """Return whether a message says where: the string, or what holds the name, or the section of another's words."""
    steps = [str(step) for step in path if step is not None]
    where = ".".join(steps[:-1] if path[-1] is None else steps)
    section = steps[0] if steps[0] == "policy" or path[-1] is None else where
    return where[:120] in message or section in message or (len(steps) == 1 and "unknown field" in message)


SAMPLE = [
    (("facts", "environ", "XLA_FLAGS"), "facts.environ.XLA_FLAGS"),
    (("facts", "tensorflow", "version"), "facts.tensorflow.version"),
    (("facts", "python", "version"), "facts.python.version"),
    (("identity", "packages", "numpy", "wheel", "name"), "identity.packages.numpy.wheel.name"),
    (("identity", "packages", "numpy", "version"), "identity.packages.numpy.version"),
    (("base_image", "name"), "base_image.name"),
    (("base_image", "digest"), "base_image.digest"),
    (("base_image", "apt", "packages", 0, "name"), "base_image.apt.packages.0.name"),
    (("image", "base_config", "entrypoint", 0), "image.base_config.entrypoint.0"),
]


VALUES = [f"{MARK}\nRUN id", f'{MARK}" && id "', f"$({MARK})", f"{MARK}\u2028RUN id"]


@pytest.mark.parametrize(("path", "named", "value"), [(*row, VALUES[at % 4]) for at, row in enumerate(SAMPLE)])
def test_the_command_line_refuses_them_by_their_path(
    path: tuple[Any, ...], named: str, value: str, envlock: Command
) -> None:
    (envlock.folder / "envlock.lock").write_bytes(encode(put(WHOLE, path, value)))
    done = envlock("build", "--dry-run")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("error: ")
    assert f"`{named}`" in done.stderr
    assert done.stderr.count("\n") == 2


def test_what_no_capture_records_is_not_set() -> None:
    held = put(WHOLE, ("facts", "environ", "LD_PRELOAD"), "/tmp/evil.so")
    with pytest.raises(LockfileError) as raised:
        plan(model(held), BASES["ngc"], None)
    assert raised.value.message == ("`facts.environ.LD_PRELOAD` cannot go into an image: invalid value of LD_PRELOAD")
