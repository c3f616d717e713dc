"""A plan as files: the one place that knows jinja2. Pure: plan in, text out.

Templates get `Safe` text only, lists of it, and words of our own that choose between paragraphs; anything else in a
`{{ }}` is an error, and so is a name that nobody has given.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2

from envlock.containers.additions import HOME
from envlock.containers.layers import Layer
from envlock.containers.plan import BuildPlan
from envlock.containers.quoting import Safe, exec_form, quoted, safe
from envlock.containers.standalone import PYTHON
from envlock.runtime.version import __version__

LOCK = "/opt/envlock/envlock.lock"


def dockerfile(plan: BuildPlan) -> str:
    """Return the Dockerfile of a plan.

    Raises:
        LockfileError: a value of the lock must not stand in one; the message names its path.
    """
    return _render("Dockerfile.j2", _fields(plan))


def dockerignore() -> str:
    """Return the .dockerignore that belongs beside it."""
    return _render("dockerignore.j2", {"version": safe(__version__, "version", "envlock")})


def apptainer(plan: BuildPlan) -> str:
    """Return the definition file of a plan for Apptainer: the steps and the layers of the Dockerfile, in its order.

    Source: https://apptainer.org/docs/user/main/definition_files.html.

    Raises:
        LockfileError: a value of the lock must not stand in one; the message names its path.
    """
    donor = plan.base.python_from
    layers = list(steps(plan))
    archive = ["python.tar"] if plan.base.python_archive else []
    inside = [*archive, *(["code.tar"] if plan.added.files else []), "lock.tar"]
    order = [*(["python.tar"] if donor else archive), *(f"{name}.tar" for name in layers)]
    first = [
        *archive,
        "runtime.tar",
        *(["apt.tar"] if plan.debian else []),
        *(f"{layer.name}.tar" for layer in plan.layers),
    ]
    own = {
        "by_digest": _by_digest(plan.base.reference, "base_image.reference"),
        "donor_by_digest": donor and _by_digest(donor, "base_image.python"),
        "take_line": _shell(("python3", "-B", "/opt/envlock/donor.py", str(plan.epoch)), "envlock"),
        "step_lines": [_shell(step, "envlock") for step in steps(plan).values()],
        "tars_built": [_file(name) for name in first],
        "tars_final": [_file(name) for name in inside],
        "built_layers": [_layer(name) for name in layers],
        "unpacked": [_file(name) for name in dict.fromkeys([*order, *inside])],
        "exports": [
            line for line in _environ(plan) if not line.startswith("HOME=")
        ],  # which Apptainer sets
        "label_lines": [_label(name, value) for name, value in plan.labels],
        "command_line": _shell(plan.command, "base_image.command"),
        "entrypoint_line": _shell(plan.entrypoint, "base_image.entrypoint"),
    }
    return _render("apptainer.def.j2", {**_fields(plan), **own})


def _by_digest(reference: str, path: str) -> Safe:
    """Return a reference without its tag: Apptainer's library takes no tag beside a digest."""
    head, _, digest = safe(reference, "reference", path).partition("@")
    folder, slash, name = head.rpartition("/")
    return Safe(f"{folder}{slash}{name.partition(':')[0]}@{digest}")


def _shell(words: Iterable[object], path: str) -> Safe:
    """Return words for a shell: none has a character that means something to one."""
    return Safe(" ".join(safe(word, "word", path) for word in words))


def _label(name: str, value: str) -> Safe:
    return Safe(f"{safe(name, 'name', 'labels')} {safe(value, 'value', 'labels')}")


def _file(name: str) -> Safe:
    return safe(name, "file", "envlock")


def requirements(layer: Layer) -> str:
    """Return the wheels of a layer as pip's --require-hashes wants them."""
    lines = [
        f"{safe(wheel.name, 'name', 'name')}=={safe(wheel.version, 'version', wheel.name)} "
        f"--hash=sha256:{safe(wheel.sha256, 'digest', wheel.name)}"
        for wheel in layer.wheels
    ]
    return "".join(f"{line}\n" for line in lines)


def debian(plan: BuildPlan) -> str:
    """Return what the build installs by apt, a line a package: name, architecture, version, SHA-256."""
    return "".join(
        f"{safe(f'{each.name} {each.architecture} {each.version}', 'debian', f'base_image.apt.{each.name}')} "
        f"{safe(each.sha256, 'digest', f'base_image.apt.{each.name}')}\n"
        for each in plan.debian
    )


def steps(plan: BuildPlan) -> dict[str, tuple[str, ...]]:
    """Return the programs that fill the layers, in their order, by the layer; none is a shell."""
    python = PYTHON if plan.base.python_archive else "python3"
    install = (python, "-B", "/opt/envlock/install.py", str(plan.epoch))
    made: dict[str, tuple[str, ...]] = {}
    loader: tuple[str, ...] = ()
    if plan.base.python_from:
        loader = ("env", "LD_LIBRARY_PATH=/usr/local/lib:/usr/local/lib/python-needs")
    if plan.debian:
        made["apt"] = (*loader, *install, "apt")
    if plan.venv != "none":
        made["venv"] = (*loader, *install, "venv", plan.venv)
    made["account"] = (*install, "account", plan.user, *sorted({HOME, plan.added.workdir}))
    for layer in plan.layers:
        made[layer.name] = (*install, "wheels", layer.name, plan.venv)
    return {**made, "runtime": (*install, "runtime")}


