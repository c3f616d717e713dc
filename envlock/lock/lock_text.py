"""A lockfile as text: a heading for each section, a line for each fact."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from envlock.runtime.facts import Unavailable, is_same, iter_leaves
from envlock.runtime.machines import describe_machine, list_profiles
from envlock.runtime.report import clean, count, show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.runtime.machines import Profile

LEFT_OUT = {
    "state": "reads or changes a variable, an iterator or a table",
    "text": "takes text",
    "random": "draws from a generator of its own",
    "control": "a function whose operations TensorFlow does not show",
    "unlisted": "not in the table of operations that are safe to run from a lockfile",
    "large": "tensors of more than 512 MiB",
    "shape": "the shape of its result depends on data",
    "empty": "its result has no numbers",
    "failed": "does not compute on inputs that are made up",
    "unstable": "its bits differ from call to call",
    "ended": "ends the process",
    "time": "the time for computing was up",
    "room": "more than 500 operations",
}
"""Why an operation of a program is not computed again, by its word in the lockfile."""


def render_lock(document: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Yield (style, line) for the document of a lockfile."""
    facts = document["facts"]
    yield from _render_head(document)
    for name in facts:
        if name == "cuda":
            yield from _render_cuda(facts[name])
        elif name not in ("packages", "environ"):
            yield from _render_section(name, facts[name])
    yield from _render_machines(document)
    # The two longest sections come last, so that everything above them fits a screen.
    if "environ" in facts:
        yield from _render_variables(facts["environ"] or {})
    if "packages" in facts:
        yield from _render_packages(facts["packages"] or {})
    if "program" in document.get("numerics", {}):
        program = document["numerics"]["program"]
        yield from render_coverage(program["targets"], program["conditions"])
    yield from _render_data(document.get("data", {}))
    if document["unavailable"]:
        yield "title", "could not be collected"
    for path, entry in document["unavailable"].items():
        yield "unknown", f"  {clean(path)}: {clean(entry['reason'])}"


