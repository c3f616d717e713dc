"""Write the environment of an image into a lockfile, without installing anything in the image."""

from __future__ import annotations

from collections.abc import Mapping

from envlock.containers.engines.find import find
from envlock.containers.inside import look_inside
from envlock.lock.creation import capture
from envlock.lock.models import Lockfile
from envlock.runtime.policies import DEFAULT
from envlock.workflows.progress import SILENT, Progress


def capture_image(
    image: str,
    policy: str = DEFAULT,
    overrides: Mapping[str, str] | None = None,
    *,
    python: str | None = None,
    engine: str = "auto",
    gpus: bool = False,
    project: Mapping[str, object] | None = None,
    progress: Progress = SILENT,
) -> Lockfile:
    """Return a lockfile of the environment inside an image; nothing is written, and the container
    that collected the facts is removed.

    The lockfile names the image as its base, by digest, where a registry has given it one.

    Args:
        image: its name, with a tag or digest, or its ID; pulled if the engine does not have it.
        policy: how strictly the environment is compared later.
        overrides: rules of the project's own, by path pattern.
        python: the interpreter inside; the first `python3` or `python` on the image's PATH when not
            given.
        engine: `auto`, or an engine of `envlock.containers.engines.ENGINES`.
        gpus: with this machine's GPUs.
        project: as `capture` takes it.
        progress: shows what is being done.

    Raises:
        LockfileError: the policy or a rule does not exist.
        UsageError: there is no such engine.
        FactError: the image has no Python, or none that can tell.
        OutsideError: the engine failed, or there is no such image for its platform.
    """
    runner = find(engine)
    progress.say(f"capturing inside {image}")
    found = look_inside(runner, image, python, gpus=gpus, say=progress.line)
    lock = capture(policy, overrides, found.snapshot, project)
    if found.base is None:
        return lock
    return lock.model_copy(update={"base_image": found.base})
