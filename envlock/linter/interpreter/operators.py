"""What operators make of values: arithmetic, comparisons, `and`, `or`, `not`, and choices."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable

from envlock.linter.interpreter.arguments import Call
from envlock.linter.interpreter.containers import LIST_METHODS
from envlock.linter.interpreter.functions import Functions
from envlock.linter.interpreter.values import (
    Class,
    Constant,
    Function,
    Instance,
    Made,
    Partial,
    Sequence,
    Table,
    Value,
    in_mode,
    join,
    join_all,
)

COMPARED: dict[type[ast.cmpop], Callable[[object, object], object]] = {
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
ORDERED: dict[type[ast.cmpop], Callable[[float, float], object]] = {
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
}
SET_OPERATORS: dict[type[ast.operator], str] = {
    ast.BitOr: "union",
    ast.BitAnd: "intersection",
    ast.Sub: "difference",
    ast.BitXor: "symmetric_difference",
}
SMALL = 64
"""Numbers below it are raised to a power."""
NUMERIC = (ast.Add, ast.Sub, ast.Div, ast.FloorDiv, ast.Pow)
"""Of a number and something else these are a number, or an array of them; `3 * "ab"` is a text."""
REDUCING = (ast.Mod, ast.BitAnd)
IDENTITY = (ast.Is, ast.IsNot)
NUMBERS = (int, float)
MADE = frozenset({Function, Class, Made, Instance, Sequence, Table, Partial})
"""Values that were made, and are not None."""


class Operators(Functions):
    """The evaluation of operators."""

    def evaluate_binary(self, node: ast.BinOp) -> Value:
        left, right = self.evaluate(node.left), self.evaluate(node.right)
        if isinstance(left, Sequence) and left.form == "set" and type(node.op) in SET_OPERATORS:
            return LIST_METHODS[SET_OPERATORS[type(node.op)]](self, left, Call(node, [right]))
        if (
            isinstance(left, Sequence)
            and isinstance(right, Sequence)
            and isinstance(node.op, ast.Add)
        ):
            items = None
            if left.items is not None and right.items is not None:
                items = [*left.items, *right.items]
            both = Sequence("list", items, join(left.element, right.element), self.tick())
            return both.add_taints(left.taints | right.taints)
        # `[0] * n`: a list of as many as is not known, of one kind.
        if isinstance(left, Sequence) and left.most is not None and isinstance(node.op, ast.Mult):
            return Sequence("list", None, left.element, self.tick()).add_taints(left.taints)
        if left.kind == "text" and isinstance(node.op, ast.Mod):
            return self.make_text("format", Call(node, [right]))
        whole = self.calculate(left, right, node.op)
        if whole is not None:
            return whole
        kind = _find_kind(left.kind, right.kind, node.op)
        # `hash(name) % 1000` is a seed or a bucket; a hash alone is compared, or is a key.
        if isinstance(node.op, REDUCING):
            self.ledger.reduced.update(
                chance for chance, _ in left.taints if chance.rule == "ENV305"
            )
        default: object = ...
        if None in (left.default, right.default):  # `seed + rank` of a seed that is not given
            default = None
        return Value(self.collect_array_taints([left, right]), kind, default)

    def calculate(self, left: Value, right: Value, op: ast.operator) -> Value | None:
        """Return the result of two constants, where it is small."""
        if not isinstance(left, Constant) or not isinstance(right, Constant):
            return None
        one, other = left.value, right.value
        # Cut, as a loop that doubles a text would fill the memory.
        if isinstance(one, str) and isinstance(other, str) and isinstance(op, ast.Add):
            return Constant((one + other)[:1000], optional=left.optional or right.optional)
        if type(one) is not int or type(other) is not int:
            return None
        optional = left.optional or right.optional
        if isinstance(op, ast.Add):
            return Constant(one + other, optional=optional)
        if isinstance(op, ast.Sub):
            return Constant(one - other, optional=left.optional)
        # Of small numbers only: `9 ** 9 ** 9` would not end.
        if isinstance(op, ast.Pow) and 0 <= one < SMALL and 0 <= other < SMALL:
            return Constant(one**other, optional=optional)
        return None

    def evaluate_unary(self, node: ast.UnaryOp) -> Value:
        value = self.evaluate(node.operand)
        number = value.value if isinstance(value, Constant) else None
        if isinstance(node.op, ast.USub) and isinstance(number, NUMBERS):
            return Constant(-number, optional=self.is_optional(value))
        if isinstance(node.op, ast.Not):
            truth = value.truth()
            # `deterministic=not args.fast`: what it is by default is known, though not what it is.
            if truth is None:
                known = isinstance(value.default, bool)
                return Value(value.taints, "number", default=known and not value.default)
            negated = Constant(not truth, optional=getattr(value, "optional", True))
            negated.passed = getattr(value, "passed", True)
            return negated
        return Value(value.taints, value.kind)

    def evaluate_boolean(self, node: ast.BoolOp) -> Value:
        stops = isinstance(node.op, ast.Or)
        values: list[Value] = []
        for each in node.values:
            value = self.evaluate(each)
            values.append(value)
            if value.truth() is stops:
                break
        if len(values) == 1 or values[-1].truth() is stops:
            decided = values[-1]
            unknown = [each for each in values[:-1] if each.truth() is None]
            return join_all([*unknown, decided])
        undecided = [each for each in values if each.truth() is None]
        result = join_all(undecided or values[-1:])
        # With its default on each side, it has one as well: `args.train and args.shuffle`.
        if type(result) is Value and result.default is ...:
            defaults = [each.default for each in values]
            if False in defaults and all(isinstance(each, bool) for each in defaults):
                return Value(result.taints, result.kind, stops and any(defaults))
        return result

    def evaluate_compare(self, node: ast.Compare) -> Value:
        left = self.evaluate(node.left)
        values = [self.evaluate(each) for each in node.comparators]
        # Whether one element of several equals something is asked of each of them in turn.
        taints = in_mode(self.collect_all_taints([left, *values]), "value", "pick")
        if len(values) != 1:
            return Value(taints, "number")
        other, op = values[0], node.ops[0]
        found = self.compare(left, other, op)
        if found is None:
            return Value(taints, "number")
        result = Constant(found, optional=self.is_optional(left) or self.is_optional(other))
        result.passed = self.is_passed(left) or self.is_passed(other)
        return result

    def compare(self, left: Value, other: Value, op: ast.cmpop) -> bool | None:
        """Return whether two constants compare so, or None where that is not known."""
        # What has been made is not None, whatever else it is.
        if type(left) in MADE:
            none = isinstance(other, Constant) and other.value is None
            if none and isinstance(op, IDENTITY):
                return isinstance(op, ast.IsNot)
            return None
        if not isinstance(left, Constant) or not isinstance(other, Constant):
            return None
        one, two = left.value, other.value
        if type(op) in COMPARED:
            return bool(COMPARED[type(op)](one, two))
        if type(op) in ORDERED and isinstance(one, NUMBERS) and isinstance(two, NUMBERS):
            return bool(ORDERED[type(op)](one, two))
        return None

    def is_optional(self, value: Value) -> bool:
        """Return whether somebody can give another value from outside."""
        return isinstance(value, Constant) and value.optional

    def is_passed(self, value: Value) -> bool:
        """Return whether a value was given as an argument."""
        return isinstance(value, Constant) and value.passed

    def evaluate_choice(self, node: ast.IfExp) -> Value:
        test = self.evaluate(node.test)
        self.decide(test)
        truth = test.truth()
        if truth is not None and not self.is_optional(test):
            taken = node.body if truth else node.orelse
            return self.evaluate(taken)
        restore = self.narrow(node.test)
        one = self.evaluate(node.body)
        restore()
        return join(one, self.evaluate(node.orelse))

    def narrow(self, test: ast.expr) -> Callable[[], None]:
        """Let a name stand for what a test has found it to be; return what takes that back."""
        raise NotImplementedError

    def assign_to(self, target: ast.expr, value: Value) -> None:
        """Give a value to what stands on the left."""
        raise NotImplementedError

    def decide(self, test: Value) -> None:
        """Let a program go on by a value: what was drawn decides what it does."""
        taints = self.collect_taints(test)
        if taints:
            self.ledger.count(frozenset(each for each in taints if each[0].kind == "draw"))


def _find_kind(left: str, right: str, op: ast.operator) -> str:
    """Return what kind of value an operation on two kinds gives."""
    if "tensor" in (left, right):
        return "tensor"
    if "number" in (left, right) and isinstance(op, NUMERIC):
        return "number"
    return left if left == right else ""