def _render_head(document: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Yield the version that wrote the lockfile, its policy, and its project."""
    policy = document["policy"]
    head = f"lock_version {document['lock_version']}, {clean(document['created_by'])}"
    head += f", policy {policy['name']}"
    for path, rule in policy["overrides"].items():
        head += f", {clean(path)}: {clean(rule)}"
    yield "plain", head
    project = document.get("project", {})
    about = []
    if project.get("name"):
        about.append(clean(project["name"]))
    if "commit" in project:
        about.append(describe_commit(project))
    if about:
        yield "plain", f"project: {', '.join(about)}"
    for line in count_held(document):
        yield "plain", clean(line)


def count_held(document: Mapping[str, Any]) -> list[str]:
    """Return a line on how many packages of a lockfile are held; empty without entry points."""
    project = document.get("project", {})
    if "held" not in project:
        return []
    packages = set(document["facts"].get("packages") or ())
    observed = set(project.get("observed", ()))
    held = packages & (set(project["held"]) | observed)
    known = f"{', '.join(project['entry'])} can import them"
    if observed:
        known += f"; runs have used {len(packages & observed)}"
    return [f"held: {len(held)} of {count(len(packages), 'package')} ({known})"]


def describe_commit(project: Mapping[str, object]) -> str:
    """Return the commit of a project as text."""
    text = f"commit {str(project['commit'])[:12]}"
    if project.get("dirty"):
        text += " with changes"
    return text


def _render_machines(document: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Yield the differences of each other machine from the first, whose facts are above."""
    first, *others = list_profiles(document)
    left = _flatten(first)
    for number, machine in enumerate(others, 2):
        yield "title", f"machine {number} of {1 + len(others)}: {describe_machine(machine)}"
        right = _flatten(machine)
        for path in sorted({**left, **right}):
            if path not in right:
                yield "plain", f"  {clean(path):<26} absent"
            elif path not in left or not is_same(left[path], right[path]):
                yield "plain", f"  {clean(path):<26} {show(right[path])}"


def _flatten(machine: Profile) -> dict[str, object]:
    """Return every fact of a machine by its path, including those that could not be collected."""
    facts: dict[str, object] = dict(iter_leaves(machine["facts"]))
    for path, entry in machine["unavailable"].items():
        facts[path] = Unavailable(entry["reason"], entry["code"])
    return facts


def _name_section(name: str, section: Mapping[str, object] | None) -> str:
    if section is None:
        return f"{name}: none"
    return name


def _render_section(name: str, section: Mapping[str, object] | None) -> Iterable[tuple[str, str]]:
    yield "title", _name_section(name, section)
    for path, value in iter_leaves(dict(sorted((section or {}).items()))):
        yield "plain", f"  {clean(path):<26} {show(value)}"


def _render_cuda(section: Mapping[str, object] | None) -> Iterable[tuple[str, str]]:
    """Yield a line for each library: its version, the rule that found its file, and the file."""
    yield "title", _name_section("cuda", section)
    for key, library in (section or {}).items():
        if not isinstance(library, dict):
            yield "plain", f"  {clean(key):<26} {show(library)}"
        elif library.get("linkage") not in ("absent", None):
            if library["linkage"] == "static":
                found = "linked statically"
            else:
                found = show(library.get("resolved_by"))
            if library.get("file"):
                found += f", {show(library['file'])}"
            yield "plain", f"  {clean(key):<26} {show(library.get('version'))} ({found})"


def _render_variables(variables: Mapping[str, str | None]) -> Iterable[tuple[str, str]]:
    present = sorted(name for name, value in variables.items() if value is not None)
    yield "title", f"environ: {len(present)} set, {len(variables) - len(present)} unset"
    for name in present:
        yield "plain", f"  {clean(name)}={show(variables[name])}"


def _render_data(section: Mapping[str, Mapping[str, Any]]) -> Iterable[tuple[str, str]]:
    if section:
        yield "title", "data, which is not part of the environment"
    for path, entry in section.items():
        amount = f"{count(entry['files'], 'file')}, {count(entry['bytes'], 'byte')}"
        yield "plain", f"  {clean(path):<26} {amount}, {clean(str(entry['content'])[:19])}"


def _render_packages(packages: Mapping[str, Mapping[str, Any]]) -> Iterable[tuple[str, str]]:
    yield "title", f"packages: {len(packages)}"
    for name, package in sorted(packages.items()):
        line = f"  {clean(name)} {show(package.get('version'))}"
        origin = package.get("origin")
        if origin:
            line += f" from {show(origin.get('url'))}"
            commit = origin.get("commit")
            if commit:
                line += f" at {commit[:12]}"
            if origin.get("editable"):
                line += " (editable)"
        yield "plain", line


def render_coverage(
    targets: Mapping[str, Mapping[str, Any]], conditions: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Yield (style, line): how many operations of each program are covered, and why the others are
    not.
    """
    for name, target in targets.items():
        operations = count(target["distinct"], "distinct operation")
        covered = f"{target['covered']} of {operations} covered"
        yield "title", f"{clean(name)}: {covered}; {describe_conditions(conditions)}"
        for reason, kinds in target["left_out"].items():
            names = [
                f"{number} {clean(kind)}" if number > 1 else clean(kind)
                for kind, number in kinds.items()
            ]
            yield "unknown", f"  not covered: {', '.join(names)} ({LEFT_OUT[reason]})"
        if target.get("cut"):
            why = "the time for noting operations was up"
            yield "unknown", f"  not covered: what it runs later ({why})"


def describe_conditions(head: Mapping[str, Any]) -> str:
    """Return the conditions of a canary in one line."""
    threads = f"{head['intra_op_threads']} intra-op and {head['inter_op_threads']} inter-op threads"
    determinism = f"op determinism {head['determinism']}"
    return f"{clean(head['device'])}, {head['execution']}, {threads}, {determinism}"
