"""`envlock capture`"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

import envlock
from envlock.cli.options import (
    STDIN,
    PythonOption,
    QuietOption,
    load_config,
    refuse_both,
)
from envlock.cli.output import Terminal, emit, talk
from envlock.cli.parser import Command, make_app, make_choice
from envlock.evidence.canary.canary_summary import describe_canary
from envlock.image.engines import AUTO, ENGINES
from envlock.lock.lock_text import count_held
from envlock.lock.lock_warnings import describe_replaced, list_warnings
from envlock.lock.settings import Config, choose_policy, choose_target, describe_project
from envlock.packages.proofs import describe_proofs, find_lost_proofs
from envlock.runtime.errors import LockfileError, UsageError
from envlock.runtime.policies import names
from envlock.runtime.report import count
from envlock.workflows.capture_requests import Contents, ImageEnvironment
from envlock.workflows.data_capture import add_data_section
from envlock.workflows.entry_points import split_programs
from envlock.workflows.gate import check as check_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.models import Lockfile
    from envlock.packages.hash import HashRequest

app = make_app()

SHOWN = 8
"""Changes of a renewed lockfile that are listed; version control shows all."""


@app.command(cls=Command)
def capture(
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            envvar="ENVLOCK_LOCK",
            help="File to write; - for stdout. [default: the project's envlock.lock]",
        ),
    ] = None,
    policy: Annotated[
        str | None,
        make_choice(
            names(),
            "policy",
            "--policy",
            "-p",
            envvar="ENVLOCK_POLICY",
            help="Policy for later comparisons. [default: the project's, else the renewed lockfile's, else strict]",
        ),
    ] = None,
    python: PythonOption = None,
    image: Annotated[
        str | None,
        typer.Option(
            "--image",
            # Parsed before `--python`, which is then a path inside the image, so that no default
            # replaces it.
            is_eager=True,
            help="Capture inside this image; installs nothing. --python is then its own interpreter.",
        ),
    ] = None,
    engine: Annotated[
        str,
        make_choice((AUTO, *ENGINES), "container engine", "--engine", help="Engine for --image."),
    ] = AUTO,
    gpus: Annotated[
        bool, typer.Option("--gpus", help="Run --image with this machine's GPUs.")
    ] = False,
    without_tensorflow: Annotated[
        bool,
        typer.Option(
            "--without-tensorflow",
            envvar="ENVLOCK_WITHOUT_TENSORFLOW",
            help="Lock an environment with none of TensorFlow, JAX and PyTorch.",
        ),
    ] = False,
    canary: Annotated[bool, typer.Option("--canary", help="Also compute the canary.")] = False,
    hashes: Annotated[
        bool,
        typer.Option("--hashes", help="Also find the wheel of every package, with its SHA-256."),
    ] = False,
    build: Annotated[
        bool,
        typer.Option(
            "--build",
            help="With --hashes: build the packages that no index has from their sources; runs their code.",
        ),
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="PATH",
            help="Renew only the facts at this path or pattern, or of a name such as `numpy` or `machine`; repeatable.",
        ),
    ] = None,
    entry: Annotated[
        list[str] | None,
        typer.Option(
            "--for",
            metavar="PROGRAM",
            help="Hold only packages that this file or module can import; repeatable. With --canary, FILE:FUNCTION also "
            "runs the function, and the canary covers its operations. [default: the project's `entry`]",
        ),
    ] = None,
    static: Annotated[
        bool,
        typer.Option(
            "--static", help="Only what files say: start no process that imports TensorFlow."
        ),
    ] = False,
    add_machine: Annotated[
        bool,
        typer.Option(
            "--add-machine",
            help="Add this machine to those that the lockfile accepts; its software must be the locked one.",
        ),
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Write nothing; exit as `envlock verify`, or 1 if the project's settings changed.",
        ),
    ] = False,
    quiet: QuietOption = False,
) -> None:
    """Write the live environment into a lockfile.

    A process of its own imports TensorFlow once, to see which files it loads; with --static, none
    does. No secrets, user names or host names are recorded.

    \b
    Examples:
      envlock capture                            write or renew the project's envlock.lock
      envlock capture --python .venv/bin/python  an environment without envlock
      envlock capture --canary --for train.py:step   also of those that `step` runs
      envlock capture --hashes                   with the wheel of each package, for `envlock export` and `sync`
      envlock capture --add-machine              accept this machine, too
      envlock capture --image nvcr.io/nvidia/tensorflow:25.02-tf2-py3   inside an image
      envlock capture --check                    in a hook: is the lockfile that of this environment?
    """
    if add_machine and image is None:
        others = (policy, canary, hashes, build, only, entry, static, check)
        _add_machine(output, python, alone=not any(others), quiet=quiet)
        return
    more = {"--only": only, "--hashes": hashes, "--static": static}
    if build and not hashes:
        raise UsageError("`--build` needs `--hashes`", hint="add `--hashes`")
    if check:
        refuse_both({"--check": check}, {**more, "--image": image})
        _check(output, policy, entry, python, Terminal(quiet), numerics=canary)
        return
    project = load_config()
    path, earlier = _find_path(output, project, quiet=quiet)
    about = describe_project(Path.cwd(), path)
    rules = choose_policy(policy, project, earlier)
    if image is not None:
        _refuse_with_image(
            {**more, "--canary": canary, "--for": entry, "--add-machine": add_machine}
        )
        inside = ImageEnvironment(
            image, os.fspath(python) if python is not None else None, engine, gpus
        )
        lock = envlock.capture_image(inside, *rules, project=about, progress=Terminal(quiet))
        lock = add_data_section(lock, project.data, Terminal(quiet))
    else:
        entries, programs = split_programs(entry, project.entry, Path.cwd(), canary=canary)
        contents = Contents(
            hashes=_choose_hashes(build=build) if hashes else None,
            canary=canary,
            only=only,
            project=about,
            entry=entries,
            programs=programs,
            data=project.data,
            static=static,
        )
        lock = envlock.capture(
            *rules,
            contents,
            python=python,
            earlier=earlier,
            need_tensorflow=not without_tensorflow,
            progress=Terminal(quiet),
        )
    if earlier is not None and not only:  # what is named is meant
        for text in describe_replaced(earlier, lock):
            talk(f"warning: {text}", quiet=quiet)
    _write(path, lock, earlier, canary=canary, quiet=quiet)
    if hashes:
        for line in describe_proofs(lock):
            talk(f"  {line}", quiet=quiet)


def _choose_hashes(*, build: bool) -> HashRequest:
    """Return how the wheels of packages are found."""
    # Start-up time: this loads HTTP, which most captures do not need.
    from envlock.packages.hash import HashRequest

    return HashRequest(build=build)


def _add_machine(output: Path | None, python: Path | None, *, alone: bool, quiet: bool) -> None:
    """Add this machine to an existing lockfile, or say that it has the machine already."""
    if not alone:
        hint = "renew the lockfile first, with `envlock capture` and those options, on a machine that it has"
        raise UsageError(
            "`--add-machine` changes nothing else, so it takes only `--output` and `--python`",
            hint=hint,
        )
    path, _ = _find_path(output, load_config(), quiet=True)  # it is read again, and has to be valid
    if path is None:
        raise UsageError(
            "`--add-machine` needs a lockfile, and `-` is stdout",
            hint="name the file with `--output`",
        )
    before = envlock.load(path)
    new, which = envlock.add_machine(path, python=python)
    if path.read_bytes() == new.to_bytes():
        talk(f"{path} has this machine already: {which}", quiet=quiet)
        return
    envlock.save(new, path, before)
    talk(f"added to {path}: {which}", quiet=quiet)


def _refuse_with_image(options: Mapping[str, object]) -> None:
    """Refuse an option that needs the environment on this machine.

    Raises:
        UsageError: such an option was given.
    """
    for name, value in options.items():
        if value:
            raise UsageError(
                f"`--image` and `{name}` exclude each other",
                hint=f"leave out `{name}`: the lockfile names the image itself, and `envlock build` builds on it",
            )


def _find_path(
    output: Path | None, project: Config, *, quiet: bool
) -> tuple[Path | None, Lockfile | None]:
    """Return the file to write, None for stdout, and its present lockfile.

    A lockfile that cannot be read is replaced, because nothing in it can be trusted.
    """
    if str(output) == STDIN:
        return None, None
    path = choose_target(output, project)
    try:
        return path, envlock.load(path)
    except LockfileError as error:
        if path.is_file():
            lost = "nothing of the old file is kept, such as its policy, rules and canary"
            talk(f"warning: {lost}: {error.message}", quiet=quiet)
        return path, None


def _write(
    path: Path | None,
    lock: Lockfile,
    earlier: Lockfile | None,
    *,
    canary: bool,
    quiet: bool,
) -> None:
    """Write the lockfile, and print what it has and which facts deserve a warning; None writes to
    stdout.
    """
    if path is None:
        emit(lock.to_bytes())
        return
    envlock.save(lock, path, earlier)
    verb = "wrote" if earlier is None else "renewed"
    talk(f"{verb} {path}: {_describe_lock(lock)}", quiet=quiet)
    for text in count_held(lock.to_document()):
        talk(f"  {text}", quiet=quiet)
    if earlier is not None and not quiet:
        for text in _list_changes(earlier, lock):
            talk(f"  {text}")
    for text in _list_warnings(earlier, lock):
        talk(f"warning: {text}", quiet=quiet)
    if canary:
        talk(f"  {describe_canary(lock)}", quiet=quiet)


def _list_changes(earlier: Lockfile, lock: Lockfile) -> list[str]:
    """Return the changes of a renewed lockfile, a line each, the most important first."""
    unchanged = ["no fact changed"]
    if earlier == lock:
        return unchanged
    report = envlock.diff(earlier, lock, names=("was", "now"))
    texts = [finding.message for finding in report.findings]
    if not texts:
        return unchanged
    if len(texts) > SHOWN:
        return [*texts[:SHOWN], f"and {count(len(texts) - SHOWN, 'more change')}"]
    return texts


def _list_warnings(earlier: Lockfile | None, lock: Lockfile) -> list[str]:
    texts = list_warnings(lock)
    if earlier is not None:
        texts += [f"a proven wheel was lost: {proof}" for proof in find_lost_proofs(earlier, lock)]
    return texts


def _check(
    output: Path | None,
    policy: str | None,
    entry: list[str] | None,
    python: Path | None,
    progress: Terminal,
    *,
    numerics: bool,
) -> None:
    """Write nothing, and exit as `envlock verify` does, or with 1 if the project's settings differ
    from the lockfile's.
    """
    project = load_config()
    if str(output) == STDIN:
        raise UsageError(
            "`--check` needs a file, and `-` is stdout", hint="name the file with `--output`"
        )
    path = choose_target(output, project)
    wanted, _ = split_programs(entry, project.entry, Path.cwd(), canary=numerics)
    report = check_settings(
        path, project, policy, entry=wanted, python=python, numerics=numerics, progress=progress
    )
    if not report.match:
        talk(f"{path} is not up to date:\n{report.to_text()}", quiet=progress.quiet)
        raise typer.Exit(report.exit_code)
    allowed = ""
    if report.allowed:
        differences = count(len(report.allowed), "difference")
        allowed = f"; {differences} that policy {report.policy} allows"
    talk(f"{path} is up to date{allowed}", quiet=progress.quiet)


def _describe_lock(lock: Lockfile) -> str:
    """Return a description of a lockfile in one line."""
    facts = lock.facts
    parts = []
    if facts.tensorflow is not None:
        parts.append(f"TensorFlow {facts.tensorflow.version or 'of unknown version'}")
    if facts.jax is not None:
        parts.append(f"JAX {facts.jax.version or 'of unknown version'}")
    if facts.torch is not None:
        parts.append(f"PyTorch {facts.torch.version or 'of unknown version'}")
    packages = count(len(facts.packages or {}), "package")
    if lock.identity is not None:
        proven = sum(package.wheel is not None for package in lock.identity.packages.values())
        packages += f" ({proven} with a proven wheel)"
    parts.append(packages)
    if lock.data is not None:
        files = sum(entry.files for entry in lock.data.values())
        parts.append(count(files, "data file"))
    if lock.machines:
        parts.append(count(1 + len(lock.machines), "machine"))
    if lock.unavailable:
        facts_unknown = count(len(lock.unavailable), "fact")
        parts.append(f"{facts_unknown} could not be collected (`envlock show` lists them)")
    return ", ".join([*parts, f"policy {lock.policy.name}"])