def _fields(plan: BuildPlan) -> dict[str, Any]:
    donor = plan.base.python_from
    programs = {name: exec_form(step, "envlock") for name, step in steps(plan).items()}
    stages = {**({"python": "python"} if donor else {}), **dict.fromkeys(programs, "built")}
    return {
        "archive": bool(plan.base.python_archive),
        "plan": plan,
        "mode": plan.venv,
        "verified": plan.verified,
        "version": safe(__version__, "version", "envlock"),
        "tensorflow": safe(plan.tensorflow or "unknown", "version", "facts.tensorflow.version"),
        "python_version": safe(plan.python_version or "unknown", "version", "facts.python.version"),
        "epoch": safe(str(plan.epoch), "number", "epoch"),
        "notes": [safe(note, "sentence", "environ") for note in plan.notes],
        "about_base": safe(_about_base(plan), "sentence", "base_image"),
        "reference": _reference(plan.base.reference, "base_image.reference"),
        "donor": donor and _reference(donor, "base_image.python"),
        "take": exec_form(("python3", "-B", "/opt/envlock/donor.py", str(plan.epoch)), "envlock"),
        "apt": programs.get("apt"),
        "venv": programs.get("venv"),
        "account": programs["account"],
        "runtime": programs["runtime"],
        "wheels": [
            {"name": _layer(each.name), "install": programs[each.name]} for each in plan.layers
        ],
        "unproven": _unknown("the wheels of", plan.unknown.wheels, "facts.packages"),
        "unresolved": _unknown("the Debian packages", plan.unknown.debian, "apt"),
        "layers": [
            {"name": _layer(name), "stage": _layer(stage)} for name, stage in stages.items()
        ],
        "skipped": [safe(line, "sentence", "identity.packages") for line in _skipped(plan)],
        "about_environ": safe(_about_environ(plan), "sentence", "envlock"),
        "environ": _lines(_environ(plan), 4),
        "code": [safe(line, "sentence", "recipes") for line in plan.code],
        "labels": _lines((_pair(name, value, "labels") for name, value in plan.labels), 6),
        "workdir": safe(plan.added.workdir, "path", "workdir"),
        "user": safe(plan.user, "user", "user"),
        "entrypoint": exec_form(plan.entrypoint, "base_image.entrypoint"),
        "command": exec_form(plan.command, "base_image.command"),
    }


def _unknown(what: str, names: Sequence[str], path: str) -> Safe | None:
    """Return a sentence on what a build has still to find; None where it is nothing."""
    if not names:
        return None
    return safe(
        f"Not known yet, and envlock build finds it: {what} {_few(names)}.", "sentence", path
    )


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def _layer(name: str) -> Safe:
    return safe(name, "name", "envlock")


def _about_base(plan: BuildPlan) -> str:
    texts = {
        "ngc": "NVIDIA's TensorFlow and CUDA libraries",
        "cuda": "NVIDIA's CUDA libraries",
        "captured": "The image that the lockfile was captured in",
        "wheels": "A plain Python; CUDA libraries, if any, are installed from wheels",
    }
    pinned = "@" in plan.base.reference and "@" in (plan.base.python_from or "@")
    how = (
        "by digest, as a tag can move"
        if pinned
        else "not pinned: a tag can move, and --pin records the digest"
    )
    return f"{texts[plan.base.route]}, {how}."


def _reference(text: str, path: str) -> Safe:
    return safe(text, "reference" if "@" in text else "tag", path)


def _about_environ(plan: BuildPlan) -> str:
    if plan.lock is None:
        return "Variables that make this TensorFlow deterministic."
    own = ", the project's own" if plan.added.environ else ""
    return f"The determinism variables as locked, a fixed hash seed{own}, and the places of lockfile and user."


def _environ(plan: BuildPlan) -> Iterable[Safe]:
    variables = dict(plan.environ)
    for name, value in sorted(variables.items()):
        yield _pair(name, value, f"facts.environ.{name}")
    for name, value in plan.added.environ:
        yield Safe(f"{safe(name, 'variable', 'environ')}={quoted(value, f'environ.{name}')}")
    yield _pair("ENVLOCK_LOCK", LOCK, "envlock")
    yield _pair("HOME", HOME, "envlock")
    if plan.venv != "none":
        yield Safe('PATH="/opt/venv/bin:${PATH}"')  # the only `$` in the file: the base's own value


def _pair(name: str, value: str, path: str) -> Safe:
    return Safe(f"{safe(name, 'name', path)}={quoted(value, path)}")


def _lines(pairs: Iterable[Safe], indent: int) -> Safe:
    """Return them as one instruction takes them, a line each."""
    return Safe((" \\\n" + " " * indent).join(pairs))


def _skipped(plan: BuildPlan) -> list[str]:
    """Return a line a reason; a base has hundreds of packages, and their names are in the lock."""
    reasons: dict[str, list[str]] = {}
    for name, reason in plan.skipped:
        reasons.setdefault(reason, []).append(name)
    lines = []
    for reason, names in sorted(reasons.items()):
        lines.append(f"{_few(names)}: {reason}")
    return lines


def _render(name: str, fields: dict[str, Any]) -> str:
    return _templates().get_template(name).render(fields)


@cache
def _templates() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(str(_folder())),
        undefined=jinja2.StrictUndefined,
        finalize=_only_safe,
        autoescape=False,  # noqa: S701 (no HTML; `_only_safe` is stricter)
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _folder() -> Path:
    """Return where the templates are: in the installed package, or at the top of a checkout."""
    package = Path(str(files("envlock")))
    installed = package / "_templates"
    return installed if installed.is_dir() else package.parent / "templates"


def _only_safe(value: object) -> object:
    if not isinstance(value, Safe | jinja2.Undefined):
        raise TypeError(f"a template printed the unchecked value {value!r}")
    return value
