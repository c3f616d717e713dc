"""The walls: who may import whom, which outside package has which owner, and how long things may be."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "envlock"
FILES = {file.relative_to(ROOT).as_posix(): file for file in sorted(PACKAGE.rglob("*.py"))}
TREES = {name: ast.parse(file.read_text(encoding="utf-8")) for name, file in FILES.items()}

ROOMS = [
    *("runtime", "data", "lock", "web", "identity", "images", "containers", "determinism", "numerics", "divergence"),
    *("reports", "api", "cli"),
]
"""A room may use the rooms before it, never one behind it."""

CHEAP = {"__future__", "os", "sys", "errno", "stat", "struct", "time"}
"""What the runtime half may import at module level; all else costs milliseconds at the top of a script."""

CHILD = "envlock/runtime/gpu/child.py"
"""A program of its own, in a process of its own: only it may import NVML's binding, and it need not be cheap."""

OWNERS = {
    "typer": ("envlock/cli/",),
    "rich": ("envlock/reports/text.py", "envlock/cli/progress.py"),
    "pydantic": ("envlock/lock/", "envlock/data/"),
    "pynvml": (CHILD,),
    "tensorflow": (
        "envlock/determinism/dataset.py",
        "envlock/determinism/proof_program.py",
        "envlock/determinism/graphs.py",
        "envlock/divergence/inside/callbacks.py",
        "envlock/divergence/inside/private.py",
        "envlock/numerics/canary/battery.py",
        "envlock/numerics/child/training.py",
    ),
    "numpy": (
        "envlock/divergence/inside/in_graph.py",
        "envlock/divergence/inside/tensors.py",
        "envlock/numerics/canary/battery.py",
        "envlock/numerics/child/",
    ),
    "docker": ("envlock/containers/engines/daemon.py",),
    "requests": ("envlock/web/",),
    "pypi_simple": (
        "envlock/identity/export.py",
        "envlock/identity/indexes/page.py",
        "envlock/identity/indexes/places.py",
    ),
    "tomli_w": ("envlock/identity/export.py",),
    "urllib3": ("envlock/web/", "envlock/containers/engines/daemon.py"),
    "jinja2": ("envlock/containers/render.py",),
    "matplotlib": ("envlock/reports/heatmap.py",),
}
PURE = [
    *(f"envlock/runtime/{name}.py" for name in ("compare", "policy", "rules", "report", "facts")),
    *(name for name in FILES if name.startswith("envlock/images/") and not name.endswith(("logins.py", "registry.py"))),
    *(f"envlock/containers/engines/{name}.py" for name in ("failures", "output")),
    *(f"envlock/numerics/canary/{name}.py" for name in ("causes", "compare", "distance", "findings")),
]
WORLD = {"os", "sys", "io", "subprocess", "socket", "time", "random", "pathlib", "shutil", "tempfile"}


