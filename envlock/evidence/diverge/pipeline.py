"""What the graph of a tf.data pipeline says about repeatability. Pure: a graph in, findings and a
digest out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from envlock.data.determinism import load_operation_groups
from envlock.data.lint_tables import find_reference, load_dataset_rules
from envlock.runtime.finding_place import Where
from envlock.runtime.report import INFO, Finding, sort_findings

Value = int | float | str | bytes | bool | None | tuple["Value", ...]

_GROUPS = load_operation_groups()
RANDOM = (_GROUPS["random"] | _GROUPS["random_images"]) - _GROUPS["generators"]
"""Operations that draw from a generator of their own kernel; their seeds are attributes."""
CHANGES = tuple(_GROUPS["changes_prefix"])
"""How the names of operations begin that change a variable, a table or a generator."""
CHANGES_NOT = ("StatefulPartitionedCall",)
"""It begins like them, and only calls a function, which is looked at itself."""
PYTHON = _GROUPS["python"]
SEEDS_AT = {
    "ShuffleDataset": 2,
    "ShuffleDatasetV3": 2,
    "ShuffleAndRepeatDataset": 2,
    "ShuffleAndRepeatDatasetV2": 2,
    "RandomDataset": 0,
    "RandomDatasetV2": 0,
}
"""Datasets that draw, and the position of the first of their two seeds among the inputs."""
UNSTABLE = frozenset(
    {"metadata", "shared_name", "container", "token", "config_proto", "executor_type", "config"}
)
"""Attributes that differ from process to process, or that say how, and not what, is computed."""
UNSEEDED = ((0, 0), (None, None))
"""The seeds of an operation without any: TensorFlow writes a seed that happens to be (0, 0) as
another one (tensorflow/python/framework/random_seed.py). Graphs that leave out what is the default
have none.
"""
SERVICE = "DataServiceDataset"


@dataclass(frozen=True)
class Node:
    """An operation: its attributes as plain values, and the functions among them by attribute."""

    name: str
    op: str
    inputs: tuple[str, ...] = ()
    attributes: Mapping[str, Value] = field(default_factory=dict)
    functions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Body:
    """A graph or the body of a function: its nodes, the names of its inputs, and what it returns."""

    nodes: tuple[Node, ...]
    arguments: tuple[str, ...] = ()
    returns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Graph:
    """A pipeline: its graph, the functions by name, and what its options say about order."""

    main: Body
    functions: Mapping[str, Body] = field(default_factory=dict)
    deterministic: bool | None = None


def graph_of(plain: Mapping[str, Any]) -> Graph:
    """Return the graph of what `graphs.plain` gives, or of the JSON made of that."""
    functions = {name: _build_body(body) for name, body in plain["functions"].items()}
    return Graph(_build_body(plain["main"]), functions, plain["deterministic"])


def _build_body(plain: Mapping[str, Any]) -> Body:
    nodes = (
        Node(name, op, tuple(inputs), attrs, inner)
        for name, op, inputs, attrs, inner in plain["nodes"]
    )
    return Body(tuple(nodes), tuple(plain["arguments"]), tuple(plain["returns"]))


def findings(graph: Graph, *, switched_on: bool) -> list[Finding]:
    """Return what makes a pipeline differ from run to run; with op determinism on, what that fixes
    is `info`.
    """
    found: list[Finding] = []
    seen: set[tuple[str, str, str]] = set()
    for rule, node, message, mended in _find_all(graph):
        if (rule, node, message) not in seen:
            seen.add((rule, node, message))
            found.append(_make_finding(rule, node, message, softened=mended and switched_on))
    return sort_findings(sorted(found, key=lambda each: each.rule))


def _make_finding(rule: str, node: str, message: str, *, softened: bool) -> Finding:
    row = load_dataset_rules()[rule]
    return Finding(
        rule,
        INFO if softened else row.severity,
        Where(operation=node),
        message=f"{message}; op determinism prevents this" if softened else message,
        why=row.why,
        fix=row.fix,
        source=find_reference(row.source),
    )


Found = tuple[str, str, str, bool]
"""Rule, node, message, and whether op determinism fixes it."""


def _find_all(graph: Graph) -> Iterator[Found]:
    if graph.deterministic is False:
        yield "ENV503", "options", "the options of the dataset have deterministic=False", True
    for body in _list_reachable(graph, graph.main):
        constants = {
            node.name: node.attributes.get("value") for node in body.nodes if node.op == "Const"
        }
        for node in body.nodes:
            yield from _judge_dataset(node, constants)
            parallel = _is_parallel(node, constants)
            for name in node.functions.values():
                yield from _judge_function(graph, node, name, parallel=parallel)


def _judge_dataset(node: Node, constants: Mapping[str, Value]) -> Iterator[Found]:
    """Look at what a dataset operation says of itself."""
    if node.op in SEEDS_AT:
        first = SEEDS_AT[node.op]
        seeds = [constants.get(_get_source(each)) for each in node.inputs[first : first + 2]]
        if seeds == [0, 0] and node.op.startswith("Random"):
            yield "ENV510", node.name, f"{node.op} has no seed", False
        elif seeds == [0, 0]:
            yield "ENV501", node.name, f"{node.op} has no seed", False
        elif node.attributes.get("reshuffle_each_iteration") is True:
            yield "ENV502", node.name, f"{node.op} shuffles again in every epoch", False
    if (
        node.attributes.get("deterministic") in (b"false", "false")
        or node.attributes.get("sloppy") is True
    ):
        yield "ENV503", node.name, f"{node.op} can give its elements in any order", True
    if node.op.startswith(SERVICE):
        yield "ENV511", node.name, "the elements come from the tf.data service", False


def _judge_function(graph: Graph, node: Node, name: str, *, parallel: bool) -> Iterator[Found]:
    """Look at what a function that a dataset operation runs on each element does."""
    if (
        not node.op.endswith(("Dataset", "DatasetV2", "DatasetV3", "DatasetV4"))
        or name not in graph.functions
    ):
        return
    for body in _list_reachable(graph, graph.functions[name]):
        for inner in body.nodes:
            yield from _judge_inner(node, inner, parallel=parallel)


def _judge_inner(node: Node, inner: Node, *, parallel: bool) -> Iterator[Found]:
    if inner.op in RANDOM:
        seeds = (inner.attributes.get("seed"), inner.attributes.get("seed2"))
        if seeds in UNSEEDED:
            yield "ENV505", node.name, f"{inner.op} in {node.op} has no seed", False
        if parallel:
            yield "ENV504", node.name, f"{inner.op} runs in parallel in {node.op}", True
        elif seeds not in UNSEEDED:
            yield "ENV506", node.name, f"{inner.op} in {node.op} draws from one generator", False
    elif inner.op in PYTHON:
        if parallel:
            yield "ENV508", node.name, f"a Python function runs in parallel in {node.op}", True
        else:
            yield "ENV509", node.name, f"{node.op} calls a Python function", False
    elif parallel and inner.op.startswith(CHANGES) and inner.op not in CHANGES_NOT:
        yield "ENV507", node.name, f"{inner.op} runs in parallel in {node.op}", True


def _is_parallel(node: Node, constants: Mapping[str, Value]) -> bool:
    if not node.op.startswith(("Parallel", "MapAndBatch")):
        return False
    if not node.inputs:
        return True
    # The last input says how many run at once. What is computed, or left to TensorFlow (-1), may be
    # more than one.
    return constants.get(_get_source(node.inputs[-1])) != 1


def _list_reachable(graph: Graph, start: Body) -> Iterator[Body]:
    """Yield a body and every function that it runs, directly or not, each once."""
    stack, seen = [start], {id(start)}
    while stack:
        body = stack.pop()
        yield body
        for node in body.nodes:
            for name in node.functions.values():
                inner = graph.functions.get(name)
                if inner is not None and id(inner) not in seen:
                    seen.add(id(inner))
                    stack.append(inner)


def _get_source(text: str) -> str:
    """Return the node that an input comes from: `^name`, `name:0` and, in functions,
    `name:output:0`.
    """
    return text.lstrip("^").partition(":")[0]


def digest(graph: Graph) -> str:
    """Return what identifies a pipeline: the same operations with the same settings and constants,
    however named.
    """
    known: dict[str, str] = {}
    return "sha256:" + _compute_body_digest(graph, graph.main, known)


def _compute_body_digest(graph: Graph, body: Body, known: dict[str, str]) -> str:
    """Return the digest of a body from what it returns; a function that calls itself counts as its
    name there.
    """
    nodes = {node.name: node for node in body.nodes}
    done = {name: _hash("argument", str(number)) for number, name in enumerate(body.arguments)}
    returned = [_get_source(each) for each in body.returns]
    beside = _list_unused(body)
    # A stack in place of recursion: a chain of a thousand operations is deeper than Python goes.
    stack = [*returned, *beside]
    while stack:
        name = stack[-1]
        if name in done:
            stack.pop()
        elif name not in nodes:
            done[name] = _hash("unknown")
        else:
            missing = _list_missing(nodes[name], nodes, done)
            stack.extend(missing)
            if not missing:
                done[name] = _compute_node_digest(graph, nodes[name], done, known)
    # What is returned has an order; what is only done beside it has none but that of its names.
    results = [done[each] for each in returned]
    effects = sorted(done[each] for each in beside)
    return _hash("body", *results, "beside", *effects)


def _list_missing(node: Node, nodes: Mapping[str, Node], done: Mapping[str, str]) -> list[str]:
    sources = (_get_source(each) for each in node.inputs)
    return [each for each in sources if each not in done and each in nodes and each != node.name]


def _list_unused(body: Body) -> list[str]:
    used: set[str] = set()
    for node in body.nodes:
        used.update(_get_source(each) for each in node.inputs)
    return [node.name for node in body.nodes if node.name not in used]


def _compute_node_digest(
    graph: Graph, node: Node, done: Mapping[str, str], known: dict[str, str]
) -> str:
    parts = ["node", node.op]
    for name, value in sorted(node.attributes.items()):
        if name not in UNSTABLE and not name.startswith("_"):
            parts += [name, repr(value)]
    for attribute, name in sorted(node.functions.items()):
        if name not in known:
            known[name] = "recursive"
            inner = graph.functions.get(name)
            known[name] = "unknown" if inner is None else _compute_body_digest(graph, inner, known)
        parts += [attribute, known[name]]
    data = [each for each in node.inputs if not each.startswith("^")]
    after = [each for each in node.inputs if each.startswith("^")]
    parts += [done.get(_get_source(each), "input") + each.partition(":")[2] for each in data]
    # Inputs that are only waited for are a set: TensorFlow lists them in any order.
    parts += sorted(done.get(_get_source(each), "input") for each in after)
    return _hash(*parts)


def _hash(*parts: str) -> str:
    found = hashlib.sha256()
    for part in parts:
        # With its length before it, so that "ab", "c" and "a", "bc" differ.
        data = part.encode("utf-8", "surrogatepass")
        found.update(len(data).to_bytes(8, "big") + data)
    return found.hexdigest()
