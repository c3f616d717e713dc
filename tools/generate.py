"""Write everything that is generated: `python tools/generate.py`; with `--check`, only say what is out of date.

envlock/runtime/data/*.json   from envlock/data/*.toml: what the runtime half reads (Python 3.8 reads no TOML)
envlock/data/lockfile.schema.json   from the pydantic models
envlock/data/settings.schema.json   from the settings of a project
docs/reference/policies.md    from envlock/data/policy.toml and environ.toml
docs/reference/determinism.md from envlock/data/determinism_*.toml and the doctor's rules
docs/reference/lint.md        from envlock/data/lint.toml
docs/reference/remedies.md    from tests/remedies/remedies.toml
docs/reference/cli.md         from the help of each command
docs/reference/python.md      from the docstrings of the public names
README.md                     the table of commands
docs/contributing/rooms.svg   from the imports of envlock/
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections import Counter
from contextlib import redirect_stdout
from itertools import groupby
from operator import attrgetter
from pathlib import Path

import determinism_page
import lint_page
import python_page
import remedies_page
import rooms
import settings_schema
import team_base
from packaging.specifiers import SpecifierSet
from typer.main import get_command

from envlock.cli import COMMANDS, HEADINGS, app
from envlock.data import determinism, runtime_tables
from envlock.data.backends import load_backend_table
from envlock.data.determinism import load_makers, load_operation_groups
from envlock.data.image_tables import load_image_tables
from envlock.data.replay_table import load_replay_table
from envlock.lock import models
from envlock.runtime.comparison_rules import RULES
from envlock.runtime.facts import matches

ROOT = Path(__file__).resolve().parents[1]
RUNTIME = "envlock/runtime/data"
GROUPS = {"diverge": ("run", "record", "compare"), "fleet": ("run", "report", "check")}
"""Commands that have commands, the first of which the README links to."""
ROW = re.compile(r"^  (?:-|[A-Z]+ <).*\n(?: {4,}.*\n)*", re.MULTILINE)
"""An option or argument of a help."""
SHARED = 4
"""The number of commands from which on a row is shown once, for all."""
SHOWN = 3
"""Packages in one row of the page of policies."""
MEANINGS = {
    "exact": "equal in value and type",
    "exact_where_asked": "exact if the lockfile has the fact",
    "exact_where_locked": "exact if the lockfile has a value",
    "exact_or_unset": "exact; a setting that a side does not list is unset",
    "same_minor": "a version with the same first two numbers",
    "at_least": "not lower than the locked version or number",
    "superset": "a list with all locked items",
    "within_3_percent": "a number at most 3 % off",
    "proven": "exact, or the canary gave the locked bits",
    "ignore": "any value",
}
"""What each rule of comparison accepts."""
TABLE, TABLE_END = "<!-- commands: written by tools/generate.py -->\n", "<!-- end -->"


def compact(value: object) -> str:
    """Return JSON with one row a line, so that a change of one row is a diff of one line."""
    if isinstance(value, list):
        return (
            "[\n"
            + ",\n".join(json.dumps(row, ensure_ascii=False, sort_keys=True) for row in value)
            + "\n]\n"
        )
    assert isinstance(value, dict)
    fields = (
        f"{json.dumps(key)}: {compact(item).rstrip()}"
        if isinstance(item, list)
        else f"{json.dumps(key)}: {json.dumps(item)}"
        for key, item in value.items()
    )
    return "{\n" + ",\n".join(fields) + "\n}\n"


def policy_rows() -> list[dict[str, object]]:
    """Return the rows of policy.toml with a row for each determinism variable before them."""
    variables = [
        {
            "path": f"environ.{variable.name}",
            "why": variable.why,
            "fix": variable.fix,
            "source": variable.sources[0],
            "weight": variable.weight,
            "strict": variable.strict,
            "same_arch": variable.strict,
            "bits": variable.strict,
            "functional": variable.functional,
            **effect_of(variable),
            **list_same(variable),
        }
        for variable in runtime_tables.load_variables()
    ]
    settings = [
        {
            "path": row.path,
            "why": row.why,
            "fix": row.fix,
            "source": row.source,
            "weight": row.weight,
            "strict": "exact_or_unset",
            "same_arch": "exact_or_unset",
            "bits": "exact_or_unset",
            "functional": "ignore",
        }
        for row in load_backend_table().setting
    ]
    facts = runtime_tables.load_policy_table().fact
    return variables + settings + [fact.model_dump(exclude_defaults=True) for fact in facts]


def effect_of(variable: runtime_tables.Variable) -> dict[str, object]:
    """Return the fact that decides in place of a variable's text, where there is one."""
    if variable.names is not None:
        return {"effect": f"named.{variable.name}"}
    return {"effect": variable.effect} if variable.effect else {}


