"""The walls: who may import whom, which outside package has which owner, and how long things may be.

Each test lists all offenders at once.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest
import tomllib
import typer

import envlock as facade
from envlock.cli import COMMANDS
from envlock.guest.session import OBSERVERS
from envlock.image.engines import ENGINES
from envlock.image.forms import FORMS
from envlock.reports import FORMATS
from envlock.reports.text import LAYOUTS
from tests.exhaustive import exhaustive

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "envlock"
FILES = {file.relative_to(ROOT).as_posix(): file for file in sorted(PACKAGE.rglob("*.py"))}

ROOMS = [
    *("runtime", "fleet", "guest", "data", "reports", "lock", "packages"),
    *("diagnosis", "image", "linter", "evidence", "workflows", "integrations", "cli"),
]
"""A room may use the rooms before it, never one behind it."""

ALONE = ("runtime", "fleet", "guest")
"""They run where the others are not, and have walls of their own."""

LEAN = {"runtime": {"runtime"}, "fleet": {"runtime", "fleet"}}
"""Rooms that run in the user's process and are shipped into images, with the rooms that they know: the standard library
only."""

NARROW = {"reports": {"reports", "runtime"}, "integrations": {"integrations"}}
"""Rooms that use less than what is before them. Integrations have only the public names, as every user."""

ENTRY_POINTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
IMPORTED_BY_SCRIPTS = {f"envlock.integrations.{host}" for host in ("keras", "tensorboard", "wandb")}

CHEAP = {"__future__", "os", "sys", "errno", "stat", "struct", "time", "_imp", "_json", "_locale"}
"""What the first line of a script may import at module level; all else costs milliseconds there. The last three are
CPython's own, without a file in Python."""

FIRST_LINES = {
    "envlock.runtime.assertion": CHEAP,
    "envlock.fleet.fleet_assertion": CHEAP | {"atexit", "functools", "hashlib", "json", "re", "signal", "weakref"},
}
"""What `envlock.assert_locked()` and `envlock.assert_fleet()` load, and what that and all that it imports in turn at
module level may import: a rank cannot state its facts without JSON, `re`, which JSON brings (and with it
`enum`, the cost of `signal`), and digests.

What a script loads later, to name a mismatch or before TensorFlow itself, does not count.
"""

CHILD = "envlock/runtime/gpu/child.py"
"""A program of its own, in a process of its own: only it may import NVML's binding, and it need not be cheap."""

LAUNCHER = "envlock/guest/launch.py"

GUESTS = {
    "envlock/guest/image/install.py": "3.6",
    "envlock/guest/image/donor.py": "3.6",
    "envlock/guest/image/unpack.py": "3.6",
    "envlock/guest/": "3.8",
    "envlock/integrations/": "3.8",
    "envlock/runtime/": "3.8",
    "envlock/fleet/": "3.8",
    "envlock/__init__.py": "3.8",
}
"""The oldest Python of what runs in an interpreter that is not ours; the first that fits counts."""

