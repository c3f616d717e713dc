"""A Ray cluster in this process's own network, where only loopback is, and `envlock fleet run` on it, four times.

Argument: the interpreter with envlock's command line. Prints how each run ended, as JSON.
"""

import fcntl
import json
import os
import socket
import struct
import subprocess
import sys

with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stream:  # `ip link set lo up`: see netdevice(7)
    fcntl.ioctl(stream, 0x8914, struct.pack("16sh", b"lo", 0x41))

from ray.cluster_utils import Cluster

SMALL = {"num_cpus": 1, "object_store_memory": 80_000_000}


def run(name: str, *options: str) -> None:
    """Print how a run ended."""
    words = [sys.argv[1], "-m", "envlock", "fleet", "run", "--launcher", "ray", "--python", sys.executable, *options]
    environ = {**os.environ, "RAY_ADDRESS": cluster.address}
    done = subprocess.run([*words, "--", "echo", "began"], env=environ, capture_output=True, text=True, check=False)
    print(json.dumps([name, done.returncode, done.stdout, done.stderr]), flush=True)


cluster = Cluster(initialize_head=True, head_node_args={**SMALL, "include_dashboard": False, "node_name": "n1"})
for number in (2, 3):
    cluster.add_node(**SMALL, node_name=f"n{number}")
run("alike")
run("few", "--ranks", "2")
odd = cluster.add_node(**SMALL, node_name="n4", env_vars={"TF_ENABLE_ONEDNN_OPTS": "0"})
run("odd")
cluster.remove_node(odd, allow_graceful=False)
run("dead", "--ranks", "4", "--timeout", "20")
cluster.shutdown()
