"""Write the environment of an image into a lockfile, without installing anything in the image."""

from __future__ import annotations

from collections.abc import Mapping

from envlock.image.bases.reference import is_local, parse
from envlock.image.engines.find import find
from envlock.image.inside import look_inside
from envlock.lock.creation import capture
from envlock.lock.models import Lockfile
from envlock.reports.progress import SILENT, Progress
from envlock.runtime.policies import DEFAULT
from envlock.workflows.capture_requests import ImageEnvironment


def capture_image(
    image: ImageEnvironment | str,
    policy: str = DEFAULT,
    overrides: Mapping[str, str] | None = None,
    *,
    project: Mapping[str, object] | None = None,
    progress: Progress = SILENT,
) -> Lockfile:
    """Return a lockfile of the environment inside an image; nothing is written, and the container
    that collected the facts is removed.

    The lockfile names the image as its base: by digest, or by its ID if no registry has it.

    Args:
        image: the image, and how to look inside it; a text is its name.
        policy: how strictly the environment is compared later.
        overrides: rules of the project's own, by path pattern.
        project: as `capture` takes it.
        progress: shows what is being done.

    Raises:
        LockfileError: the policy or a rule does not exist.
        UsageError: there is no such engine.
        FactError: the image has no Python, or none that can collect the facts.
        OutsideError: the engine failed, or there is no such image for its platform.
    """
    if isinstance(image, str):
        image = ImageEnvironment(image)
    runner = find(image.engine)
    progress.say(f"capturing inside {image.image}")
    found = look_inside(runner, image.image, image.python, gpus=image.gpus, say=progress.line)
    lock = capture(policy, overrides, found.snapshot, project)
    if is_local(parse(found.base.name)):
        progress.say(
            f"no registry has {image.image}: `envlock build` takes it from the engine that has it now"
        )
    return lock.model_copy(update={"base_image": found.base})
