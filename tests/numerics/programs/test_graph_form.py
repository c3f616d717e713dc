"""The form of a graph: independent of names and of the order of nodes, and of nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.numerics.programs.graph_form import COMPILED, RECURSION, UNKNOWN, Body, Forms, Node


def node(name: str, kind: str, *inputs: str, calls: str = "", size: int = 0, **attributes: str) -> Node:
    """Return a node; `calls` is the function that it calls."""
    called = (("f", (calls,)),) if calls else ()
    return Node(name, kind, inputs, "", tuple(sorted(attributes.items())), called, size)


NODES = (
    node("c", "Const", value="float32[] 1"),
    node("r", "RandomUniform", "n", seed="7"),
    node("mul", "Mul", "x", "r:output:0"),
    node("a", "AssignAdd", "v", "mul:z:0"),
    node("add", "AddV2", "mul:z:0", "c:output:0", "^a"),
)


def body(nodes: Sequence[Node] = NODES, outputs: Sequence[str] = ("add:z:0",), control: Sequence[str] = ("a",)) -> Body:
    """Return the body of a small training step."""
    return Body(("x", "v", "n"), ("1", "20", "3"), tuple(nodes), tuple(outputs), tuple(control), is_compiled=False)


def form(root: Body, **others: Body | None) -> str:
    """Return the digest of a body among others."""
    return Forms({"root": root, **others}).describe("root")


def rename(nodes: Sequence[Node], names: dict[str, str]) -> list[Node]:
    """Return nodes with other names."""

    def change(reference: str) -> str:
        mark = "^" if reference.startswith("^") else ""
        name, colon, rest = reference.removeprefix("^").partition(":")
        return f"{mark}{names.get(name, name)}{colon}{rest}"

    return [replace(each, name=names[each.name], inputs=tuple(map(change, each.inputs))) for each in nodes]


@given(st.permutations(NODES), st.permutations(["p", "q", "r", "s", "t"]))
def test_names_and_the_order_of_nodes_mean_nothing(nodes: list[Node], names: list[str]) -> None:
    new = dict(zip((each.name for each in NODES), names, strict=True))
    renamed = rename(nodes, new)
    assert form(body(renamed, [f"{new['add']}:z:0"], [new["a"]])) == form(body())


@pytest.mark.parametrize(
    "changed",
    [
        node("add", "Sub", "mul:z:0", "c:output:0", "^a"),
        node("add", "AddV2", "c:output:0", "mul:z:0", "^a"),
        node("add", "AddV2", "mul:z:0", "c:output:0"),
        node("add", "AddV2", "mul:z:1", "c:output:0", "^a"),
        node("add", "AddV2", "mul:z:0", "c:output:0", "^a", T="2"),
        replace(NODES[-1], device="/CPU:0"),
        node("c", "Const", value="float32[] 2"),
        node("r", "RandomUniform", "n", seed="8"),
    ],
)
def test_what_a_node_computes_is_in_the_form(changed: Node) -> None:
    nodes = [changed if each.name == changed.name else each for each in NODES]
    assert form(body(nodes)) != form(body())


def test_two_draws_are_not_one_draw_twice() -> None:
    """Both have the same history; only which of them is used where tells the two graphs apart."""
    draws = [node("r1", "RandomUniform", "n"), node("r2", "RandomUniform", "n")]
    same = [*draws, node("d", "Sub", "r1:o:0", "r1:o:0"), node("e", "Sub", "r2:o:0", "r2:o:0")]
    mixed = [*draws, node("d", "Sub", "r1:o:0", "r2:o:0"), node("e", "Sub", "r2:o:0", "r1:o:0")]
    outputs = ("d:z:0", "e:z:0")
    assert form(body(same, outputs, ())) != form(body(mixed, outputs, ()))


def test_what_nothing_depends_on_does_not_run() -> None:
    assert form(body([*NODES, node("unused", "Exp", "x")])) == form(body())
    printed = [*NODES, node("print", "PrintV2", "x")]
    assert form(body(printed, control=("a", "print"))) != form(body())


def test_functions_count_by_what_they_do() -> None:
    inner = body((node("y", "Exp", "x"),), ("y:y:0",), ())
    call = [node("call", "PartitionedCall", "x", calls="inner_9")]
    outer = body(call, ("call:output:0",), ())
    first = Forms({"root": outer, "inner_9": inner})
    digest = first.describe("root")
    assert first.nodes == 2
    renamed = body([node("call", "PartitionedCall", "x", calls="inner_12")], ("call:output:0",), ())
    assert form(renamed, inner_12=inner) == digest
    other = body((node("y", "Tanh", "x"),), ("y:y:0",), ())
    assert form(outer, inner_9=other) != digest
    assert form(outer) != digest


def test_a_function_that_is_not_shown_has_no_form() -> None:
    forms = Forms({"root": None})
    assert (forms.describe("root"), forms.unknown) == (UNKNOWN, ["root"])


def test_a_function_that_calls_itself_ends() -> None:
    call = body([node("call", "PartitionedCall", "x", calls="root")], ("call:output:0",), ())
    forms = Forms({"root": call})
    assert forms.describe("root") == forms.describe("root") != RECURSION


def test_what_xla_compiles_is_left_to_its_module_but_for_large_constants() -> None:
    def compiled(value: str, size: int) -> Forms:
        nodes = (
            node("k", "Const", size=size, value=value, dtype="1"),
            node("call", "Call", calls="deep"),
            node("again", "Call", calls="gone"),
        )
        inner = replace(body(nodes, ("k:output:0",), ()), is_compiled=True)
        deep = body((node("l", "Const", size=99, value="float32[99] d", dtype="1"),), ("l:output:0",), ())
        outer = body([node("call", "PartitionedCall", "x", calls="inner")], ("call:output:0",), ())
        forms = Forms({"root": outer, "inner": inner, "deep": deep})
        forms.describe("root")
        return forms

    small, large = compiled("float32[] s", 1), compiled("float32[50] l", 50)
    assert small.describe("root") == large.describe("root")
    assert small.compiled == ["inner"]
    assert small.digests["inner"] == COMPILED
    assert small.list_constants() == ["float32[99] d"]
    assert large.list_constants() == ["float32[50] l", "float32[99] d"]


def test_nodes_in_a_circle_come_last() -> None:
    enter, merge = node("enter", "Enter", "x"), node("merge", "Merge", "enter:o:0", "next:o:0")
    circle = [enter, merge, node("next", "NextIteration", "merge:o:0")]
    assert form(body(circle, ("merge:o:0",), ())) == form(body(circle, ("merge:o:0",), ()))
    assert form(body(circle, ("next:o:0",), ())) != form(body(circle, ("merge:o:0",), ()))