def _is_guard(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


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
        elif inside_functions or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from imports(node, inside_functions=inside_functions)


def _is_ours(module: str) -> bool:
    path = module.replace(".", "/")
    return f"{path}.py" in FILES or f"{path}/__init__.py" in FILES


def room(module: str) -> str | None:
    """Return the room of a module of ours; the facade and its version belong to none."""
    words = module.split(".")
    return words[1] if words[0] == "envlock" and len(words) > 1 else None


def test_every_room_is_in_the_order_of_rooms() -> None:
    found = {room(name.removesuffix(".py").replace("/", ".")) for name in FILES}
    assert found - {"__init__", "__main__"} <= set(ROOMS)


@pytest.mark.parametrize("name", FILES)
def test_a_room_uses_only_rooms_above_it(name: str) -> None:
    own = room(name.removesuffix(".py").replace("/", "."))
    used = {used for module in imports(TREES[name]) if (used := room(module)) is not None}
    if own in ("__init__", "__main__"):
        assert used <= {"cli"}  # `python -m envlock`
    else:
        assert own is not None
        assert {other for other in used if ROOMS.index(other) > ROOMS.index(own)} == set()
    if own == "runtime":
        assert used <= {"runtime"}
    if own == "reports":
        assert used <= {"reports", "runtime"}


@pytest.mark.parametrize("name", [name for name in FILES if name.startswith("envlock/runtime/")])
def test_the_runtime_half_is_the_standard_library_and_cheap(name: str) -> None:
    outside = {module for module in imports(TREES[name]) if room(module) != "runtime"}
    at_import = {module for module in imports(TREES[name], inside_functions=False) if room(module) != "runtime"}
    assert {module for module in outside if module.partition(".")[0] == "envlock"} == set()
    assert at_import - CHEAP == set() or name == CHILD
    others = {module.partition(".")[0] for module in outside} - set(sys.stdlib_module_names)
    assert {other for other in others if name not in OWNERS.get(other, ())} == set()


BY_NAME = {
    "envlock/runtime/calls.py": {"'tensorflow'", "words[0]", "'.'.join(words[:number + 1])"},  # a recipe's own calls
    "envlock/runtime/strict_json.py": {"'json.decoder'"},
}
"""What the runtime half imports by name, past the check of owners: nowhere else may it import TensorFlow."""


def test_only_activation_imports_by_name() -> None:
    calls = ("import_module", "__import__", "exec", "eval")
    found: dict[str, set[str]] = {}
    for name, tree in TREES.items():
        for node in ast.walk(tree) if name.startswith("envlock/runtime/") else ():
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in calls:
                found.setdefault(name, set()).add(ast.unparse(node.args[0]))
    assert found == BY_NAME


@pytest.mark.parametrize("package", OWNERS)
def test_an_outside_package_is_imported_by_its_owner_only(package: str) -> None:
    importers = {
        name for name, tree in TREES.items() if package in {module.partition(".")[0] for module in imports(tree)}
    }
    assert {name for name in importers if not name.startswith(OWNERS[package] or "nobody")} == set()


@pytest.mark.parametrize("name", PURE)
def test_what_decides_does_not_touch_the_world(name: str) -> None:
    assert {module.partition(".")[0] for module in imports(TREES[name])} & WORLD == set()


@pytest.mark.parametrize("name", FILES)
def test_files_and_functions_are_short(name: str) -> None:
    assert len(FILES[name].read_text(encoding="utf-8").splitlines()) <= 400
    functions = [node for node in ast.walk(TREES[name]) if isinstance(node, ast.FunctionDef)]
    assert {f.name for f in functions if (f.end_lineno or 0) - f.lineno + 1 > 50} == set()


def _commands() -> list[str]:
    """Return the file of every function that the program registers: `app.command(...)(verify.verify)`."""
    calls = [node for node in ast.walk(TREES["envlock/cli/__init__.py"]) if isinstance(node, ast.Call)]
    made = [call.args[0] for call in calls if ast.unparse(call.func).startswith("app.command(")]
    return sorted(f"envlock/cli/{arg.attr}.py" for arg in made if isinstance(arg, ast.Attribute))


COMMANDS = _commands()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_parses_calls_prints_and_exits(name: str) -> None:
    """No logic there: its body, without the docstring, has at most 25 lines."""
    commands = [n for n in TREES[name].body if isinstance(n, ast.FunctionDef) and n.name == Path(name).stem]
    assert [c.name for c in commands] == [Path(name).stem]
    body = commands[0].body[1:]
    assert (body[-1].end_lineno or 0) - body[0].lineno + 1 <= 25


def test_all_commands_were_looked_at() -> None:
    assert {"build", "capture", "diff", "hashes", "run", "show", "verify"} <= {Path(name).stem for name in COMMANDS}


BYTECODE_CHILD = "envlock/identity/files/bytecode_child.py"
INSIDE = "envlock/containers/inside"
"""Programs that run inside an image, by themselves."""


@pytest.mark.parametrize("name", [name for name in FILES if name.startswith(INSIDE)])
def test_programs_for_the_inside_of_an_image_need_the_standard_library_only(name: str) -> None:
    outside = {module.partition(".")[0] for module in imports(TREES[name]) if room(module) != "runtime"}
    assert outside <= set(sys.stdlib_module_names)
    assert name.endswith("entrypoint.py") or "envlock" not in {m.partition(".")[0] for m in imports(TREES[name])}


@pytest.mark.parametrize("name", [name for name in FILES if name.startswith("envlock/numerics/child/")])
def test_programs_for_the_users_interpreter_need_nothing_of_the_authoring_half(name: str) -> None:
    used = set(imports(TREES[name]))
    assert {module for module in used if room(module) not in (None, "runtime", "numerics")} == set()
    assert {m for m in used if room(m) == "numerics" and not m.startswith("envlock.numerics.child")} == set()
    others = {m.partition(".")[0] for m in used} - set(sys.stdlib_module_names) - {"envlock"}
    assert others <= {"numpy", "tensorflow"}


@pytest.mark.parametrize(
    ("oldest", "targets"),
    [
        (
            "3.8",
            [
                "envlock/runtime",
                "envlock/__init__.py",
                f"{INSIDE}/entrypoint.py",
                "envlock/identity/files/bytecode_child.py",
                "envlock/determinism/__init__.py",
                "envlock/determinism/graphs.py",
                "envlock/divergence/inside",
                "envlock/numerics/canary/battery.py",
                "envlock/numerics/__init__.py",
                "envlock/numerics/child",
            ],
        ),
        ("3.6", [f"{INSIDE}/install.py", f"{INSIDE}/step.py"]),
    ],
)
def test_what_runs_in_images_runs_on_their_python(oldest: str, targets: list[str]) -> None:
    vermin = "import sys; from vermin.main import main; sys.exit(main())"
    argv = [sys.executable, "-c", vermin, "--no-tips", f"-t={oldest}-", *targets]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
