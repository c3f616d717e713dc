"""What comes from outside: the flags of a command line, and the rows of a database."""

from __future__ import annotations

from envlock.linter.interpreter.arguments import Call
from envlock.linter.interpreter.library import Libraries
from envlock.linter.interpreter.queries import is_unordered
from envlock.linter.interpreter.values import Constant, Made, Taints, Value, join

ACTIONS: dict[object, object] = {"store_true": False, "store_false": True}


class Flags(Libraries):
    """Calls of the methods of parsers and cursors."""

    def add_flag(self, owner: Made, name: str, call: Call) -> Value:
        """Add an option to the command line, with its default."""
        names = [each.value for each in call.arguments if isinstance(each, Constant)]
        words = [each for each in names if isinstance(each, str)]
        long = [each for each in words if each.startswith("--")] or words
        # As argparse makes the name: https://docs.python.org/3/library/argparse.html#dest
        word = "".join(long[:1]).lstrip("-").replace("-", "_")
        target = call.get_constant("dest")
        if isinstance(target, str):
            word = target
        value = self.get_flag_value(call, positional=bool(words) and not words[0].startswith("-"))
        # Two parsers of one function, such as those of two commands, may have the same option.
        known = owner.attributes.get(word)
        owner.attributes[word] = value if known is None else join(known, value)
        # Functions that are given `args` from somewhere know its attributes by this.
        self.known_flags.setdefault(self.source, {})[word] = owner.attributes[word]
        return Value()

    def get_flag_value(self, call: Call, *, positional: bool) -> Value:
        """Return the value of a flag if it is not given."""
        given = call.get("default")
        if isinstance(given, Constant):
            return Constant(given.value, optional=True, taints=given.taints)
        if given is not None:
            return given
        # What must be given has no default.
        if positional or call.get_constant("required") is True or call.starred:
            return Value()
        return Constant(ACTIONS.get(call.get_constant("action")), optional=True)

    def parse_flags(self, owner: Made, name: str, call: Call) -> Value:
        """Return the values of the command line."""
        made = self.make("argparse.Namespace", call.node, "flags")
        made.attributes = owner.attributes
        if name == "parse_known_args":
            return self.make_sequence([made, Value()], form="tuple")
        return made

    def use_parser(self, owner: Made, name: str, call: Call) -> Value:
        """Return a part of a parser, which is as good as the parser."""
        return owner

    def execute(self, owner: Value, name: str, call: Call) -> Value | None:
        """Run a query: its rows come from what is returned, or from the cursor."""
        query = call.get_first()
        if not isinstance(query, Constant) or not isinstance(query.value, str):
            return None
        self.use_functions(call)
        # The cursor has the rows of this query now, and no longer those of the one before.
        owner.taints = frozenset(each for each in owner.taints if each[0].rule != "ENV308")
        rows = self.make_sequence(None, Value(), "iterator")
        if is_unordered(query.value):
            chance = self.add_chance("ENV308", "order", "query", call.node)
            order: Taints = frozenset({(chance, "order")})
            owner.taints |= order
            rows.add_taints(order)
        return rows
