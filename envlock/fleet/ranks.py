"""The rank of a process and its job, from the variables of its launcher. Pure."""

from __future__ import annotations

from hashlib import sha256

from envlock.fleet.node_names import IN_NAMES
from envlock.runtime import strict_json
from envlock.runtime.assertion import ENFORCING, MODES
from envlock.runtime.errors import UsageError
from envlock.runtime.report import count
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Mapping, Optional, Tuple

    Environ = Mapping[str, str]

    Row = Mapping[str, Any]
    """How one launcher numbers ranks: a row of the table of launchers."""

    Source = Tuple[str, str]
    """A value, and the variable that has it."""

OWN = {
    "rank": "ENVLOCK_FLEET_RANK",
    "size": "ENVLOCK_FLEET_SIZE",
    "node": "ENVLOCK_FLEET_NODE",
    "job": "ENVLOCK_FLEET_JOB",
}
"""Variables that go before those of launchers, each on its own."""

CLUSTER = "TF_CONFIG"
ORDER = ("chief", "master", "worker")
"""The order in which TensorFlow numbers the tasks that compute together."""

ASIDE = ("evaluator", "ps")
"""Tasks that can run the same program, and for which no other task waits: an evaluator is not part
of the cluster, and a parameter server may never call.
"""

LONGEST = 64
"""Characters of a node or a job: a statement has at most 1 KB."""


class Rank:
    """A process of a job.

    Attributes:
        rank: its number, from 0 on.
        size: the number of all ranks; None if the launcher does not give it.
        node: the name of its machine.
        job: the launcher's name of the job; empty if it gives none.
        mode: the value of ENVLOCK_MODE.
        is_aside: whether it is not a rank, and is compared with the lockfile only.
    """

    __slots__ = ("is_aside", "job", "mode", "node", "rank", "size")

    def __init__(
        self,
        rank: int,
        size: Optional[int],
        node: str,
        job: str = "",
        mode: str = ENFORCING[0],
        *,
        is_aside: bool = False,
    ) -> None:
        self.rank = rank
        self.size = size
        self.node = node
        self.job = job
        self.mode = mode
        self.is_aside = is_aside


def find_rank(environ: Environ, host: str) -> Rank:
    """Return the rank of a process with these variables on the machine `host`.

    Raises:
        UsageError: no launcher gives it, or a variable is not a number.
    """
    sources = get_sources(environ)
    values = {key: value for key, (value, _) in sources.items()}
    if "rank" not in values:
        raise _make_no_rank(environ)
    rank = _parse_number(values["rank"], "rank")
    size = None
    if "size" in values:
        size = _parse_number(values["size"], "size")
        if rank >= size:
            variables = dict.fromkeys([sources["rank"][1], sources["size"][1]])
            raise UsageError(
                f"rank {rank} is not one of {count(size, 'rank')}",
                hint=f"check {' and '.join(variables)}",
            )
    mode = environ.get("ENVLOCK_MODE", "").lower()
    # A mode that does not exist is an error that is raised when this rank collects its facts.
    if mode not in MODES:
        mode = ENFORCING[0]
    node = _make_name(values.get("node") or host)
    job = _make_name(values.get("job", ""))
    is_aside = "aside" in values and not environ.get(OWN["rank"])
    return Rank(rank, size, node, job, mode, is_aside=is_aside)


def _make_no_rank(environ: Environ) -> UsageError:
    if _get_cluster(environ.get(CLUSTER, "")) == {}:
        return UsageError(
            f"cannot find the rank of this process: the cluster of {CLUSTER} is empty",
            hint=f"name the tasks in {CLUSTER}; "
            f"for one process, set {OWN['rank']}=0 and {OWN['size']}=1",
        )
    variables = f"{OWN['rank']}, {OWN['size']} and {OWN['job']}"
    return UsageError(
        "cannot find the rank of this process: no launcher has set one",
        hint=f"start it with a launcher, or set {variables} for each process",
    )


def get_sources(environ: Environ) -> Dict[str, Source]:
    """Return rank, size, node and job, each with the variable that has it, as far as variables give
    them.

    `aside` is the kind of a task of TF_CONFIG that is not a rank.
    """
    sources = _get_launcher_sources(environ)
    for key, name in OWN.items():
        if environ.get(name):
            sources[key] = (environ[name], name)
    return sources


