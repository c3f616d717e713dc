"""Asks every node of a Ray cluster what it finds there, and writes its statement: the driver of a check.

Runs where Ray is installed, in the interpreter of the environment. Argument: JSON with

    folder, job, lock   as in rank.py; the folder of this package must be at the same place on every node
    timeout             seconds to wait for the answers of all nodes
    nodes               how many there have to be; null: those that are alive
"""

from __future__ import annotations

import json
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Tuple


def main() -> None:
    """Write a statement for each node; exit with 5 where there is no cluster."""
    asked = json.loads(sys.argv[1])
    sys.argv[1:] = []
    try:
        import ray

        ray.init(address="auto", log_to_driver=False, logging_level="ERROR")
    except (ImportError, ConnectionError, RuntimeError, OSError) as error:
        sys.stderr.write("no Ray cluster: {}\n".format(str(error).strip().split("\n")[0]))
        sys.stderr.flush()
        os._exit(5)
    from envlock.runtime.fleet.folder import Folder

    folder = Folder(asked["folder"], asked["job"])
    nodes = sorted([each for each in ray.nodes() if each["Alive"]], key=lambda each: str(each["NodeID"]))
    size = asked["nodes"] or len(nodes)
    for statement, document in _answers(ray, nodes, size, asked):
        folder.keep(statement, document)
    os._exit(0)  # not through the shutdown of Ray, which waits for tasks that hang


def _answers(ray: Any, nodes: List[Dict[str, Any]], size: int, asked: Dict[str, Any]) -> List[Tuple[Any, Any]]:
    """Return what each node says; of one that says nothing there is no statement."""
    from ray import cloudpickle
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers may not have this package

    package = os.path.dirname(os.path.dirname(os.path.abspath(str(sys.modules["envlock"].__file__))))
    ask = ray.remote(num_cpus=0, max_retries=0)(look)
    waiting = {}
    for rank, node in enumerate(nodes):
        where = NodeAffinitySchedulingStrategy(node_id=node["NodeID"], soft=False)
        who = (rank, size, str(node.get("NodeName") or node["NodeManagerHostname"]), asked["job"])
        waiting[ask.options(scheduling_strategy=where).remote(package, who, asked["lock"])] = rank
    deadline = time.monotonic() + asked["timeout"]
    done, _ = ray.wait(list(waiting), num_returns=len(waiting), timeout=max(deadline - time.monotonic(), 0))
    found = []
    for each in done:
        try:
            found.append(ray.get(each, timeout=1))
        except Exception as error:  # of a node that has died, or of the task: its statement is missing
            sys.stderr.write(f"node {waiting[each]}: {str(error).strip().splitlines()[-1]}\n")
    return found


def look(package: str, who: Tuple[int, int, str, str], lock: Any) -> Tuple[Any, Any]:
    """Return the statement and the document of the node that this task runs on."""
    import os
    import sys

    try:
        from envlock.runtime.fleet.assertion import looked
        from envlock.runtime.fleet.ranks import Rank
    except ImportError:  # envlock is not in this environment: from the folder of the driver's
        sys.path.append(package)
        for name in [each for each in sys.modules if each.partition(".")[0] == "envlock"]:
            del sys.modules[name]
        from envlock.runtime.fleet.assertion import looked
        from envlock.runtime.fleet.ranks import Rank

        sys.path.remove(package)
    rank, size, node, job = who
    return looked(Rank(rank, size, os.environ.get("ENVLOCK_FLEET_NODE") or node, job, "Ray"), lock)[1]
