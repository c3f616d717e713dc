"""Judges mutants of a real lockfile, and compares each verdict with one that is derived otherwise.

    python benchmarks/judgements.py LOCK [--judgements N] [--seed N]

LOCK is a lockfile with a canary, as `envlock capture --canary` writes it; the machine that is
judged is the one that it describes. A mutant has one to three changes: of a value, a key, a list,
what is unavailable, the lockfile's own rules, its project, its machines or its canary. Those that
the runtime does not refuse are judged under every policy, with and without the lockfile's own
rules, and with a proof.

What is expected comes from the text of the tables alone: every leaf that differs has a finding at
it or above it; under a policy whose row says `exact` it is never a match, unless a rule of the
lockfile exempts it, which none does for what computes; and where nothing differs it is one. Exit
code 1: a judgement was wrong, a traceback, or a report that a terminal would not print as text.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import tomllib

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from envlock.runtime.collectors import Snapshot
from envlock.runtime.errors import LockfileError
from envlock.runtime.judgement import judge
from envlock.runtime.lockfile import parse
from envlock.runtime.machine_proof import list_results
from envlock.runtime.report import Report

ROOT = Path(__file__).resolve().parent.parent
Tree = dict[str, object]
NONE = object()
TIERS = ("strict", "bits", "same-arch", "functional")
WORDS: tuple[object, ...] = (
    None,
    "",
    "0",
    "1",
    "x",
    "2.0",
    True,
    False,
    0,
    7,
    -1,
    1.5,
    [],
    {},
    ["avx"],
)
RULES = ("ignore", "exact", "superset", "at_least", "proven", "same_minor", "nonsense")


@dataclass(frozen=True)
class Rows:
    """The rows of the policies, from the text of the tables: exact paths, and patterns in their order."""

    named: dict[str, Tree] = field(default_factory=dict)
    patterns: list[Tree] = field(default_factory=list)
    protected: tuple[str, ...] = ()

    def rule(self, path: str, tier: str) -> object:
        """Return the rule of a path under a policy."""
        row = self.named.get(path)
        if row is None:
            row = next(each for each in self.patterns if fits(str(each["path"]), path))
        if tier == "bits":
            return row.get("bits", row["same_arch"])
        return row[tier.replace("-", "_")]


def fits(pattern: str, path: str) -> bool:
    """Return whether a pattern is of a path, word by word."""
    wanted, given = pattern.split("."), path.split(".")
    if wanted[-1] == "**":
        wanted.pop()
        given = given[: len(wanted)]
    return len(wanted) == len(given) and all(
        a in ("*", b) for a, b in zip(wanted, given, strict=True)
    )


def read_rows() -> Rows:
    """Return the rows of policy.toml, environ.toml and backends.toml."""
    folder = ROOT / "envlock" / "data"
    tables = {
        name: tomllib.loads((folder / f"{name}.toml").read_text())
        for name in ("policy", "environ", "backends")
    }
    rows = Rows(protected=tuple(tables["policy"]["protected"]))
    for variable in tables["environ"]["variable"]:
        strict = variable.get("strict", "exact")
        own = {"strict": strict, "same_arch": strict, "functional": variable["functional"]}
        rows.named[f"environ.{variable['name']}"] = own
    for setting in tables["backends"]["setting"]:
        path = f"keras.{setting['backend']}.settings.{setting['name']}"
        rows.named[path] = {"strict": "exact", "same_arch": "exact", "functional": "ignore"}
    for fact in tables["policy"]["fact"]:
        for path in fact.get("paths", [fact.get("path")]):
            row = {**fact, "path": path}
            if "*" in path:
                rows.patterns.append(row)
            else:
                rows.named.setdefault(path, row)
    return rows


def leaves(tree: Tree, prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield path and value of every leaf; an empty object is one."""
    for name, value in tree.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def nodes(tree: Tree) -> Iterator[tuple[Tree, str]]:
    """Yield each object and each of its names."""
    for name, value in tree.items():
        yield tree, name
        if isinstance(value, dict):
            yield from nodes(value)