def list_same(variable: runtime_tables.Variable) -> dict[str, object]:
    """Return the groups of values that a variable's reader takes for the same; null is unset."""
    groups = [
        [None if value == runtime_tables.UNSET else value for value in group]
        for group in variable.same
    ]
    return {"same": groups} if groups else {}


def by_rank_table() -> dict[str, object]:
    """Return the facts that ranks count, and those that they leave out: every policy ignores them."""
    rows = runtime_tables.load_policy_table().fact
    judged = [
        row.path
        for row in rows
        if {row.strict, row.bits, row.same_arch, row.functional} != {"ignore"}
    ]
    unjudged = [row.path.removesuffix(".**") for row in rows if row.path not in judged]
    by_rank = runtime_tables.load_launcher_table().by_rank
    counted = [row.path for row in by_rank if not row.flags]
    return {
        "count": counted,
        "flags": {row.path: row.flags for row in by_rank if row.flags},
        "drop": unjudged,
    }


def backends_table() -> dict[str, object]:
    """Return the settings of JAX and PyTorch, and how the names of their other variables begin."""
    backends = load_backend_table()
    rows: dict[str, list[object]] = {row.backend: [] for row in backends.setting}
    for row in backends.setting:
        rows[row.backend].append(
            row.model_dump(
                include={"name", "records", "words", "config", "default"}, exclude_none=True
            )
        )
    others = {row.backend: row.model_dump(exclude={"backend"}) for row in backends.others}
    return {"settings": rows, "others": others}


def gpu_table() -> dict[str, object]:
    """Return the names by NVML's number, and the cores per SM by compute capability."""
    table = runtime_tables.load_gpu_table()
    lists = {
        "architectures": table.architecture,
        "virtualization": table.virtualization,
        "compute_mode": table.compute_mode,
    }
    names = {key: {str(row.number): row.name for row in rows} for key, rows in lists.items()}
    cores = {
        capability: row.cores
        for row in table.cores_per_sm
        for capability in row.compute_capabilities
    }
    return {**names, "cores_per_sm": cores}


def cuda_table() -> dict[str, object]:
    """Return the rows of cuda.toml without their sources; the versions of ptxas as numbers, which compare."""
    table = runtime_tables.load_cuda_table()
    ptxas = table.ptxas
    return {
        "cudnn_parts": [row.model_dump(exclude={"source"}) for row in table.cudnn_part],
        "tensorrt_numbers": {row.tensorflow: row.number for row in table.tensorrt},
        "other_users": [row.package for row in table.other_user],
        "ptxas": {
            "cuda_home_since": ptxas.cuda_home_since.numbers,
            "oldest": ptxas.oldest.numbers,
            "refused": [row.numbers for row in ptxas.refused],
        },
    }


def recipes_table() -> dict[str, object]:
    """Return the recipes with their ranges as numbers, which compare."""
    table = determinism.load_recipe_table()
    return {
        "through": table.horizon.through,
        "always": table.always.set,
        "patches": [patch.model_dump(exclude={"source"}) for patch in table.patch],
        "nvidia": [{"since": numbers(row.since), "set": row.set} for row in table.nvidia],
        "recipes": [
            {**row.model_dump(exclude={"tensorflow", "sources"}), **bounds(text)}
            for row in table.recipe
            for text in row.tensorflow
        ],
    }


