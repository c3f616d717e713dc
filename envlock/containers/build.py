"""From a plan to an image that is known to be the locked environment, and from that back into the lock."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from envlock.containers.base import Chosen
from envlock.containers.engines.container import Start
from envlock.containers.engines.engine import Built, Engine, Say
from envlock.containers.payload import write_context
from envlock.containers.plan import BuildPlan
from envlock.containers.verification import Verdict, answer, differing, verify
from envlock.lock.drafts import draft_folder
from envlock.lock.models import Image
from envlock.runtime.errors import OutsideError
from envlock.runtime.version import __version__

EMPTY_LAYER = "sha256:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef"
"""A tar of nothing: one builder makes a layer of an instruction that changes no file, the other makes none."""

CONFIG = ("Env", "Entrypoint", "Cmd", "WorkingDir", "User", "Labels")
"""What of an image's config says how it runs; the rest says when and by whom it was built."""


@dataclass(frozen=True)
class Wish:
    """What is wanted of a build."""

    tag: str | None = None
    network: str = "none"
    gpus: bool = False
    no_cache: bool = False
    wheelhouse: Path = Path("wheelhouse")


@dataclass(frozen=True)
class Outcome:
    """An image, whether it is the locked environment, and what the lock keeps of it."""

    built: Built
    verdict: Verdict | None
    section: Image


def build(plan: BuildPlan, chosen: Chosen, engine: Engine, wish: Wish, say: Say) -> Outcome:
    """Build an image and verify it inside; it gets its name, if any, when it is the locked environment.

    Raises:
        LockfileError: something of the lock must not enter an image.
        OutsideError: a wheel is missing or wrong, the engine failed, or the image does not answer.
    """
    built = _build(plan, chosen, engine, wish, say)
    verdict = None
    if plan.verified and plan.lock is not None:
        verdict = verify(
            json.loads(plan.lock),
            partial(engine.run, built.image_id, start=Start(gpus=wish.gpus)),
            installed=plan.venv != "none",
        )
    if wish.tag is not None and (verdict is None or verdict.image.match):
        engine.tag(built.image_id, wish.tag)
    return Outcome(built, verdict, _section(plan, chosen, built))


def check(
    plan: BuildPlan, chosen: Chosen, engine: Engine, wish: Wish, say: Say, old: Image
) -> tuple[Image, list[str]]:
    """Build again and return what was built, and how it differs from what the lock has.

    Raises:
        LockfileError, UsageError, OutsideError: as `build`.
    """
    built = _build(plan, chosen, engine, wish, say)
    new = _section(plan, chosen, built)
    lines = []
    if old.base != new.base:
        lines.append(f"base: locked {old.base}, now {new.base}")
    if old.config != new.config:
        lines.append("the variables, entrypoint, command, folder, user or labels differ")
    if _full(old.layers) != _full(new.layers):
        lines.append("the layers differ")
        files = _files(plan, engine, old.id, new.id)
        lines += files or ["no file differs; the builder writes its own timestamps"]
    if new.id != old.id:
        engine.discard(built)
    return new, lines


def _build(plan: BuildPlan, chosen: Chosen, engine: Engine, wish: Wish, say: Say) -> Built:
    with draft_folder(None) as folder:
        context = (
            folder / "context"
        )  # it is renamed into its place, and what is renamed is not held
        write_context(plan, wish.wheelhouse, context)
        return engine.build(
            context,
            epoch=plan.epoch,
            platform=chosen.kept.platform,
            network=wish.network,
            on_line=say,
            no_cache=wish.no_cache,
        )


def _section(plan: BuildPlan, chosen: Chosen, built: Built) -> Image:
    base = plan.base
    config = None
    if base.entrypoint is not None:
        config = {
            "entrypoint": list(base.entrypoint),
            "command": list(base.command or ()),
            "environ": dict(base.environ or ()),
        }
    return Image.model_validate(
        {
            "id": built.image_id,
            "lock": hashlib.sha256(plan.lock).hexdigest() if plan.lock is not None else None,
            "wheels": [wheel.name for wheel in plan.wheels],
            "envlock": __version__,
            "layers": list(built.layers),
            "config": digest_of(built.config),
            "base": chosen.kept.digest,
            "base_config": config,
            "deterministic": plan.deterministic,
            "container": plan.added.recorded,
            "epoch": plan.epoch,
            "engine": built.engine,
            "engine_version": built.engine_version,
        }
    )


def digest_of(config: Mapping[str, Any]) -> str:
    """Return the SHA-256 of what a config says of how the image runs; null and empty are one."""
    kept = {name: config.get(name) or None for name in CONFIG}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode("utf-8")).hexdigest()


def _full(layers: list[str]) -> list[str]:
    return [layer for layer in layers if layer != EMPTY_LAYER]


def _files(plan: BuildPlan, engine: Engine, old: str, new: str) -> list[str]:
    argv = ["--files", str(plan.epoch)]
    try:
        before = answer(partial(engine.run, old), argv)
    except OutsideError as error:  # the image of the lock is on another machine, or was removed
        return [f"the files that differ are unknown: {error.message}"]
    return differing(before, answer(partial(engine.run, new), argv))
