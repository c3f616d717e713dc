"""Write a plan as files; only this module uses jinja2. Pure: plan in, text out.

Templates get only `Safe` text, lists of such text, and words of our own that select paragraphs;
anything else in a `{{ }}` is an error, and so is a name without a value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

import jinja2

from envlock.image.additions import HOME
from envlock.image.bases.reference import is_local, parse
from envlock.image.layers import BINDING, Layer
from envlock.image.plan import BuildPlan
from envlock.image.quoting import Safe, add_quotes, format_exec, quote_text, safe
from envlock.image.standalone import PYTHON
from envlock.runtime.report import join_first
from envlock.runtime.version import __version__

LOCK = "/opt/envlock/envlock.lock"


def dockerfile(plan: BuildPlan) -> str:
    """Return the Dockerfile of a plan.

    Raises:
        LockfileError: a value in the lockfile must not be written into it; the message names its
            path.
    """
    return _render("Dockerfile.j2", _make_fields(plan))


def dockerignore() -> str:
    """Return the .dockerignore for the Dockerfile."""
    return _render("dockerignore.j2", {"version": safe(__version__, "version", "envlock")})


def apptainer(plan: BuildPlan) -> str:
    """Return the definition file of a plan for Apptainer.

    It has the steps and the layers of the Dockerfile, in their order. Source:
    https://apptainer.org/docs/user/main/definition_files.html.

    Raises:
        LockfileError: a value in the lockfile must not be written into it; the message names its
            path.
    """
    donor = plan.base.python_from
    donor_by_digest = _drop_tag(donor, "base_image.python") if donor else None
    programs = steps(plan)
    for_build = ["runtime.tar"]
    for_image: list[str] = []
    unpacked = [f"{name}.tar" for name in programs]
    if plan.debian:
        for_build.append("apt.tar")
    for_build += [f"{layer.name}.tar" for layer in plan.layers]
    for_build.append("lock.tar")
    if plan.added.files:
        for_image.append("code.tar")
    if donor or plan.base.python_archive:
        unpacked.insert(0, "python.tar")
    if plan.base.python_archive:
        for_build.insert(0, "python.tar")
        for_image.insert(0, "python.tar")
    # Apptainer sets HOME itself.
    exports = [line for line in _make_environ(plan) if not line.startswith("HOME=")]
    fields = {
        "by_digest": _make_source(plan),
        "bootstrap": safe(_choose_bootstrap(plan), "name", "envlock"),
        "donor_by_digest": donor_by_digest,
        "take_line": _join_words(_get_take_program(plan), "envlock"),
        "step_lines": [_join_words(program, "envlock") for program in programs.values()],
        "tars_built": _check_files(for_build),
        "tars_final": _check_files(for_image),
        "built_layers": [_check_layer(name) for name in programs],
        "unpacked": _check_files(dict.fromkeys([*unpacked, *for_image])),
        "exports": exports,
        "label_lines": [_make_label(name, value) for name, value in plan.labels],
        "command_line": _join_words(plan.command, "base_image.command"),
        "entrypoint_line": _join_words(plan.entrypoint, "base_image.entrypoint"),
    }
    return _render("apptainer.def.j2", {**_make_fields(plan), **fields})


def _choose_bootstrap(plan: BuildPlan) -> str:
    return "docker-daemon" if is_local(parse(plan.base.reference)) else "docker"


def _make_source(plan: BuildPlan) -> Safe:
    """Return the name by which Apptainer finds the base."""
    if is_local(parse(plan.base.reference)):
        return safe(plan.base.reference, "tag", "base_image.reference")
    return _drop_tag(plan.base.reference, "base_image.reference")


def _drop_tag(reference: str, path: str) -> Safe:
    """Return a reference without its tag: Apptainer's library accepts no tag with a digest."""
    head, _, digest = safe(reference, "reference", path).partition("@")
    folder, slash, name = head.rpartition("/")
    return Safe(f"{folder}{slash}{name.partition(':')[0]}@{digest}")


def _join_words(words: Iterable[object], path: str) -> Safe:
    """Return words for a shell; no character in them has a meaning there."""
    return Safe(" ".join(safe(word, "word", path) for word in words))


def _make_label(name: str, value: str) -> Safe:
    return Safe(f"{safe(name, 'name', 'labels')} {safe(value, 'value', 'labels')}")


def _check_files(names: Iterable[str]) -> list[Safe]:
    return [safe(name, "file", "envlock") for name in names]


def requirements(layer: Layer) -> str:
    """Return the wheels of a layer in the form of pip's --require-hashes."""
    lines = []
    for wheel in layer.wheels:
        name = safe(wheel.name, "name", "name")
        version = safe(wheel.version, "version", wheel.name)
        digest = safe(wheel.sha256, "digest", wheel.name)
        lines.append(f"{name}=={version} --hash=sha256:{digest}\n")
    return "".join(lines)


