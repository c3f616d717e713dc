"""`envlock capture`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from envlock.cli.options import STDIN, PythonOption, QuietOption, config, exclusive
from envlock.cli.output import Terminal, emit, talk
from envlock.cli.parser import Command, choice, new_app
from envlock.containers.engines import AUTO, ENGINES
from envlock.runtime.errors import LockfileError, UsageError
from envlock.runtime.policy import names
from envlock.runtime.report import count
from envlock.workflows.entry_points import split
from envlock.workflows.settings import Config, about, target
from envlock.workflows.settings import policy as policy_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.models import Lockfile

app = new_app()

OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        envvar="ENVLOCK_LOCK",
        help="File to write; - for stdout. [default: the project's envlock.lock]",
        show_default=False,
    ),
]
NewPolicyOption = Annotated[
    str | None,
    choice(
        names(),
        "policy",
        *("--policy", "-p"),
        envvar="ENVLOCK_POLICY",
        help="Policy for later comparisons. [default: the project's, else the renewed lockfile's, else strict]",
        show_default=False,
    ),
]
HashesOption = Annotated[
    bool,
    typer.Option("--hashes", help="Also find the wheel of every package, like `envlock hash`."),
]
CanaryOption = Annotated[
    bool, typer.Option("--canary", help="Also compute the canary, like `envlock canary --update`.")
]
CheckOption = Annotated[
    bool,
    typer.Option(
        "--check",
        help="Write nothing; exit as `envlock verify`, or 1 if the project's settings changed.",
    ),
]
OnlyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        metavar="PATH",
        help="Renew only the facts at this path or pattern; repeatable.",
        show_default=False,
    ),
]
ForOption = Annotated[
    list[str] | None,
    typer.Option(
        "--for",
        metavar="PROGRAM",
        help="Hold only packages that this file or module can import; repeatable. With --canary, FILE:FUNCTION also "
        "runs the function, and the canary covers its operations. [default: the project's `entry`]",
        show_default=False,
    ),
]
MachineOption = Annotated[
    bool,
    typer.Option(
        "--add-machine",
        help="Add this machine to those that the lockfile accepts; its software must be the locked one.",
    ),
]
WithoutOption = Annotated[
    bool,
    typer.Option(
        "--without-tensorflow",
        envvar="ENVLOCK_WITHOUT_TENSORFLOW",
        help="Lock an environment although TensorFlow is not installed in it.",
    ),
]
ImageOption = Annotated[
    str | None,
    typer.Option(
        "--image",
        is_eager=True,  # `--python` is then a path inside, which no default stands in for
        help="Capture inside this image; installs nothing. --python is then its own interpreter.",
        show_default=False,
    ),
]
EngineOption = Annotated[
    str, choice((AUTO, *ENGINES), "container engine", "--engine", help="Engine for --image.")
]
GpusOption = Annotated[bool, typer.Option("--gpus", help="Run --image with this machine's GPUs.")]
SHOWN = 8  # changes of a renewed lockfile; version control shows the rest


@app.command(cls=Command)
def capture(
    output: OutputOption = None,
    policy: NewPolicyOption = None,
    python: PythonOption = None,
    hashes: HashesOption = False,
    canary: CanaryOption = False,
    only: OnlyOption = None,
    entry: ForOption = None,
    add_machine: MachineOption = False,
    image: ImageOption = None,
    engine: EngineOption = AUTO,
    gpus: GpusOption = False,
    without_tensorflow: WithoutOption = False,
    check: CheckOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write the live environment into a lockfile.

    TensorFlow is not imported (except with --canary). No secrets, user names or host names are recorded.

    \b
    Examples:
      envlock capture                            write or renew the project's envlock.lock
      envlock capture --python .venv/bin/python  an environment without envlock
      envlock capture --canary --for train.py:step   also of those that `step` runs
      envlock capture --add-machine              accept this machine, too
      envlock capture --image nvcr.io/nvidia/tensorflow:25.02-tf2-py3   inside an image
      envlock capture --check                    in a hook: is the lockfile that of this environment?
    """
    from envlock.workflows.capture import capture as take

    if add_machine and image is None:
        _add_machine(
            output,
            python,
            alone=not (hashes or canary or only or entry or policy or check),
            quiet=quiet,
        )
        return
    if check:
        exclusive({"--check": check}, {"--hashes": hashes, "--only": only, "--image": image})
        _check(
            output,
            policy,
            entry,
            {"python": python, "numerics": canary, "progress": Terminal(quiet)},
        )
        return
    project = config()
    path, earlier = _path(output, project)
    how: Any = {"python": python, "project": about(Path.cwd(), path), "progress": Terminal(quiet)}
    how["policy"], how["overrides"] = policy_of(policy, project, earlier)
    if image is not None:
        given = {
            "--hashes": hashes,
            "--canary": canary,
            "--only": only,
            "--for": entry,
            "--add-machine": add_machine,
        }
        lock = _inside(image, given, {**how, "engine": engine, "gpus": gpus})
    else:
        entries, programs = split(entry, project.entry, Path.cwd(), canary=canary)
        what: Any = {"hashes": hashes, "canary": canary, "earlier": earlier, "only": only}
        lock = take(
            entry=entries, programs=programs, need_tensorflow=not without_tensorflow, **what, **how
        )
    _write(path, lock, earlier, hashes=hashes, canary=canary, quiet=quiet)