OWNERS = {
    "typer": ("envlock/cli/",),
    "rich": ("envlock/reports/terminal_colors.py", "envlock/cli/progress_bar.py"),
    "pydantic": ("envlock/lock/", "envlock/data/"),
    "pynvml": (CHILD,),
    "tensorflow": (
        "envlock/evidence/diverge/live_dataset.py",
        "envlock/guest/battery.py",
        "envlock/guest/cuda_versions.py",
        "envlock/guest/dataset_graphs.py",
        "envlock/guest/proof.py",
        "envlock/guest/tracing/private.py",
        "envlock/guest/training/keras_fit.py",
    ),
    "numpy": (
        "envlock/guest/battery.py",
        "envlock/guest/late_numpy.py",
        "envlock/guest/tracing/tensors.py",
        "envlock/guest/training/",
        "envlock/integrations/arrays.py",
    ),
    "IPython": ("envlock/integrations/jupyter.py",),
    "keras": ("envlock/integrations/keras.py",),
    "mlflow": ("envlock/integrations/mlflow.py",),
    "pytest": ("envlock/integrations/pytest.py",),
    "tensorboard": ("envlock/integrations/tensorboard.py",),
    "tf_keras": ("envlock/integrations/keras.py",),
    "wandb": ("envlock/integrations/wandb.py",),
    "ray": ("envlock/guest/ray_nodes.py",),
    "docker": ("envlock/image/engines/daemon.py", "envlock/image/bases/logins.py"),
    "requests": ("envlock/packages/web/",),
    "tomli_w": ("envlock/packages/export_formats.py",),
    "tomlkit": ("envlock/lock/settings_changes.py",),
    "urllib3": ("envlock/packages/web/", "envlock/image/engines/daemon.py"),
    "jinja2": ("envlock/image/render.py",),
    "yaml": ("envlock/image/forms/deployment.py",),
}
PURE = [
    *(
        f"envlock/runtime/{name}.py"
        for name in ("compare", "policies", "comparison_rules", "report", "facts", "launchers")
    ),
    *(
        f"envlock/runtime/{name}.py"
        for name in ("strict_json", "recipe", "release", "tooling", "machines", "environment_line")
    ),
    "envlock/lock/rebase.py",
    *(f"envlock/image/{name}.py" for name in ("quoting", "plan", "layers")),
    *(
        name
        for name in FILES
        if name.startswith("envlock/image/bases/") and not name.endswith(("logins.py", "registry.py"))
    ),
    "envlock/image/engines/engine_errors.py",
    *(name for name in FILES if name.startswith("envlock/image/forms/")),
    *(f"envlock/evidence/canary/{name}.py" for name in ("canary_comparison", "distance")),
]
"""What decides: values in, values out. `make coverage` wants a test for each of its branches."""

WORLD = {"os", "sys", "io", "subprocess", "socket", "time", "random", "pathlib", "shutil", "tempfile"}
MAKES = {
    *("write_text", "write_bytes", "mkdir", "makedirs", "rename", "touch", "symlink_to", "hardlink_to", "link"),
    *("symlink", "mkstemp", "mkdtemp", "TemporaryDirectory", "NamedTemporaryFile", "TemporaryFile"),
    *("copytree", "copyfile", "copy2"),
}
"""Functions of modules and methods that make a file."""
STARTERS = {
    "envlock/guest/battery.py",  # itself again, where NumPy was imported before it
    LAUNCHER,
    "envlock/__main__.py",  # the envlock that is installed as a tool, in its own place
    "envlock/lock/revision.py",  # git
    "envlock/runtime/gpu/probe.py",  # within milliseconds, at the start of a script
    "envlock/image/engines/buildx.py",
    "envlock/image/engines/daemon.py",
    "envlock/image/engines/process.py",
    "envlock/guest/ray_nodes.py",  # on another machine
    "envlock/guest/image/install.py",
    "envlock/guest/image/donor.py",
    "envlock/guest/image/entrypoint.py",
    "envlock/fleet/rank_process.py",  # the command of a rank, in its own place
    "envlock/workflows/signalled_child.py",  # the same, as a child
    "envlock/workflows/run.py",  # the command of `envlock run`, in its own place
}
"""Who starts a process."""
WRITERS = {
    "envlock/cli/__init__.py",  # /dev/null, where stderr is closed
    "envlock/image/engines/daemon.py",  # into a draft
    "envlock/image/engines/engine.py",  # the log of a build, kept where it fails
    "envlock/image/inside.py",  # into a draft
    "envlock/image/payload.py",  # into a draft that is renamed
    "envlock/image/standalone.py",  # into a draft
    "envlock/evidence/diverge/observed_runs.py",  # into a draft
    "envlock/integrations/arrays.py",  # a draft that is renamed
    "envlock/lock/temporary.py",
    "envlock/lock/writer.py",
    "envlock/evidence/canary/program_operations.py",  # into a draft
    "envlock/evidence/repeat/matrices.py",  # a file without a name
    "envlock/evidence/repeated_runs.py",  # into a draft that is renamed
    "envlock/evidence/session.py",  # the log of runs, in a draft
    "envlock/runtime/user_cache.py",  # folders for proofs and notes
    "envlock/packages/archives.py",  # a folder for a download
    "envlock/packages/bytecode_comparison.py",  # a file without a name
    "envlock/packages/wheel_cache.py",  # renames what is whole
    "envlock/packages/contents.py",  # a draft in the cache, renamed
    "envlock/packages/index.py",  # a requirements file, into a draft
    "envlock/packages/local_wheels.py",  # the same
    "envlock/packages/installer.py",  # a requirements file, into a draft
    "envlock/packages/overlay.py",  # a draft that is renamed
    "envlock/packages/source_tree.py",  # into a draft
    "envlock/packages/wheelhouse.py",  # its own drafts, which the next run removes
    "envlock/runtime/files/image_baseline.py",  # in an image that is being built
    "envlock/fleet/folder.py",  # drafts in a folder of one job, renamed
    "envlock/runtime/drafts.py",  # what replaces files for all others
    "envlock/runtime/stamp.py",  # into the stream of a draft
    "envlock/workflows/observed_run.py",  # into a draft
    "envlock/evidence/repeat/repeat.py",  # a draft that is renamed
    "envlock/workflows/sync.py",  # links in a draft; an environment that is marked until it is whole
}
"""Who makes or writes files by other means than `replace_file` and drafts, and why nothing half-written is left."""