def bounds(specifiers: str) -> dict[str, object]:
    """Return the first version and the first one no longer of a range such as >=2.8,<2.16; null where it is open."""
    found = {
        specifier.operator: numbers(specifier.version) for specifier in SpecifierSet(specifiers)
    }
    assert found.keys() <= {">=", "<"}, f"the runtime half has no operator such as in {specifiers}"
    return {"since": found.get(">="), "below": found.get("<")}


def numbers(version: str) -> list[int]:
    """Return a version as numbers."""
    return [int(number) for number in version.split(".")]


def _rules(row: runtime_tables.Fact) -> tuple[str, ...]:
    return row.strict, row.bits, row.same_arch, row.functional


def _is_covered(path: str, patterns: list[str]) -> bool:
    """Return whether another pattern of the same row matches whatever this one does."""
    wider = [each for each in patterns if each != path and each.endswith(("**", "*"))]
    if path.endswith("**"):
        wider = [each for each in wider if each.endswith("**")]
    return any(matches(each, path) for each in wider)


def policies_page() -> str:
    """Return the reference page of the policies: what each allows, and how each path is compared."""
    table = runtime_tables.load_policy_table()
    lines = [
        "<!-- written by tools/generate.py from envlock/data/policy.toml and environ.toml -->",
        "# Policies",
        "",
    ]
    lines += [f"- `{name}`: {meaning}" for name, meaning in table.policies.items()]
    accepted = ", ".join(f"`{name}` ({MEANINGS[name]})" for name in RULES)
    lines += [
        "",
        f"The rules: {accepted}.",
        "",
        "The first row that matches a path counts. `envlock explain PATH` says why each is so, and `envlock/data/policy.toml` "
        "has the source of every row. What rows say about GPUs is from sources, not measured.",
        "",
    ]
    lines += [
        "| path | strict | bits | same-arch | functional |",
        "|---|---|---|---|---|",
    ]
    for rules, rows in groupby(table.fact, _rules):
        patterns = [row.path for row in rows]
        names = [f"`{path}`" for path in patterns if not _is_covered(path, patterns)]
        paths = ", ".join(names)
        if len(names) > SHOWN and names[0].startswith("`packages."):
            paths = f"{', '.join(names[:SHOWN])} and {len(names) - SHOWN} more"
        lines.append(f"| {paths} | {' | '.join(rules)} |")
    lines += [
        "",
        "## Witnesses",
        "",
        "Under the rule `proven` a fact may differ if the [canary](../concepts/evidence.md#the-canary) gave the locked bits,",
        "and if the lockfile has",
        "a result for each witness: the operations that show this cause. `tests/real/test_witnesses.py` changes the causes.",
        "",
        "| path | witnesses |",
        "|---|---|",
    ]
    for witness, proven in groupby(table.fact, attrgetter("witness")):
        if witness:
            paths = ", ".join(f"`{row.path}`" for row in proven)
            lines.append(f"| {paths} | {', '.join(witness)} |")
    lines += [
        "",
        "## Exemptions",
        "",
        "These can allow a difference. A report counts each, in its headline or beside it; JSON, SARIF and JUnit list them all.",
        "",
        "| owner | in words | `--no-overrides` | why it may |",
        "|---|---|---|---|",
    ]
    for exemption in table.exemption:
        answer = {True: "forbids it", False: "allows it"}[exemption.forbidden]
        words = f"1 {exemption.noun}{exemption.after}"
        lines.append(f"| {exemption.owner} | {words} | {answer} | {exemption.why} |")
    lines += [
        "",
        "## The determinism variables",
        "",
        "By what is recorded, the rule of `strict`, `bits` and `same-arch`, and that of `functional`. Of those marked *,",
        "the value at the start of the process counts.",
        "",
        "| recorded, rules | variables |",
        "|---|---|",
    ]
    held = sorted(
        runtime_tables.load_variables(),
        key=lambda row: (row.records, row.strict, row.functional, row.name),
    )
    for (records, rule, functional), variables in groupby(
        held, attrgetter("records", "strict", "functional")
    ):
        told = [f"`{row.name}`{'*' if row.read_at == 'process-start' else ''}" for row in variables]
        lines.append(f"| {records}, {rule}, {functional} | {', '.join(told)} |")
    return "\n".join(lines) + "\n"


