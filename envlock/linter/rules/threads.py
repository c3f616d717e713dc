"""Orders of arrival: parallel maps, queues, pools and threads, and data sets that give up theirs."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from envlock.data.specifiers import matches_version
from envlock.linter.arguments import find_default
from envlock.linter.events import Event
from envlock.linter.facts import Facts
from envlock.linter.findings import Found, join
from envlock.linter.module import UNSURE, get_last_word, list_words, read_literal, walk
from envlock.linter.names import FEEDING
from envlock.linter.origins import Origins
from envlock.linter.project import File, Project, Scope
from envlock.linter.rules.orders import Uses

MADE = "__init__"
ITEMIZED = ("PyDataset", "Sequence")
"""Classes of Keras whose items are made by workers."""
WITH_KERAS_3 = (
    "Leave workers at 1 where the data set is made (`super().__init__(workers=1)`), or give each item a "
    "seed of its own."
)
CALLS = 3
"""Functions through which a mapped one is followed."""
UNORDERED = frozenset(
    {"deterministic", "experimental_deterministic", "sloppy", "sloppy_ordering", "shuffle_files"}
)


def find_parallel(facts: Facts) -> Iterator[Found]:
    """ENV301: a function that draws, mapped in parallel."""
    draws = [each for each in facts.select("draw", "layer") if each.of != "own"]
    drawing = {each.scope for each in draws}
    lines = {(each.file, each.line) for each in draws}
    functions: dict[str, list[Scope]] = defaultdict(list)
    for file in facts.project.files:
        for scope in file.scopes:
            functions[_get_called_name(scope)].append(scope)
    events = []
    for event in facts.select("parallel"):
        mapped = event.node.args[:1] if isinstance(event.node, ast.Call) else []
        own = {line for each in mapped for line in range(each.lineno, (each.end_lineno or 0) + 1)}
        if any((event.file, line) in lines for line in own) or not drawing.isdisjoint(
            _list_called(facts.project, event.file, mapped, functions)
        ):
            events.append(event)
    message = "threads call a function that draws{more}: which element gets which number differs"
    yield from join(facts.project, "ENV301", events, message)


def _list_called(
    project: Project, file: File, mapped: list[ast.expr], functions: dict[str, list[Scope]]
) -> set[Scope]:
    """Return the functions that something mapped names, or that these call."""
    origins = Origins(project, file)
    # `parse = functools.partial(_parse, training)`
    given = [
        value
        for each in mapped
        for node in walk(each)
        if isinstance(node, ast.Name)
        for value in origins.list_values(node)
    ]
    words, reach = list_words([*mapped, *given]), project.list_reach(file)
    found: set[Scope] = set()
    for _ in range(CALLS + 1):
        called = {each for word in words for each in functions.get(word, ())} - found
        near = {each for each in called if each.file.index in reach}
        found |= near
        said = {word for each in near for word in each.file.said[each]}
        words = {word if isinstance(word, str) else word[1] for word in said}
    return found


def _get_called_name(scope: Scope) -> str:
    """Return the name by which code calls a function, or an object that has `__call__`."""
    if scope.owner is not None and scope.name in ("__call__", "call"):
        return scope.owner.name
    return scope.name


def find_given_up(facts: Facts) -> Iterator[Found]:
    """ENV302: data sets that may give their elements in any order."""
    project = facts.project
    loose: list[Event] = []
    files: list[Event] = []
    for file in project.files:
        if any(word in file.module.text for word in UNORDERED):
            for keyword in file.module.list_nodes(ast.keyword):
                call = file.module.get_parent(keyword)
                if keyword.arg in UNORDERED and isinstance(call, ast.Call):
                    is_files = keyword.arg == "shuffle_files"
                    configured = any(each.arg == "read_config" for each in call.keywords)
                    if _asks(file, keyword.arg, keyword.value) and not (is_files and configured):
                        name = f"{keyword.arg}={ast.unparse(keyword.value)}"
                        (files if is_files else loose).append(_make(file, call, name))
            for assign in file.module.list_nodes(ast.Assign):
                word = getattr(assign.targets[0], "attr", "")
                if word in UNORDERED and read_literal(assign.value) is False:
                    loose.append(_make(file, assign, f"{word} = False"))
    yield from join(project, "ENV302", loose, "with {name} the elements come in any order{more}")
    message = "the files of the data set are shuffled and read in parallel{more}"
    fix = "Pass read_config=tfds.ReadConfig(shuffle_seed=seed), or leave shuffle_files out."
    yield from join(project, "ENV302", files, message, fix)


def _asks(file: File, word: str, value: ast.expr) -> bool:
    """Return whether an argument gives the order up."""
    given = read_literal(value)
    if isinstance(value, ast.Name):
        function = file.find_scope(value).node
        default = find_default(function, value.id) if function is not None else None
        if default is not None and read_literal(default) is False:
            return False
    return given is False if "deterministic" in word else given is not False


def _make(file: File, node: ast.AST, name: str) -> Event:
    return Event("order", "", name, node, file.find_scope(node))


def find_workers(facts: Facts, tensorflow: str) -> Iterator[Found]:
    """ENV306: several Python workers that feed a model."""
    events = []
    has_keras_3 = matches_version([">=2.16"], tensorflow)
    own = {
        node.name
        for file in facts.project.files
        for node in file.module.list_nodes(ast.ClassDef)
        if any(get_last_word(base) in ITEMIZED for base in node.bases)
    }
    for file in facts.project.files:
        if "workers" not in file.module.text and "multiprocessing" not in file.module.text:
            continue
        for call in file.module.list_nodes(ast.Call):
            given = {each.arg: read_literal(each.value) for each in call.keywords}
            by_default = 2 if given.get("use_multiprocessing") is True else 1
            if given.get("workers", by_default) in (0, 1):
                continue
            word = get_last_word(call.func)
            name = facts.project.resolve(file, call.func) or ""
            # A model of Keras 3 refuses them: ENV109.
            feeds = word == MADE if has_keras_3 else word in FEEDING
            if feeds or word in own or name.startswith("keras."):
                events.append(Event("workers", "", word, call, file.find_scope(call)))
    message = "Python workers feed the model{more}: they share or copy one generator, and finish in any order"
    fix = WITH_KERAS_3 if has_keras_3 else None
    yield from join(facts.project, "ENV306", events, message, fix)


def find_arrivals(facts: Facts) -> Iterator[Found]:
    """ENV307: data in the order in which workers finish."""
    project = facts.project
    queues = [each for each in facts.select("arrival") if each.of == "queue"]
    message = "{name} takes elements in the order in which its threads put them{more}"
    yield from join(project, "ENV307", queues, message, "Use one thread.")
    others = [each for each in facts.select("arrival") if each.of != "queue" and _is_kept(each)]
    message = "{name} gives results in the order in which workers finish{more}"
    yield from join(project, "ENV307", others, message)
    started = {each.file.index for each in facts.select("worker")}
    taken = []
    for each in facts.select("get"):
        reach = project.list_reach(each.file)
        if not started.isdisjoint(reach):
            taken.append(each)
    message = "what several workers send is taken in the order of its arrival{more}"
    yield from join(project, "ENV307", taken, message, part=UNSURE)


def _is_kept(event: Event) -> bool:
    """Return whether the order of arrival goes into something that keeps it."""
    if event.name not in ("imap_unordered", "concurrent.futures.as_completed"):
        return True
    node = event.node
    return isinstance(node, ast.expr) and Uses(event.file.module).is_ordered(node)


def find_threads(facts: Facts) -> Iterator[Found]:
    """ENV307: threads that are started in a program which trains."""
    project = facts.project
    trained = {each.file.index for each in facts.select("train")}
    events = []
    for each in facts.select("worker"):
        programs = project.list_programs(each.scope)
        if any(not trained.isdisjoint(project.list_reach(program)) for program in programs):
            events.append(each)
    message = "{name} runs beside the training{more}: what they share changes in any order"
    fix = "Let one thread train, and join the others in a fixed order."
    yield from join(project, "ENV307", events, message, fix, part=UNSURE)