def debian(plan: BuildPlan) -> str:
    """Return the packages that apt installs, a line each: name, architecture, version, SHA-256."""
    lines = []
    for package in plan.debian:
        path = f"base_image.apt.{package.name}"
        text = f"{package.name} {package.architecture} {package.version}"
        lines.append(f"{safe(text, 'debian', path)} {safe(package.sha256, 'digest', path)}\n")
    return "".join(lines)


def steps(plan: BuildPlan) -> dict[str, tuple[str, ...]]:
    """Return the programs that fill the layers, by layer in the order in which they run; no program
    is a shell.
    """
    python = PYTHON if plan.base.python_archive else "python3"
    install = (python, "-B", "/opt/envlock/install.py", str(plan.epoch))
    install_early: tuple[str, ...] = install
    if plan.base.python_from:
        # The step `venv` writes where the libraries of a copied Python are for the loader; before
        # that, a variable does.
        loader = ("env", "LD_LIBRARY_PATH=/usr/local/lib:/usr/local/lib/python-needs")
        install_early = (*loader, *install)
    programs: dict[str, tuple[str, ...]] = {}
    if plan.debian:
        programs["apt"] = (*install_early, "apt")
    if plan.venv != "none":
        programs["venv"] = (*install_early, "venv", plan.venv)
    folders = sorted({HOME, plan.added.workdir})
    programs["account"] = (*install, "account", plan.user, *folders)
    programs["runtime"] = (*install, "runtime")
    for layer in plan.layers:
        programs[layer.name] = (*install, "wheels", layer.name, plan.venv)
    if plan.lock is not None:
        programs["lock"] = (*install, "lock")
    return programs


def _get_take_program(plan: BuildPlan) -> tuple[str, ...]:
    """Return the program that copies Python from another image."""
    return ("python3", "-B", "/opt/envlock/donor.py", str(plan.epoch))


def _make_fields(plan: BuildPlan) -> dict[str, object]:
    """Return the values that both templates print or use to select paragraphs."""
    programs = {name: format_exec(step, "envlock") for name, step in steps(plan).items()}
    stages = dict.fromkeys(programs, "built")
    # Each in a stage of its own: when its wheels change, only its own step runs again.
    stages.update((layer.name, layer.name) for layer in plan.layers)
    # The runtime half changes with envlock, so it comes after the packages; the lockfile comes last.
    stages["runtime"] = stages.pop("runtime")
    if "lock" in stages:
        stages.pop("lock")
        stages["lock"] = "lock"
    donor = None
    if plan.base.python_from:
        donor = _check_reference(plan.base.python_from, "base_image.python")
        stages = {"python": "python", **stages}
    return {
        "archive": bool(plan.base.python_archive),
        "plan": plan,
        "mode": plan.venv,
        "verified": plan.verified,
        "version": safe(__version__, "version", "envlock"),
        "tensorflow": safe(plan.tensorflow or "unknown", "version", "facts.tensorflow.version"),
        "python_version": safe(plan.python_version or "unknown", "version", "facts.python.version"),
        "epoch": safe(str(plan.epoch), "number", "epoch"),
        "notes": _check_sentences(plan.notes, "environ"),
        "about_base": safe(_describe_base(plan), "sentence", "base_image"),
        "reference": _check_reference(plan.base.reference, "base_image.reference"),
        "donor": donor,
        "take": format_exec(_get_take_program(plan), "envlock"),
        "apt": programs.get("apt"),
        "venv": programs.get("venv"),
        "account": programs["account"],
        "runtime": programs["runtime"],
        "lock": programs.get("lock"),
        "wheels": [
            {"name": _check_layer(layer.name), "install": programs[layer.name]}
            for layer in plan.layers
        ],
        "unproven": _describe_unknown("the wheels of", plan.unknown.wheels, "facts.packages"),
        "unresolved": _describe_unknown("the Debian packages", plan.unknown.debian, "apt"),
        "layers": [
            {"name": _check_layer(name), "stage": _check_layer(stage)}
            for name, stage in stages.items()
        ],
        "skipped": _check_sentences(_list_skipped(plan), "identity.packages"),
        "about_environ": safe(_describe_environ(plan), "sentence", "envlock"),
        "environ": _join_pairs(_make_environ(plan), 4),
        "code": _check_sentences(plan.code, "recipes"),
        "labels": _join_pairs(
            (_make_pair(name, value, "labels") for name, value in plan.labels), 6
        ),
        "workdir": safe(plan.added.workdir, "path", "workdir"),
        "user": safe(plan.user, "user", "user"),
        "entrypoint": format_exec(plan.entrypoint, "base_image.entrypoint"),
        "command": format_exec(plan.command, "base_image.command"),
    }