def cli_page() -> str:
    """Return the reference page with what `--help` prints of each command on a terminal of 80 columns."""
    lines = ["<!-- written by tools/generate.py -->", "# Command line", ""]
    lines += [
        "This is what `--help` prints. Data goes to stdout, messages and progress to stderr. An option wins over",
        "`ENVLOCK_*`, and that over `[tool.envlock]` in pyproject.toml.",
        "[Exit codes](formats.md#exit-codes) and [configuration](configuration.md) have pages of their own.",
        "",
    ]
    alone = [[name] for name in COMMANDS if name not in GROUPS]
    grouped = [[group, name] for group, names in GROUPS.items() for name in names]
    helps = {
        " ".join(["envlock", *words]): f"{help_text(words)}\n" for words in ([], *alone, *grouped)
    }
    # The width of the first column differs from command to command.
    rows = {" ".join(row.split()): row for text in helps.values() for row in ROW.findall(text)}
    common = Counter(
        word
        for text in helps.values()
        for word in {" ".join(row.split()) for row in ROW.findall(text)}
    )
    shared = {word: rows[word] for word, number in sorted(common.items()) if number >= SHARED}
    lines += [
        "Many commands have these:",
        "",
        "```text",
        "".join(shared.values()).rstrip("\n"),
        "```",
        "",
    ]
    for title, text in helps.items():
        own = ROW.sub(lambda row: "" if " ".join(row[0].split()) in shared else row[0], text)
        own = re.sub(r"\n(?:Options|Arguments):\n(?=\n|$)", "", own)
        # Each command's own help begins with the sentence of the list.
        own = own.partition(f"\n{next(iter(HEADINGS))}:\n")[0].rstrip("\n")
        lines += [f"## {title}", "", "```text", own, "```", ""]
    return "\n".join(lines)


def readme() -> str:
    """Return the README with its commands by heading as they are now."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    before, start, rest = text.partition(TABLE)
    _, end, after = rest.partition(TABLE_END)
    assert start and end, "README.md lacks the place for the table of commands"  # noqa: PT018
    firsts = {group: f"-{names[0]}" for group, names in GROUPS.items()}
    pages = {
        name: f"docs/reference/cli.md#envlock-{name}{firsts.get(name, '')}" for name in COMMANDS
    }
    rows = "".join(
        f"- {heading}: {', '.join(f'[`{name}`]({pages[name]})' for name in names)}\n"
        for heading, names in HEADINGS.items()
    )
    return f"{before}{TABLE}{rows}{TABLE_END}{after}"


def newest_base() -> str:
    """Return the Dockerfile of an image for teams to build on: the newest of NVIDIA's whose digest is known."""
    tags = [tag for release in reversed(load_image_tables().ngc.release) for tag in release.tags]
    digests = team_base.known_digests()
    return team_base.base_dockerfile(*next((tag, digests[tag]) for tag in tags if tag in digests))


def help_text(words: list[str]) -> str:
    """Return what `envlock WORDS --help` prints on a terminal of 80 columns."""
    os.environ.update(COLUMNS="80", TERMINAL_WIDTH="80")
    printed = io.StringIO()
    with redirect_stdout(printed):
        get_command(app).main([*words, "--help"], prog_name="envlock", standalone_mode=False)
    return printed.getvalue().strip()


def variable_row(row: runtime_tables.Variable) -> dict[str, object]:
    """Return what the runtime half needs of a variable."""
    more: dict[str, object] = {}
    if row.words:
        more["words"] = sorted({word.lower() for word in row.words})
    if row.packages:
        more["packages"] = row.packages
    if row.names:
        more["names"] = row.names
    if row.computing:
        more["computing"] = row.computing
    if row.harmless:
        more["harmless"] = row.harmless
    if row.as_unset:
        more["as_unset"] = row.as_unset
    if row.as_written:
        more["as_written"] = True
    if row.strict == "exact_where_locked":
        more["held_where_locked"] = True
    return {
        "name": row.name,
        "read_at": row.read_at,
        "read_by": row.read_by,
        "records": row.records,
        **more,
    }


