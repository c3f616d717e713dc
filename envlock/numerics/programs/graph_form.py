"""The graph of a function in one form: independent of names, and of the order in which nodes were made. Pure."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

COMPILED = "compiled by XLA"
"""Stands for the body of a function that XLA compiles: its module is the evidence for it."""
RECURSION = "calls itself"
UNKNOWN = "unknown function"
SMALL = 10
"""Values of a constant that XLA prints; larger ones stand as `{...}` in its text."""


@dataclass(frozen=True)
class Node:
    """A node: everything that decides what it computes, and where its inputs come from."""

    name: str
    kind: str
    inputs: tuple[str, ...]
    device: str
    attributes: tuple[tuple[str, str], ...]
    calls: tuple[tuple[str, tuple[str, ...]], ...]
    size: int = 0


@dataclass(frozen=True)
class Body:
    """The body of a function.

    Attributes:
        inputs: the names of its arguments, in order.
        types: their types.
        nodes: in the order in which they were made.
        outputs: what it returns, as references to nodes.
        control: nodes that run although nothing is returned of them.
        is_compiled: whether XLA compiles it.
    """

    inputs: tuple[str, ...]
    types: tuple[str, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    control: tuple[str, ...]
    is_compiled: bool


@dataclass
class Forms:
    """The forms of functions that call each other; each is made once."""

    bodies: Mapping[str, Body | None]
    digests: dict[str, str] = field(default_factory=dict)
    compiled: list[str] = field(default_factory=list)
    """Names of the functions that XLA compiles, in the order in which they were met."""
    unknown: list[str] = field(default_factory=list)
    """Names of functions that TensorFlow does not show."""
    nodes: int = 0
    """How many nodes are in all functions that XLA does not compile."""

    def describe(self, name: str) -> str:
        """Return the digest of a function's form, or a word for what has none."""
        if name in self.digests:
            return self.digests[name]
        body = self.bodies.get(name)
        if body is None:
            self.unknown.append(name)
            return UNKNOWN
        if body.is_compiled:
            self.compiled.append(name)
            self.digests[name] = COMPILED
            return COMPILED
        self.digests[name] = RECURSION
        lines = self.render(body)
        self.nodes += len(lines) - 1
        self.digests[name] = hash_text("\n".join(lines))
        return self.digests[name]

    def render(self, body: Body) -> list[str]:
        """Return a line for each node that runs, in one order, and one for what is returned."""
        nodes = select_running(body)
        own = {node.name: self._describe_node(node) for node in nodes}
        arguments = {name: f"@{number}" for number, name in enumerate(body.inputs)}
        order = sort_nodes(nodes, own, arguments)
        numbers = {name: f"%{number}" for number, name in enumerate(order)}
        places = {**arguments, **numbers}
        by_name = {node.name: node for node in nodes}
        lines = []
        for name in order:
            inputs = show_inputs(by_name[name].inputs, places)
            lines.append(f"{numbers[name]} = {own[name]} ({', '.join(inputs)})")
        outputs = ", ".join(show_reference(each, places) for each in body.outputs)
        control = ", ".join(sorted(places.get(name, "") for name in body.control))
        lines.append(f"return {outputs} after {control}; {' '.join(body.types)}")
        return lines

    def _describe_node(self, node: Node) -> str:
        """Return what a node computes, without its inputs."""
        parts = [node.kind, node.device]
        parts += [f"{name}={value!r}" for name, value in node.attributes]
        for name, functions in node.calls:
            parts.append(f"{name}=[{' '.join(map(self.describe, functions))}]")
        return " ".join(parts)

    def list_constants(self) -> list[str]:
        """Return the digests of the large constants in functions that XLA compiles, sorted: XLA's text leaves them out."""
        found = []
        seen: set[str] = set()
        pending = list(self.compiled)
        while pending:
            name = pending.pop()
            body = self.bodies.get(name)
            if body is None or name in seen:
                continue
            seen.add(name)
            for node in body.nodes:
                if node.size > SMALL:
                    found += [value for _, value in node.attributes if "[" in value]
                for _, functions in node.calls:
                    pending += functions
        return sorted(found)


def hash_text(text: str) -> str:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def split_reference(reference: str) -> tuple[str, str]:
    """Return the name of a node, and which of its outputs is meant; `^` for its end."""
    if reference.startswith("^"):
        return reference[1:], "^"
    name, _, output = reference.partition(":")
    return name, output


def show_reference(reference: str, places: Mapping[str, str]) -> str:
    """Return a reference with the place of its node instead of the name."""
    name, output = split_reference(reference)
    return f"{places.get(name, '')}:{output}"


def show_inputs(references: Sequence[str], places: Mapping[str, str]) -> list[str]:
    """Return the inputs of a node; the order of those that it only waits for means nothing."""
    data = []
    waits = []
    for each in references:
        shown = show_reference(each, places)
        if each.startswith("^"):
            waits.append(shown)
        else:
            data.append(shown)
    return [*data, *sorted(waits)]


def select_running(body: Body) -> list[Node]:
    """Return the nodes on which something depends that is returned, or that must run: TensorFlow drops the others."""
    by_name = {node.name: node for node in body.nodes}
    pending = [split_reference(each)[0] for each in (*body.outputs, *body.control)]
    running: set[str] = set()
    while pending:
        name = pending.pop()
        if name in running or name not in by_name:
            continue
        running.add(name)
        pending += [split_reference(each)[0] for each in by_name[name].inputs]
    return [node for node in body.nodes if node.name in running]


def sort_nodes(
    nodes: Sequence[Node], own: Mapping[str, str], arguments: Mapping[str, str]
) -> list[str]:
    """Return the names of nodes in an order that follows from what they compute.

    Each node comes after its inputs; of those that could be next, the one whose whole history has the smallest digest.
    Only nodes with one history keep the order in which they were made. Nodes in a circle, which only graphs of
    TensorFlow 1 have, come last, as they were made.
    """
    waiting = {}
    users: dict[str, list[str]] = {}
    names = {node.name for node in nodes}
    for node in nodes:
        needed = {split_reference(each)[0] for each in node.inputs} & names
        waiting[node.name] = len(needed)
        for each in needed:
            users.setdefault(each, []).append(node.name)
    by_name = {node.name: node for node in nodes}
    made = {node.name: number for number, node in enumerate(nodes)}
    histories: dict[str, str] = dict(arguments)
    ready: list[tuple[str, int, str]] = []

    def add(name: str) -> None:
        inputs = show_inputs(by_name[name].inputs, histories)
        histories[name] = hash_text(f"{own[name]} {inputs}")
        heapq.heappush(ready, (histories[name], made[name], name))

    for node in nodes:
        if waiting[node.name] == 0:
            add(node.name)
    order = []
    while ready:
        name = heapq.heappop(ready)[2]
        order.append(name)
        for user in users.get(name, ()):
            waiting[user] -= 1
            if waiting[user] == 0:
                add(user)
    return order + [node.name for node in nodes if node.name not in histories]