def _describe_unknown(what: str, names: Sequence[str], path: str) -> Safe | None:
    """Return a sentence on what a build has still to find; None if there is nothing."""
    if not names:
        return None
    text = f"Not known yet, and envlock build finds it: {what} {join_first(names, 6)}."
    return safe(text, "sentence", path)


def _check_layer(name: str) -> Safe:
    return safe(name, "name", "envlock")


def _check_sentences(texts: Iterable[str], path: str) -> list[Safe]:
    return [safe(text, "sentence", path) for text in texts]


def _describe_base(plan: BuildPlan) -> str:
    texts = {
        "ngc": "NVIDIA's TensorFlow and CUDA libraries",
        "cuda": "NVIDIA's CUDA libraries",
        "captured": "The image that the lockfile was captured in",
        "wheels": "A base image without CUDA",
    }
    python_from = plan.base.python_from
    if is_local(parse(plan.base.reference)):
        pin = ", by its ID: only the engine that builds has it, under this name."
    elif "@" in plan.base.reference and (python_from is None or "@" in python_from):
        pin = ", by digest, as a tag can move."
    else:
        pin = ", not pinned: a tag can move, and --pin records the digest."
    wheels = ""
    if plan.base.route == "wheels" and any(
        wheel.name.startswith("nvidia-") and wheel.name != BINDING for wheel in plan.wheels
    ):
        wheels = " NVIDIA's CUDA libraries are installed from their wheels, by hash."
    return f"{texts[plan.base.route]}{pin}{wheels}"


def _check_reference(text: str, path: str) -> Safe:
    """Return a reference by digest, or by tag if a dry run does not know the digest."""
    kind = "reference" if "@" in text else "tag"
    return safe(text, kind, path)


def _describe_environ(plan: BuildPlan) -> str:
    if plan.lock is None:
        return "Variables that make this TensorFlow deterministic."
    own = ", the project's own" if plan.added.environ else ""
    return (
        f"The determinism variables as locked, a fixed hash seed{own}, "
        "and the places of lockfile and user."
    )


def _make_environ(plan: BuildPlan) -> Iterator[Safe]:
    """Yield the variables of the image, as `NAME="value"`."""
    for name, value in sorted(dict(plan.environ).items()):
        yield _make_pair(name, value, f"facts.environ.{name}")
    own = dict(plan.added.environ)
    # What a program prints is in the container's log when it is printed.
    own.setdefault("PYTHONUNBUFFERED", "1")
    for name, value in sorted(own.items()):
        yield Safe(f"{safe(name, 'variable', 'environ')}={quote_text(value, f'environ.{name}')}")
    yield _make_pair("ENVLOCK_LOCK", LOCK, "envlock")
    yield _make_pair("HOME", HOME, "envlock")
    if plan.venv != "none":
        yield Safe('PATH="/opt/venv/bin:${PATH}"')  # the only `$` in the file: the base's own value


def _make_pair(name: str, value: str, path: str) -> Safe:
    return Safe(f"{safe(name, 'name', path)}={add_quotes(value, path)}")


def _join_pairs(pairs: Iterable[Safe], indent: int) -> Safe:
    """Return pairs in the form of one instruction, one a line."""
    return Safe((" \\\n" + " " * indent).join(pairs))


def _list_skipped(plan: BuildPlan) -> list[str]:
    """Return a line for each reason why packages are not installed."""
    # A base has hundreds of packages: a few names are shown, and all of them are in the lockfile.
    packages: dict[str, list[str]] = {}
    for name, reason in plan.skipped:
        packages.setdefault(reason, []).append(name)
    return [f"{join_first(names, 6)}: {reason}" for reason, names in sorted(packages.items())]


def _render(name: str, fields: Mapping[str, object]) -> str:
    return _load_templates().get_template(name).render(fields)


@cache
def _load_templates() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(str(_find_folder())),
        undefined=jinja2.StrictUndefined,
        finalize=_refuse_unsafe,
        autoescape=False,  # noqa: S701 (no HTML; `_refuse_unsafe` is stricter)
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _find_folder() -> Path:
    """Return the folder of the templates: in the installed package, or at the top of a checkout."""
    package = Path(str(files("envlock")))
    installed = package / "_templates"
    if installed.is_dir():
        return installed
    return package.parent / "templates"


def _refuse_unsafe(value: object) -> object:
    if not isinstance(value, Safe | jinja2.Undefined):
        raise TypeError(f"a template printed the unchecked value {value!r}")
    return value
