"""From a plan to a verified image, and to its record in the lockfile."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from envlock.image.base import Chosen
from envlock.image.engines.container_run import Start
from envlock.image.engines.engine import Built, Engine, Order, Say
from envlock.image.image_verification import Verdict, ask_entrypoint, list_differences, verify
from envlock.image.known_images import find_known, remember, remember_import, was_imported
from envlock.image.payload import (
    compute_import_digest,
    compute_inputs_digest,
    write_context,
)
from envlock.image.plan import BuildPlan
from envlock.lock.models import Image
from envlock.lock.temporary import open_draft_folder
from envlock.runtime.errors import OutsideError
from envlock.runtime.version import __version__

EMPTY_LAYER = "sha256:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef"
"""An empty tar: for an instruction that changes no file, one builder makes a layer and another does
not.
"""

CONFIG = ("Env", "Entrypoint", "Cmd", "WorkingDir", "User", "Labels")
"""The keys of a config that determine how an image runs; the others say when and how it was built."""


@dataclass(frozen=True)
class Wish:
    """The options of a build."""

    tag: str | None = None
    network: str = "none"
    gpus: bool = False
    no_cache: bool = False
    wheelhouse: Path = Path("wheelhouse")


@dataclass(frozen=True)
class Outcome:
    """An image, whether it is the locked environment, and its record for the lockfile."""

    built: Built
    verdict: Verdict | None
    section: Image


def build(plan: BuildPlan, chosen: Chosen, engine: Engine, wish: Wish, say: Say) -> Outcome:
    """Build an image and verify it inside; it gets its name only if it is the locked environment.

    An image that was built from the same inputs and verified before is taken instead, and only its
    facts are asked again. What computes is not imported again where only the project has changed.

    Raises:
        LockfileError: something in the lockfile must not enter an image.
        OutsideError: a wheel is missing or wrong, the engine failed, or the image does not answer.
    """
    inputs = compute_inputs_digest(plan)
    known = None if wish.no_cache else find_known(engine, inputs, os.environ)
    built = known or _build(plan, chosen, engine, wish, say)
    verdict = None
    if plan.verified and plan.lock is not None:
        start = Start(gpus=wish.gpus)
        imported = compute_import_digest(plan)
        may_skip = not wish.no_cache and was_imported(imported, os.environ)
        verdict = verify(
            plan.document,
            lambda argv: engine.run(built.image_id, argv, start),
            installed=plan.venv != "none",
            deep=known is None,
            imported=known is not None or may_skip,
        )
        if verdict.image.match:
            remember(built, inputs, os.environ)
            remember_import(imported, os.environ)
    if wish.tag is not None and (verdict is None or verdict.image.match):
        engine.tag(built.image_id, wish.tag)
    return Outcome(built, verdict, _make_section(plan, chosen, built))


def check(
    plan: BuildPlan, chosen: Chosen, engine: Engine, wish: Wish, say: Say, old: Image
) -> tuple[Image, list[str]]:
    """Build again and return the new image, and a line for each difference from the locked one.

    Raises:
        LockfileError, UsageError, OutsideError: as `build`.
    """
    built = _build(plan, chosen, engine, wish, say)
    new = _make_section(plan, chosen, built)
    lines = []
    if old.base != new.base:
        lines.append(f"base: locked {old.base}, now {new.base}")
    if old.config != new.config:
        lines.append("the variables, entrypoint, command, folder, user or labels differ")
    if _drop_empty(old.layers) != _drop_empty(new.layers):
        lines.append("the layers differ")
        files = _compare_files(plan, engine, old.id, new.id)
        lines += files or ["no file differs; the builder writes its own timestamps"]
    # The same ID is the image of the lockfile itself, which is not ours to remove.
    if new.id != old.id:
        engine.discard(built)
    return new, lines


def _build(plan: BuildPlan, chosen: Chosen, engine: Engine, wish: Wish, say: Say) -> Built:
    # BuildKit keeps what it got from a folder, by its name or its path, and asks only for files that
    # are others since: so each project has a folder of its own.
    name = "context-" + hashlib.sha256(os.fsencode(Path.cwd())).hexdigest()[:16]
    with open_draft_folder(None, name) as folder:
        # The context is renamed to its final place. Inside the draft folder, which is locked, no
        # other process treats it as one that was left over.
        context = folder / name
        write_context(plan, wish.wheelhouse, context)
        order = Order(
            context,
            plan.epoch,
            platform=chosen.kept.platform,
            network=wish.network,
            no_cache=wish.no_cache,
        )
        return engine.build(order, on_line=say)


def _make_section(plan: BuildPlan, chosen: Chosen, built: Built) -> Image:
    """Return the record of an image for the lockfile."""
    base = plan.base
    config = None
    if base.entrypoint is not None:
        config = {
            "entrypoint": list(base.entrypoint),
            "command": list(base.command or ()),
            "environ": dict(base.environ or ()),
        }
    lock = hashlib.sha256(plan.lock).hexdigest() if plan.lock is not None else None
    return Image.model_validate(
        {
            "id": built.image_id,
            "lock": lock,
            "wheels": [wheel.name for wheel in plan.wheels],
            "envlock": __version__,
            "layers": list(built.layers),
            "config": compute_config_digest(built.config),
            "base": chosen.kept.digest,
            "base_config": config,
            "deterministic": plan.deterministic,
            "container": plan.added.recorded,
            "epoch": plan.epoch,
            "engine": built.engine,
            "engine_version": built.engine_version,
        }
    )


def compute_config_digest(config: Mapping[str, object]) -> str:
    """Return the SHA-256 of the keys in `CONFIG`; null and empty values are equal."""
    kept = {name: config.get(name) or None for name in CONFIG}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode("utf-8")).hexdigest()


def _drop_empty(layers: list[str]) -> list[str]:
    return [layer for layer in layers if layer != EMPTY_LAYER]


def _compare_files(plan: BuildPlan, engine: Engine, old: str, new: str) -> list[str]:
    argv = ["--files", str(plan.epoch)]
    try:
        before = ask_entrypoint(partial(engine.run, old), argv)
    except OutsideError as error:  # the image of the lockfile is on another machine, or was removed
        return [f"the files that differ are unknown: {error.message}"]
    return list_differences(before, ask_entrypoint(partial(engine.run, new), argv))