@cache
def trees() -> dict[str, ast.Module]:
    """Return what every file of the package holds."""
    return {name: ast.parse(file.read_text(encoding="utf-8")) for name, file in FILES.items()}


@cache
def nodes(name: str) -> list[ast.AST]:
    """Return all nodes of a file."""
    return list(ast.walk(trees()[name]))


def _is_guard(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


@cache
def used_by(name: str) -> set[str]:
    """Return every module that a file imports, at once or later."""
    return set(imports(trees()[name]))


def mentioned_by(name: str) -> set[str]:
    """Return every module that a file imports, for types only as well."""
    found: list[ast.stmt] = [node for node in nodes(name) if isinstance(node, ast.Import | ast.ImportFrom)]
    return set(imports(ast.Module(body=found, type_ignores=[])))


def imports(tree: ast.AST, *, inside_functions: bool = True) -> Iterator[str]:
    """Yield every module that running (not type-checking) this code imports."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parent = node.module or ""
            submodules = [f"{parent}.{alias.name}" for alias in node.names]
            yield from [name for name in submodules if _is_ours(name)] or [parent]
        elif _is_guard(node):
            assert isinstance(node, ast.If)
            for child in node.orelse:
                yield from imports(child, inside_functions=inside_functions)
        elif isinstance(node, ast.expr):
            continue
        elif inside_functions or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from imports(node, inside_functions=inside_functions)


def _is_ours(module: str) -> bool:
    path = module.replace(".", "/")
    return f"{path}.py" in FILES or f"{path}/__init__.py" in FILES


def module_of(name: str) -> str:
    """Return the module of a file."""
    return name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def room(module: str) -> str | None:
    """Return the room of a module of ours; the facade and its version belong to none."""
    words = module.split(".")
    return words[1] if words[0] == "envlock" and len(words) > 1 else None


def top(module: str) -> str:
    return module.partition(".")[0]


def test_every_room_is_in_the_order_of_rooms() -> None:
    found = {room(module_of(name)) for name in FILES}
    assert found - {None, "__main__"} == set(ROOMS)
    page = (ROOT / ".github" / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `envlock/(\w+)/` \|", page, re.MULTILINE) == ROOMS


def test_a_room_uses_only_rooms_above_it() -> None:
    offenders = []
    for name in FILES:
        own = room(module_of(name))
        used = {used for module in mentioned_by(name) if (used := room(module)) is not None}
        if own in ROOMS and own not in ALONE:
            allowed = NARROW.get(own, set(ROOMS[: ROOMS.index(own) + 1])) - {"integrations"} | {own}
            offenders += [(name, other) for other in used - allowed]
    assert offenders == []


def test_integrations_know_the_public_names_only() -> None:
    offenders = []
    for name in FILES:
        if name.startswith("envlock/integrations/"):
            used = {ast.unparse(each) for each in nodes(name) if isinstance(each, ast.Attribute)}
            words = {each.partition(".")[2].partition(".")[0] for each in used if each.startswith("envlock.")}
            offenders += [(name, word) for word in words - {*facade.__all__, "integrations"}]
    assert offenders == []


def test_no_modules_import_each_other() -> None:
    """Not even within functions, or for types only. The facade, whose names lead everywhere, is left out."""
    graph = {}
    for name in FILES:
        graph[module_of(name)] = {module for module in mentioned_by(name) if _is_ours(module)} - {"envlock"}
    assert list(TopologicalSorter(graph).static_order()) != []  # or CycleError, which names the circle


def test_the_runtime_half_is_the_standard_library() -> None:
    offenders = []
    for name in FILES:
        known = LEAN.get(room(module_of(name)) or "")
        if known is None:
            continue
        outside = {module for module in used_by(name) if room(module) not in known}
        others = {top(module) for module in outside} - set(sys.stdlib_module_names)
        offenders += [(name, other) for other in others if name not in OWNERS.get(other, ())]
    assert offenders == []


@pytest.mark.parametrize("first", FIRST_LINES)
def test_the_first_line_of_a_script_is_cheap(first: str) -> None:
    files = {module_of(name): tree for name, tree in trees().items()}
    pending, loaded, offenders = [first], set(), []
    while pending:
        module = pending.pop()
        if module in loaded:
            continue
        loaded.add(module)
        at_import = set(imports(files[module], inside_functions=False))
        pending += at_import & set(files)
        offenders += [(module, each) for each in at_import - set(files) - FIRST_LINES[first]]
    assert offenders == []
    assert {"envlock.runtime.judgement", "envlock.runtime.collectors.cuda_build"} < loaded


def test_a_guest_needs_the_standard_library_and_what_is_stated() -> None:
    """Over there is neither this environment nor the authoring half; TensorFlow and NumPy are, where OWNERS says so."""
    offenders = []
    for name in FILES:
        if not name.startswith("envlock/guest/"):
            continue
        used = used_by(name)
        offenders += [(name, module) for module in used if room(module) not in (None, "runtime", "fleet", "guest")]
        offenders += [(name, module) for module in used if module == module_of(LAUNCHER)]
        others = {top(module) for module in used} - set(sys.stdlib_module_names) - {"envlock"}
        offenders += [(name, other) for other in others if not name.startswith(OWNERS.get(other, "nobody"))]
    assert offenders == []


def test_what_runs_inside_an_image_stands_alone() -> None:
    """The entrypoint finds the runtime half beside it; the others run before it is there."""
    alone = [name for name in FILES if name.startswith("envlock/guest/image/")]
    ours = {name: {module for module in used_by(name) if top(module) == "envlock"} for name in alone}
    assert {name: used for name, used in ours.items() if used and not name.endswith("/entrypoint.py")} == {}


@exhaustive
@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.parametrize("oldest", sorted(set(GUESTS.values())))
def test_what_runs_elsewhere_runs_on_its_oldest_python(oldest: str) -> None:
    first = {name: next((age for start, age in GUESTS.items() if name.startswith(start)), None) for name in FILES}
    targets = [name for name, age in first.items() if age == oldest]
    vermin = "import sys; from vermin.main import main; sys.exit(main())"
    argv = [sys.executable, "-c", vermin, "--no-tips", f"-t={oldest}-", *targets]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr


BY_NAME = {
    "envlock/runtime/calls.py": {"'tensorflow'", "words[0]", "'.'.join(words[:place + 1])"},  # a recipe's own calls
    "envlock/runtime/strict_json.py": {"'json.decoder'"},
}
"""What the runtime half imports by name, past the check of owners: nowhere else may it import TensorFlow."""


def test_only_activation_imports_by_name() -> None:
    calls = ("import_module", "__import__", "exec", "eval")
    found: dict[str, set[str]] = {}
    for name in FILES:
        for node in nodes(name) if room(module_of(name)) in LEAN else ():
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in calls:
                found.setdefault(name, set()).add(ast.unparse(node.args[0]))
    assert found == BY_NAME


def test_an_outside_package_is_imported_by_its_owner_only() -> None:
    """The runtime half and the guests have walls of their own."""
    others = [name for name in FILES if room(module_of(name)) not in ALONE]
    used = {(name, top(module)) for name in others for module in used_by(name)}
    assert sorted((name, package) for name, package in used if not name.startswith(OWNERS.get(package, ""))) == []


def test_only_the_launcher_and_a_few_start_processes() -> None:
    words = ("subprocess.", "os.exec", "os.fork", "os.popen", "os.posix_spawn", "os.spawn", "os.system")

    def starts(node: ast.AST) -> bool:
        return (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and ast.unparse(node.func).startswith(words)
        )

    assert {name for name in FILES if any(starts(node) for node in nodes(name))} == STARTERS


def test_files_are_written_by_the_writer_and_a_few() -> None:
    """All others write with `replace_file` or in a draft; what they write is a victim of tests/chaos/victims.py."""
    authoring = [name for name in FILES if not name.startswith("envlock/guest/")]
    assert {name for name in authoring if any(_makes_a_file(node) for node in nodes(name))} == WRITERS


def _makes_a_file(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = ast.unparse(node.func)
    last = name.rpartition(".")[2]
    modes = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    opens = last == "open" and any(mode[:1] in ("w", "a", "x") and len(mode) < 4 for mode in modes)
    renames = last == "replace" and "." in name and len(node.args) == 1 and not node.keywords  # that of a text has two
    return opens or renames or ("." in name and last in MAKES)


def test_what_decides_is_measured() -> None:
    """`make coverage` reports the files that were run: one that no test imports would not be missed."""
    for name in PURE:
        import_module(name.removesuffix(".py").removesuffix("/__init__").replace("/", "."))


def test_what_decides_does_not_touch_the_world() -> None:
    used = {(name, top(module)) for name in PURE for module in used_by(name)}
    assert sorted((name, module) for name, module in used if module in WORLD) == []


def _commands() -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield the name of the module and the function of every command, which is decorated with `@app.command(...)`."""
    for name in FILES:
        for node in nodes(name) if name.startswith("envlock/cli/") else ():
            decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
            if any(ast.unparse(each).startswith("app.command(") for each in decorators):
                assert isinstance(node, ast.FunctionDef)
                yield Path(name).stem, node


def test_a_command_is_the_module_of_its_name() -> None:
    """Those of a group, as `diverge` is one, are in the group's module."""
    functions: dict[str, list[str]] = {}
    for module, command in _commands():
        functions.setdefault(module, []).append(command.name)
    alone = {name: [name] for name in COMMANDS}
    assert functions == {**alone, "diverge": ["run", "record", "compare"], "fleet": ["report", "check", "run"]}


def test_the_list_of_commands_says_what_each_says_of_itself() -> None:
    """The list is written down, as loading every command for `envlock --help` would cost a quarter of a second."""
    loaded = {name: typer.main.get_command(import_module(f"envlock.cli.{name}").app) for name in COMMANDS}
    assert {name: (command.help or "").partition("\n")[0] for name, command in loaded.items()} == COMMANDS


def test_every_module_is_imported_or_a_program() -> None:
    """What nothing imports is dead, unless it is run: by the launcher, inside an image, or by `python -m`."""
    used = {module for name in FILES for module in used_by(name)}
    used |= set(facade._EXPORTS.values()) | set(ENGINES.values()) | set(FORMS.values())
    used |= {f"envlock.reports.{name}" for name in FORMATS} | set(LAYOUTS.values())
    used |= {f"envlock.cli.{name}" for name in COMMANDS}
    used |= {name.partition(":")[0] for each in ENTRY_POINTS.values() for name in each.values()} | IMPORTED_BY_SCRIPTS
    used |= {f"envlock.guest.{place.partition(':')[0]}" for place in OBSERVERS.values()}
    used |= {name for module in used for name in _parents(module)}
    modules = {module_of(name): name for name in FILES}
    unused = {name for module, name in modules.items() if module not in used and not _is_program(trees()[name])}
    assert unused - {"envlock/__main__.py"} == set()


def _parents(module: str) -> Iterator[str]:
    while "." in module:
        module = module.rpartition(".")[0]
        yield module


def _is_program(tree: ast.Module) -> bool:
    """Return whether a module has a `main()` and belongs to the guests, who are started and not imported."""
    return any(isinstance(node, ast.FunctionDef) and node.name == "main" for node in tree.body)