def _add_machine(output: Path | None, python: Path | None, *, alone: bool, quiet: bool) -> None:
    """Add this machine to a lockfile that exists, or say that it is there already."""
    from envlock.lock.document import dump, load, save
    from envlock.workflows.capture import add_machine

    if not alone:
        hint = "renew the lockfile first, with `envlock capture` and those options, on a machine that it has"
        raise UsageError(
            "`--add-machine` changes nothing else, so it takes only `--output` and `--python`",
            hint=hint,
        )
    path = _path(output, config())[0]
    if path is None:
        raise UsageError(
            "`--add-machine` needs a lockfile, and `-` is stdout",
            hint="name the file with `--output`",
        )
    read = load(path)
    new, which = add_machine(path, python=python)
    if path.read_bytes() == dump(new):
        talk(f"{path} has this machine already: {which}", quiet=quiet)
        return
    save(new, path, read)
    talk(f"added to {path}: {which}", quiet=quiet)


def _inside(image: str, given: dict[str, Any], how: dict[str, Any]) -> Lockfile:
    """Return the lock of an image; an option that needs the environment on this machine excludes that."""
    from envlock.workflows.capture_image import capture_image

    for name in [name for name, value in given.items() if value]:
        raise UsageError(
            f"`--image` and `{name}` exclude each other",
            hint=f"leave out `{name}`: the lockfile names the image itself, and `envlock build` builds on it",
        )
    python = how.pop("python")
    return capture_image(image, python=None if python is None else str(python), **how)


def _path(output: Path | None, project: Config) -> tuple[Path | None, Lockfile | None]:
    """Return the file to write, None for stdout, and the lock that it is now."""
    if str(output) == STDIN:
        return None, None
    path = target(output, project)
    return path, _earlier(path)


def _earlier(path: Path) -> Lockfile | None:
    """Return the lock that is renewed; one that cannot be trusted is replaced."""
    from envlock.lock.document import load as read

    try:
        return read(path)
    except LockfileError:
        return None


def _write(
    path: Path | None,
    lock: Lockfile,
    earlier: Lockfile | None,
    *,
    hashes: bool,
    canary: bool,
    quiet: bool,
) -> None:
    """Write the lockfile, and say what it has and what of it deserves a warning; None: write it to stdout."""
    from envlock.lock.capture import warnings
    from envlock.lock.document import dump, save
    from envlock.packages.proven import lost
    from envlock.reports.lock import count_held

    if path is None:
        emit(dump(lock))
        return
    save(lock, path, earlier)
    talk(f"{'wrote' if earlier is None else 'renewed'} {path}: {_summary(lock)}", quiet=quiet)
    for text in count_held(lock.to_document()):
        talk(f"  {text}", quiet=quiet)
    for text in [] if earlier is None or quiet else _changes(earlier, lock):
        talk(f"  {text}")
    for text in warnings(lock):
        talk(f"warning: {text}", quiet=quiet)
    for each in [] if earlier is None else lost(earlier, lock):
        talk(f"warning: a proven wheel was lost: {each}", quiet=quiet)
    if canary:
        from envlock.workflows.canary import summary as canary_of

        talk(f"  {canary_of(lock)}", quiet=quiet)
    if hashes:
        from envlock.workflows.hash import summary

        for line in summary(lock):
            talk(line, quiet=quiet)


def _changes(earlier: Lockfile, lock: Lockfile) -> list[str]:
    """Return what a renewed lockfile says otherwise, a line each, the most important first."""
    from envlock.workflows.diff import diff

    texts = [finding.message for finding in diff(earlier, lock, names=("was", "now")).findings]
    more = [f"and {count(len(texts) - SHOWN, 'more change')}"] if len(texts) > SHOWN else []
    return texts[:SHOWN] + more if texts else ["no fact changed"]


def _check(
    output: Path | None, policy: str | None, entry: list[str] | None, how: dict[str, Any]
) -> None:
    """Write nothing, and exit as `envlock verify` does, or with 1 where the project's settings are not the lock's."""
    from envlock.workflows.gate import check

    project, quiet = config(), how["progress"].quiet
    path = None if str(output) == STDIN else target(output, project)
    if path is None:
        raise UsageError(
            "`--check` needs a file, and `-` is stdout", hint="name the file with `--output`"
        )
    wanted, _ = split(entry, project.entry, Path.cwd(), canary=how["numerics"])
    report = check(path, project, policy, entry=wanted, **how)
    if report.match:
        besides = count(len(report.allowed), "difference") if report.allowed else ""
        talk(
            f"{path} is up to date{besides and f'; {besides} that policy {report.policy} allows'}",
            quiet=quiet,
        )
        return
    talk(f"{path} is not up to date:\n{report.to_text()}", quiet=quiet)
    raise typer.Exit(report.exit_code)


def _summary(lock: Lockfile) -> str:
    facts = lock.facts
    parts = [count(len(facts.packages or {}), "package")]
    if facts.tensorflow is not None:
        parts.insert(0, f"TensorFlow {facts.tensorflow.version or 'of unknown version'}")
    if lock.identity is not None:
        proven = sum(each.wheel is not None for each in lock.identity.packages.values())
        parts[-1] += f" ({proven} with a proven wheel)"
    if lock.machines:
        parts.append(count(1 + len(lock.machines), "machine"))
    if lock.unavailable:
        parts.append(
            f"{count(len(lock.unavailable), 'fact')} could not be collected (`envlock show` lists them)"
        )
    return ", ".join([*parts, f"policy {lock.policy.name}"])
