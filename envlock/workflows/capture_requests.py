"""What a capture is asked for, apart from what captures: the command line loads these first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.guest.target import Target
    from envlock.packages.hash import HashRequest


@dataclass(frozen=True)
class Contents:
    """What a lockfile is to hold beside the facts.

    Attributes:
        hashes: also the exact wheel of every package, found as this says.
        canary: also the canary, computed in TensorFlow.
        only: path patterns of the facts that are renewed; the others stay as they are in the
            lockfile that is renewed.
        project: its `commit`, whether it is `dirty`, and the normalised `name` of its own package,
            which is left out.
        entry: programs and modules of the project in the current folder; only packages that they
            import are held. None for those of the lockfile that is renewed.
        programs: programs that the canary also covers, by name: each is run for two steps, and
            every operation that it runs is then computed alone. None for those of the canary of the
            lockfile that is renewed.
        data: input files and folders by their paths in the project of the current folder. None for
            no data.
        static: only what files say: no process imports TensorFlow to see what it loads.
    """

    hashes: HashRequest | None = None
    canary: bool = False
    only: Sequence[str] | None = None
    project: Mapping[str, object] | None = None
    entry: Sequence[str] | None = None
    programs: Mapping[str, Target] | None = None
    data: Sequence[str] | None = None
    static: bool = False


@dataclass(frozen=True)
class ImageEnvironment:
    """An environment inside an image.

    Attributes:
        image: its name, with a tag or digest, or its ID; pulled if the engine does not have it.
        python: the interpreter inside; None for the first `python3` or `python` on the image's
            PATH.
        engine: `auto`, or an engine of `envlock.image.engines.ENGINES`.
        gpus: with this machine's GPUs.
    """

    image: str
    python: str | None = None
    engine: str = "auto"
    gpus: bool = False