def loaded_table() -> dict[str, object]:
    """Return what the runtime half reads of loaded.toml."""
    loaded = runtime_tables.load_loaded_table()
    roles = {row.name: row.begins for row in loaded.role}
    of_base = [row.name for row in loaded.role if row.of_base]
    return {"patched": loaded.changed_by_distributors, "of_base": of_base, "roles": roles}


def outputs() -> dict[str, str]:
    """Return every generated file by its path in the repository."""
    environ = [variable_row(row) for row in runtime_tables.load_variables()]
    files = runtime_tables.load_file_table()
    return {
        f"{RUNTIME}/backends.json": compact(backends_table()),
        f"{RUNTIME}/cpu_flags.json": json.dumps(runtime_tables.load_cpu_flags()) + "\n",
        f"{RUNTIME}/cuda.json": compact(cuda_table()),
        f"{RUNTIME}/environ.json": compact(environ),
        f"{RUNTIME}/files.json": compact(
            files.model_dump(
                exclude={
                    "evidence": True,
                    "known": {"__all__": {"code"}},
                    "kind": {"__all__": {"title"}},
                }
            )
        ),
        f"{RUNTIME}/startup.json": compact(
            {row.path.rpartition("/")[2]: row.code for row in files.known if row.code}
        ),
        f"{RUNTIME}/flags.json": json.dumps(
            sorted({name for row in runtime_tables.load_variables() for name in row.flags})
        )
        + "\n",
        f"{RUNTIME}/gpu.json": compact(gpu_table()),
        f"{RUNTIME}/by_rank.json": compact(by_rank_table()),
        f"{RUNTIME}/launchers.json": compact(
            [row.model_dump() for row in runtime_tables.load_launcher_table().launcher]
        ),
        f"{RUNTIME}/loaded.json": compact(loaded_table()),
        f"{RUNTIME}/makers.json": compact(
            [row.model_dump(include={"functions", "name", "hold"}) for row in load_makers()]
        ),
        f"{RUNTIME}/operations.json": compact(
            {name: sorted(found) for name, found in load_operation_groups().items()}
        ),
        f"{RUNTIME}/machine.json": json.dumps(runtime_tables.load_policy_table().machine) + "\n",
        f"{RUNTIME}/exemptions.json": compact(
            {
                row.owner: row.model_dump(exclude={"owner", "why", "source"})
                for row in runtime_tables.load_policy_table().exemption
            }
        ),
        f"{RUNTIME}/protected.json": json.dumps(runtime_tables.load_policy_table().protected)
        + "\n",
        f"{RUNTIME}/policies.json": json.dumps(list(runtime_tables.load_policy_table().policies))
        + "\n",
        f"{RUNTIME}/policy.json": compact(policy_rows()),
        f"{RUNTIME}/replay.json": compact(
            load_replay_table().model_dump(
                exclude={"source": True, "undefined": {"__all__": {"source"}}}
            )
        ),
        f"{RUNTIME}/determinism_recipes.json": compact(recipes_table()),
        "envlock/data/lockfile.schema.json": models.render_schema(),
        "envlock/data/settings.schema.json": settings_schema.render(),
        "docs/reference/determinism.md": determinism_page.page(),
        "docs/reference/lint.md": lint_page.page(),
        "docs/reference/remedies.md": remedies_page.page(),
        "docs/reference/policies.md": policies_page(),
        "docs/reference/cli.md": cli_page(),
        "docs/reference/python.md": python_page.page(),
        "README.md": readme(),
        "docs/contributing/rooms.svg": rooms.draw_rooms(ROOT / "envlock"),
        "Dockerfile.base": newest_base(),
    }


def main() -> int:
    """Write, or with `--check` compare; return the exit code."""
    made = outputs()
    stale = [path for path, text in made.items() if not _is(ROOT / path, text)]
    if "--check" in sys.argv[1:]:
        print(
            "\n".join(f"out of date: {path} (run: make generate)" for path in stale),
            end="\n" if stale else "",
        )
        return 1 if stale else 0
    for path in stale:
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(made[path], encoding="utf-8")
        print(f"wrote {path}")
    return 0


def _is(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(main())