class Mutator:
    """Makes mutants of a lockfile."""

    def __init__(self, lock: Tree, seed: int) -> None:
        self.lock = lock
        self.random = random.Random(seed)

    def make(self) -> Tree:
        """Return a mutant with one to three changes."""
        mutant = copy.deepcopy(self.lock)
        for _ in range(self.random.choice((1, 1, 1, 2, 3))):
            kinds = (self.change, self.change, self.change, self.remove, self.add, self.swap)
            others = (self.hide, self.rule, self.claim, self.machine, self.canary)
            self.random.choice((*kinds, *others))(mutant)
        return mutant

    def place(self, mutant: Tree) -> tuple[Tree, str]:
        """Return an object among the facts, and one of its names."""
        facts = mutant["facts"]
        assert isinstance(facts, dict)
        return self.random.choice(list(nodes(facts)))

    def change(self, mutant: Tree) -> None:
        """Give a fact another value."""
        node, name = self.place(mutant)
        value = node[name]
        if isinstance(value, str) and self.random.random() < 0.7:
            value = self.random.choice(
                (value + "0", value[:-1], value.upper(), value[::-1], value + " ")
            )
        elif isinstance(value, list) and value and self.random.random() < 0.7:
            value = self.random.choice((value[:-1], value[::-1], [*value, value[0]], [*value, "x"]))
        elif isinstance(value, bool):
            value = not value
        elif isinstance(value, int | float) and self.random.random() < 0.7:
            value = self.random.choice((value + 1, value - 1, float(value), value * 1.01))
        else:
            value = copy.deepcopy(self.random.choice(WORDS))
        node[name] = value

    def remove(self, mutant: Tree) -> None:
        """Take a fact, or a section of facts, away."""
        node, name = self.place(mutant)
        del node[name]

    def add(self, mutant: Tree) -> None:
        """Add a fact beside another."""
        node, name = self.place(mutant)
        node[self.random.choice((name + "_x", "version", "zzz"))] = self.random.choice(WORDS)

    def swap(self, mutant: Tree) -> None:
        """Let two facts change places."""
        one, first = self.place(mutant)
        other, second = self.random.choice(list(nodes(one)))
        one[first], other[second] = other.get(second), one.get(first)

    def hide(self, mutant: Tree) -> None:
        """Say of a fact that it was unavailable."""
        facts, unavailable = mutant["facts"], mutant["unavailable"]
        assert isinstance(facts, dict)
        assert isinstance(unavailable, dict)
        path = self.random.choice([path for path, _ in leaves(facts)] or ["cpu"])
        node = facts
        *folders, name = path.split(".")
        for folder in folders:
            node = node.get(folder, {})
        node.pop(name, None)
        code = self.random.choice(("permission-denied", "no-driver", "not-imported", "x"))
        unavailable[path] = {"reason": "so it is said", "code": code}

    def rule(self, mutant: Tree) -> None:
        """Add a rule of the lockfile's own."""
        facts, policy = mutant["facts"], mutant["policy"]
        assert isinstance(facts, dict)
        assert isinstance(policy, dict)
        path = self.random.choice(
            [*(path for path, _ in leaves(facts)), "**", "packages.**", "cpu.*", "a..b"]
        )
        policy["overrides"] = {**policy["overrides"], path: self.random.choice(RULES)}

    def claim(self, mutant: Tree) -> None:
        """Let the lockfile say that packages do not matter."""
        facts = mutant["facts"]
        assert isinstance(facts, dict)
        packages = list(facts.get("packages") or {"x": 1})
        name = self.random.choice(packages)
        claims: list[Tree] = [
            {"name": name},
            {"tooling": packages},
            {"entry": ["a.py"], "held": {}},
            {"entry": ["a.py"], "held": {name: "imported"}},
        ]
        mutant["project"] = self.random.choice(claims)

    def machine(self, mutant: Tree) -> None:
        """Let the lockfile accept another machine."""
        facts: Tree = {"cpu": {"flags": [], "model": self.random.choice(("1", "2"))}, "system": {}}
        mutant["machines"] = [{"facts": facts, "unavailable": {}}]

    def canary(self, mutant: Tree) -> None:
        """Take results away from the canary, or call them unstable."""
        numerics = mutant.get("numerics")
        if not isinstance(numerics, dict) or not numerics.get("groups"):
            return
        group = self.random.choice(list(numerics["groups"].values()))
        for name in list(group["operations"])[: self.random.randint(1, 20)]:
            group["operations"][name] = {"unstable": True, "dtype": "<f4", "shape": [1]}


def find_wrong(
    mutant: Tree, live: Tree, report: Report, tier: str, rows: Rows, *, free: bool
) -> str | None:
    """Return what is wrong with a judgement, by the text of the tables; None where nothing is.

    Args:
        mutant: the lockfile.
        live: the facts of the machine.
        report: what the judgement said.
        tier: the policy.
        rows: of the tables.
        free: whether no rule of the lockfile counts, nor a proof, nor another machine.
    """
    locked, here = mutant["facts"], live
    assert isinstance(locked, dict)
    unavailable = mutant["unavailable"]
    assert isinstance(unavailable, dict)
    one, other = dict(leaves(locked)), dict(leaves(here))
    where = [str(finding.where) for finding in report.findings]
    differing = [
        path for path in {**one, **other} if not is_same(one.get(path, NONE), other.get(path, NONE))
    ]
    for path in differing:
        if is_above(path, one, other) or any(covers(path, hidden) for hidden in unavailable):
            continue
        if not free:
            continue
        rule = rows.rule(find_top(path, locked, here), tier)
        if rule in ("exact_where_locked", "exact_or_unset"):
            continue
        if not any(covers(said, path) for said in where):
            return f"{path} differs, and no finding is at it"
        if rule == "exact" and report.match:
            return f"{path} differs, its rule is exact, and it matches"
    if not differing and not unavailable and free and not report.match:
        return "nothing differs, and it does not match"
    return find_exempt(mutant, differing, report, tier, rows)


