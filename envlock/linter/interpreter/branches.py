"""Branches: each is a path of its own, and what follows joins them."""

from __future__ import annotations

import ast
from collections.abc import Callable

from envlock.linter.interpreter.imported_names import Imports
from envlock.linter.interpreter.run_state import State
from envlock.linter.interpreter.values import Constant, Instance, Value, join
from envlock.linter.module import walk


class Branches(Imports):
    """The execution of `if`, `match` and `try`."""

    def run_if(self, node: ast.If) -> bool:
        if self.is_main_guard(node.test):
            if self.source is self.program or self.in_entry:
                return self.run_body(node.body)
            return False
        test = self.evaluate(node.test)
        self.decide(test)
        truth = test.truth()
        if truth is None:
            return self.run_both(node, [], [])
        taken, other = node.body, node.orelse
        if not truth:
            taken, other = other, taken
        # An option: both branches may run, one of them only where somebody asks for it.
        if self.is_optional(test):
            off = [len(self.frames)]
            if truth:
                return self.run_both(node, [], off)
            return self.run_both(node, off, [])
        # An argument: another caller may take the other branch, whose functions are called then.
        if self.is_passed(test):
            self.run_dead(other)
        return self.run_body(taken)

    def run_match(self, node: ast.Match) -> bool:
        """Run each case from here, and go on with what any of them leaves."""
        self.evaluate(node.subject)
        names, state = dict(self.scope.names), self.state.copy()
        left = []
        self.unsure += 1
        for case in node.cases:
            self.scope.names, self.state = dict(names), state.copy()
            if not self.run_body(case.body):
                left.append((self.scope.names, self.state))
        self.unsure -= 1
        last = node.cases[-1]
        is_complete = (
            isinstance(last.pattern, ast.MatchAs)
            and last.pattern.pattern is None
            and last.guard is None
        )
        # Without `case _`, none of them may fit.
        if not is_complete:
            left.append((names, state))
        if not left:
            return True
        self.scope.names, self.state = left[0]
        for other in left[1:]:
            self.merge(*other)
        return False

    def is_main_guard(self, test: ast.expr) -> bool:
        """Return whether this is `__name__ == "__main__"`."""
        if not isinstance(test, ast.Compare) or not isinstance(test.left, ast.Name):
            return False
        return test.left.id == "__name__"

    def run_dead(self, body: list[ast.stmt]) -> None:
        """Look at code that does not run with what the caller gives: only what it would seed is
        noted.
        """
        if not any(_calls(statement) for statement in body):  # then it seeds nothing
            return
        names, state = dict(self.scope.names), self.state.copy()
        self.dead += 1
        self.ledger.silent += 1
        self.off.append(len(self.frames))
        self.run_body(body)
        self.off.pop()
        self.dead -= 1
        self.ledger.silent -= 1
        self.scope.names, self.state = names, state

    def run_both(self, node: ast.If, off_body: list[int], off_else: list[int]) -> bool:
        """Run both branches, each from here, and go on with what either leaves.

        Args:
            node: the statement.
            off_body, off_else: the depth of calls, for a branch that is not taken by default.
        """
        names, state = dict(self.scope.names), self.state.copy()
        self.unsure += 1
        restore = self.narrow(node.test)
        self.off += off_body
        ends = self.run_body(node.body)
        del self.off[len(self.off) - len(off_body) :]
        restore()
        first, first_state = self.scope.names, self.state
        # What is seeded only where somebody asks for it is not seeded after the branch:
        # ENV207/bad_guard.py.
        if off_body:
            first_state.seeded = dict(state.seeded)
        before = dict(state.seeded)
        self.scope.names, self.state = dict(names), state
        self.off += off_else
        ends_else = self.run_body(node.orelse)
        del self.off[len(self.off) - len(off_else) :]
        if off_else:
            self.state.seeded = before
        self.unsure -= 1
        # A branch that returns or raises leaves nothing to what follows.
        if ends and not ends_else:
            return False
        if ends_else and not ends:
            self.scope.names, self.state = first, first_state
            return False
        self.merge(first, first_state)
        return ends and ends_else

    def merge(self, names: dict[str, Value], state: State) -> None:
        """Join another path with this one."""
        own = self.scope.names
        for name, value in names.items():
            known = own.get(name)
            if known is not value:
                own[name] = value if known is None else join(known, value)
        self.state.join(state)

    def narrow(self, test: ast.expr) -> Callable[[], None]:
        """Let a name stand for what a test has found it to be; return what takes that back."""
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
            undone = [self.narrow(each) for each in test.values]
            return lambda: _call_all(undone)
        said: Value | None = None
        if isinstance(test, ast.Compare):
            # `seed is not None`, `seed != None`, `seed >= 0`: in the branch it is a number.
            if isinstance(test.ops[0], ast.IsNot | ast.NotEq | ast.Gt | ast.GtE):
                test = test.left
        elif isinstance(test, ast.Call) and getattr(test.func, "id", "") == "isinstance":
            if len(test.args) != 2:
                return lambda: None
            said = self.evaluate(test.args[1])
            test = test.args[0]
        if isinstance(test, ast.Name):
            return self.narrow_name(test.id, said, test)
        if isinstance(test, ast.Attribute) and said is None:
            owner = self.evaluate(test.value)
            if isinstance(owner, Instance) and test.attr in owner.attributes:
                before = owner.attributes[test.attr]
                owner.attributes[test.attr] = _exclude_none(before)
                return lambda: owner.attributes.update({test.attr: before})
        return lambda: None

    def narrow_name(self, name: str, said: Value | None, node: ast.AST) -> Callable[[], None]:
        """Let a name stand for what is given, or for an object of a type."""
        scope = self.scope
        before = scope.names.get(name)
        if before is None:
            return lambda: None
        now = _exclude_none(before) if said is None else self.apply_type(before, said, node)
        scope.names[name] = now

        def restore() -> None:
            # Unless the branch has given it another value.
            if scope.names.get(name) is now:
                scope.names[name] = before

        return restore

    def run_try(self, node: ast.Try) -> bool:
        names, state = dict(self.scope.names), self.state.copy()
        self.unsure += 1
        ends = self.run_body(node.body)
        if not ends:
            ends = self.run_body(node.orelse)
        # A handler goes on from before the body: of what the body had done by then, nothing is
        # sure.
        for handler in node.handlers:
            first, first_state = self.scope.names, self.state
            self.scope.names, self.state = dict(names), state.copy()
            ends_here = self.run_body(handler.body)
            if ends_here:
                self.scope.names, self.state = first, first_state
            else:
                self.merge(first, first_state)
                ends = False
        self.unsure -= 1
        return self.run_body(node.finalbody) or ends


def _calls(statement: ast.stmt) -> bool:
    return any(isinstance(each, ast.Call) for each in walk(statement))


def _call_all(functions: list[Callable[[], None]]) -> None:
    for each in functions:
        each()


def _exclude_none(value: Value) -> Value:
    """Return a value that is not None."""
    if type(value) is Value and value.default is None:
        return Value(value.taints, value.kind)
    if isinstance(value, Constant) and value.value is None:
        return Value(value.taints)
    return value