def _get_launcher_sources(environ: Environ) -> Dict[str, Source]:
    """Return the values for this process of the launcher that numbers the processes; the nearest
    launcher goes first.
    """
    for row in table("launchers"):
        named: Optional[Row] = row["rank"]
        if named is None or not environ.get(named["rank"]):
            continue
        if named["needs"] and not environ.get(named["needs"]):
            continue
        if named["rank"] == CLUSTER:
            task = _parse_task(environ[CLUSTER])
            if task:
                return _add_variable(task, dict.fromkeys(task, CLUSTER))
            continue
        if named["hosts"]:
            values = _find_among_hosts(named, environ)
        else:
            values = {}
            for key in ("rank", "size", "node"):
                if environ.get(named[key] or ""):
                    values[key] = environ[named[key]]
        if values:
            return {**_add_variable(values, named), "job": (_get_job(named, environ), "")}
    return {}


def _add_variable(values: Mapping[str, str], variables: Mapping[str, str]) -> Dict[str, Source]:
    """Return the values, each with the variable that has it."""
    return {key: (value, variables[key]) for key, value in values.items()}


def _find_among_hosts(named: Row, environ: Environ) -> Dict[str, str]:
    """Return the number of a host among all hosts, the number of hosts, and its name; empty if the
    list does not contain it.
    """
    hosts = _parse_json(environ.get(named["size"], ""))
    host = environ[named["rank"]]
    if not isinstance(hosts, list) or host not in hosts:
        return {}
    if not all(isinstance(each, str) for each in hosts):
        return {}
    names = sorted(set(hosts))
    return {"rank": str(names.index(host)), "size": str(len(names)), "node": host}


def find_launched_job(environ: Environ) -> str:
    """Return the name that a launcher gives to the job around a process; empty without a name."""
    for row in table("launchers"):
        if row["rank"] is not None:
            job = _get_job(row["rank"], environ)
            if job:
                return job
    return ""


def count_restarts(environ: Environ) -> int:
    """Return how often its launcher has started this job again; 0 where none says so."""
    for row in table("launchers"):
        named: Optional[Row] = row["rank"]
        if named is not None and named["restarts"]:
            number = environ.get(named["restarts"], "")
            if number.isascii() and number.isdigit() and len(number) < 10:
                return int(number)
    return 0


def _get_job(named: Row, environ: Environ) -> str:
    words = [environ[name].partition("#")[0] for name in named["job"] if environ.get(name)]
    job = ".".join(words)
    # If many jobs had the same name, their ranks could meet.
    if job and job == named["unnamed"]:
        return ".".join([environ[name] for name in named["instead"] if environ.get(name)])
    return job


def _get_cluster(text: str) -> object:
    """Return the cluster of TF_CONFIG; None if it has none."""
    config = _parse_json(text)
    if not isinstance(config, dict):
        return None
    return config.get("cluster")


def _parse_json(text: str) -> object:
    """Return the value of a variable; None if it is not JSON."""
    try:
        value: object = strict_json.parse(text.encode("utf-8", "surrogatepass"))
    except ValueError:
        return None
    return value


def _parse_task(text: str) -> Dict[str, str]:
    """Return the task of this process in TF_CONFIG; empty if it names no such task.

    Source:
    https://www.tensorflow.org/guide/distributed_training#setting_up_the_tf_config_environment_variable
    """
    config: Any = _parse_json(text)
    try:
        cluster, task = config["cluster"], config["task"]
        numbers = [len(cluster.get(kind, ())) for kind in ORDER]
        if task["type"] in ASIDE:
            return {"rank": "0", "size": "1", "aside": task["type"]}
        place = ORDER.index(task["type"])
        rank = sum(numbers[:place]) + int(task["index"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}
    if not cluster:
        return {}
    job = "tf-" + _digest(repr(sorted(cluster.items())))
    return {"rank": str(rank), "size": str(sum(numbers)), "job": job}


def _parse_number(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise UsageError(
            f"the {what} of this process is not a number: {text[:40]!r}", hint="check the launcher"
        )
    return int(text)


def _make_name(text: str) -> str:
    """Return a name of at most `LONGEST` characters that has no control characters and cannot name
    another folder.
    """
    name = ""
    for char in text:
        if char.isascii() and (char.isalnum() or char in IN_NAMES):
            name += char
        else:
            name += "_"
    # A name of only dots would be this folder, or the one above it.
    if not name.strip("."):
        name = name.replace(".", "_")
    if len(name) <= LONGEST:
        return name
    return name[: LONGEST - 13] + "-" + _digest(text)


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:12]
