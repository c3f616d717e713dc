"""Environments for reinforcement learning whose class is the project's own: what Gym gives them,
and who seeds it.
"""

from __future__ import annotations

from envlock.linter.interpreter.arguments import Call
from envlock.linter.interpreter.repeated_calls import RepeatedCalls
from envlock.linter.interpreter.values import Class, Instance, Value
from envlock.linter.module import Hit, Module

GYMS = ("gym.", "gymnasium.")
SEED_METHODS = ("seed", "_seed")
"""Methods of an environment that Gym calls; one that calls them itself is seeded again by
`env.seed(7)`.
"""


class Environments(RepeatedCalls):
    """What is known of environments."""

    def draw_by_environment(self, owner: Value, call: Call) -> None:
        """Report the first draw of an environment of the project's own by the generator that Gym
        gives it.
        """
        if not isinstance(owner, Instance) or owner.owner.node in self.drawn_environments:
            return
        if _is_environment(owner.owner) and not self.is_seeded_later(owner):
            self.drawn_environments.add(owner.owner.node)
            message = "an environment draws by its own generator, and nothing seeds environments"
            self.ledger.report("ENV209", self.source, Hit(call.node, message))

    def is_seeded_later(self, owner: Value | None) -> bool:
        """Return whether an object is an environment of Gym, and the project seeds environments."""
        if not isinstance(owner, Instance) or not _is_environment(owner.owner):
            return False
        return any(_seeds_environments(each.module) for each in self.sources.all)


def _is_environment(owner: Class) -> bool:
    """Return whether a class of the project is an environment of Gym."""
    return any(base.startswith(GYMS) for base in owner.list_library_bases())


def _seeds_environments(module: Module) -> bool:
    """Return whether a file seeds an environment: `x.seed(7)`, or `x.reset(seed=7)`."""
    # By its name only: which object is an environment is not known in a file that is given one.
    for call in module.find_methods(("seed", "reset")):
        for keyword in call.keywords:
            if keyword.arg == "seed":
                return True
        # `numpy.random.seed(7)` has a name, and seeds something else.
        is_reset = getattr(call.func, "attr", "") == "reset"
        if call.args and not is_reset and module.resolve_name(call.func) is None:
            return True
    return False
