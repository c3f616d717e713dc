"""The parts of a program, each with the digest of what really runs. Pure: from the record of the guest program.

The guest is envlock/guest/programs/run_functions.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from envlock.numerics.programs.graph_form import COMPILED, Body, Forms, Node, hash_text
from envlock.numerics.programs.hlo_text import Module, parse_module

XLA, GRAPH, EAGER = "xla", "graph", "eager"
EAGERLY = "eager"
"""The part of what runs outside of all functions; with that of a model's method before it."""


@dataclass(frozen=True)
class Part:
    """A function of a program, or what runs eagerly.

    Attributes:
        name: of the function; of a Keras model `train`, `evaluate` or `predict`.
        kind: `xla`, `graph` or `eager`.
        digest: of its canonical form.
        operations: how many instructions, nodes or operations it has.
        lines: the canonical form of each; of `xla`, that of its modules.
        modules: what XLA compiled.
    """

    name: str
    kind: str
    digest: str
    operations: int
    lines: tuple[str, ...] = ()
    modules: tuple[Module, ...] = ()


@dataclass(frozen=True)
class Observed:
    """What ran of a program.

    Attributes:
        tensorflow: the version.
        switches: what decides how graphs are rewritten, and how XLA makes machine code.
        parts: by name.
        failed: parts that could not be seen, by name, and why.
        is_cut: whether the time was up before the program ended.
    """

    tensorflow: str
    switches: Mapping[str, str]
    parts: Mapping[str, Part]
    failed: Mapping[str, str] = field(default_factory=dict)
    is_cut: bool = False


def read_observed(answer: Mapping[str, object], texts: Mapping[str, str]) -> Observed:
    """Return what an answer of the guest program says; `texts` are XLA's modules by the name of their file."""
    bodies: dict[str, Body | None] = {}
    for name, body in read_mapping(answer.get("definitions")).items():
        bodies[name] = read_body(body)
    groups: dict[str, list[Mapping[str, object]]] = {}
    for called in read_list(answer.get("functions")):
        entry = read_mapping(called)
        groups.setdefault(str(entry.get("name")), []).append(entry)
    parts: dict[str, Part] = {}
    failed: dict[str, str] = {}
    for name, entries in groups.items():
        reason = find_failure(entries, bodies)
        if reason is None:
            parts[name] = make_part(name, entries, bodies, texts)
        else:
            failed[name] = reason
    for phase, operations in read_mapping(answer.get("eager")).items():
        lines = read_texts(operations)
        name = "-".join(filter(None, (phase, EAGERLY)))
        parts[name] = Part(name, EAGER, hash_text("\n".join(lines)), len(lines), lines)
    switches = {name: str(value) for name, value in read_mapping(answer.get("switches")).items()}
    return Observed(
        str(answer.get("tensorflow")),
        switches,
        parts,
        failed,
        bool(answer.get("cut")),
    )


def find_failure(
    entries: Sequence[Mapping[str, object]], bodies: Mapping[str, Body | None]
) -> str | None:
    """Return why a function has no fingerprint; None where it has one."""
    modules = 0
    needs_modules = False
    for entry in entries:
        if "failed" in entry:
            return str(entry["failed"])
        modules += len(read_list(entry.get("modules")))
        forms = Forms(bodies)
        forms.describe(str(entry.get("graph")))
        if forms.unknown:
            return "TensorFlow does not show its graph"
        needs_modules = needs_modules or bool(forms.compiled)
    # XLA keeps what it has compiled: a function that was compiled while the module was imported shows nothing later.
    if needs_modules and not modules:
        return "XLA compiled it, and showed no module: is XLA_FLAGS set by the program?"
    return None


def make_part(
    name: str,
    entries: Sequence[Mapping[str, object]],
    bodies: Mapping[str, Body | None],
    texts: Mapping[str, str],
) -> Part:
    """Return the part of all graphs of one function, in the order in which they were called first."""
    lines: list[str] = []
    modules: list[Module] = []
    nodes = 0
    for entry in entries:
        forms = Forms(bodies)
        root = str(entry.get("graph"))
        digest = forms.describe(root)
        lines.append(f"{digest} of {', '.join(read_texts(entry.get('captures')))}")
        body = bodies.get(root)
        if body is not None and digest != COMPILED:
            lines += forms.render(body)
        lines += forms.list_constants()
        nodes += forms.nodes
        modules += [parse_module(texts[file]) for file in read_texts(entry.get("modules"))]
    if not modules:
        return Part(name, GRAPH, hash_text("\n".join(lines)), nodes, tuple(lines))
    # Two modules can be compiled at the same time, and end in any order.
    found = sorted(module.text for module in modules)
    instructions = sum(len(module.instructions) for module in modules)
    digest = hash_text("\n".join([*lines, *found]))
    return Part(name, XLA, digest, instructions, (*lines, *found), tuple(modules))


def read_body(value: object) -> Body | None:
    """Return the body of a function as the guest has it; None where TensorFlow does not show it."""
    if not isinstance(value, dict):
        return None
    return Body(
        read_texts(value.get("inputs")),
        read_texts(value.get("types")),
        tuple(map(read_node, read_list(value.get("nodes")))),
        read_texts(value.get("outputs")),
        read_texts(value.get("control")),
        bool(value.get("compiled")),
    )


def read_node(found: object) -> Node:
    """Return a node as the guest has it."""
    value = read_mapping(found)
    attributes = read_mapping(value.get("attributes")).items()
    calls = read_mapping(value.get("calls")).items()
    size = value.get("size")
    if not isinstance(size, int):
        size = 0
    return Node(
        str(value.get("name")),
        str(value.get("op")),
        read_texts(value.get("inputs")),
        str(value.get("device")),
        tuple((name, str(text)) for name, text in sorted(attributes)),
        tuple((name, read_texts(functions)) for name, functions in sorted(calls)),
        size,
    )


def read_mapping(value: object) -> Mapping[str, object]:
    """Return a JSON object; an empty one for anything else."""
    if isinstance(value, dict):
        return value
    return {}


def read_list(value: object) -> Sequence[object]:
    """Return a JSON array; an empty one for anything else."""
    if isinstance(value, list):
        return value
    return ()


def read_texts(value: object) -> tuple[str, ...]:
    """Return a JSON array of texts."""
    return tuple(map(str, read_list(value)))