def find_exempt(
    mutant: Tree, differing: list[str], report: Report, tier: str, rows: Rows
) -> str | None:
    """Return what computes, differs and matches although no rule of the lockfile may say so; None for nothing."""
    policy = mutant["policy"]
    assert isinstance(policy, dict)
    for path in differing:
        exact = path.startswith(rows.protected) and rows.rule(path, tier) == "exact"
        kinder = any(fits(pattern, path) for pattern in policy["overrides"])
        if exact and not kinder and path.endswith(".version") and report.match:
            return f"{path} is of what computes, differs, and it matches"
    return None


def is_plain(mutant: Tree) -> bool:
    """Return whether the tables alone decide: no other machine fits, and no package is the project's own."""
    project = mutant.get("project")
    return "machines" not in mutant and not (isinstance(project, dict) and "name" in project)


def find_top(path: str, locked: Tree, here: Tree) -> str:
    """Return the node at or above a path that only one side has: a missing package is one difference."""
    words = path.split(".")
    one: object = locked
    other: object = here
    for number, word in enumerate(words, 1):
        one = one.get(word, NONE) if isinstance(one, dict) else NONE
        other = other.get(word, NONE) if isinstance(other, dict) else NONE
        if not (isinstance(one, dict) and isinstance(other, dict)):
            return ".".join(words[:number])
    return path


def is_same(one: object, other: object) -> bool:
    """Return whether two facts are the same in value and type."""
    return type(one) is type(other) and json.dumps(one, default=id) == json.dumps(other, default=id)


def covers(above: str, path: str) -> bool:
    """Return whether a path is another, above it or below it."""
    return path == above or path.startswith(f"{above}.") or above.startswith(f"{path}.")


def is_above(path: str, one: Tree, other: Tree) -> bool:
    """Return whether a leaf of one side is an object of the other: the leaves below it count."""
    sides = [path in one, path in other]
    values = (one.get(path), other.get(path))
    return (
        not all(sides)
        and ({} in values or None in values)
        and any(each.startswith(f"{path}.") for each in (*one, *other))
    )


def judge_mutant(
    mutant: Tree,
    facts: Tree,
    unavailable: dict[str, dict[str, str]],
    rows: Rows,
    counts: Counter[str],
) -> list[str]:
    """Judge a mutant under every policy, and count; return what was wrong."""
    wrong: list[str] = []
    try:
        document = parse(json.dumps(mutant).encode("utf-8"), "mutant")
    except LockfileError:
        counts["refused unread"] += 1
        return wrong
    for tier in TIERS:
        for free in (False, True):
            live = Snapshot(facts, unavailable)
            try:
                proof = None if free else list_results(document)
                report = judge(document, live, tier, overrides=not free, proof=proof)
            except LockfileError:
                counts["refused by its rules"] += 1
                continue
            counts["judgements"] += 1
            counts["matches" if report.match else "no matches"] += 1
            plain = free and is_plain(mutant)
            problem = find_wrong(document, facts, report, tier, rows, free=plain)
            if (
                counts["judgements"] % 50 == 0
                and not report.to_text().replace("\n", "").isprintable()
            ):
                problem = "its report is no text"
            if problem is not None:
                wrong.append(f"{tier}, {'free' if free else 'own rules'}: {problem}")
    return wrong


def main() -> int:
    """Judge until there are enough judgements; print what came out, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("lock", type=Path)
    parser.add_argument("--judgements", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    lock = json.loads(options.lock.read_bytes())
    facts = copy.deepcopy(lock["facts"])
    rows, mutator = read_rows(), Mutator(lock, options.seed)
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    began = time.process_time()
    try:
        while counts["judgements"] < options.judgements and len(wrong) < 20:
            wrong += judge_mutant(mutator.make(), facts, lock["unavailable"], rows, counts)
    except KeyboardInterrupt:
        print("interrupted: what was judged until then", file=sys.stderr)
    for name, number in sorted(counts.items()):
        print(f"{number:>9,} {name}")
    print(f"{len(wrong):>9,} wrong, {time.process_time() - began:.0f} s of CPU")
    print(*wrong, sep="\n")
    return int(bool(wrong) or not counts["judgements"])


if __name__ == "__main__":
    sys.exit(main())
