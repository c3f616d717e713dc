"""A job of Kubernetes: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/job-v1/. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from envlock.containers.plan import NAMESPACE
from envlock.forms.deployment import CHECKED, Deployment, deployment, yaml_text
from envlock.lock.models import Lockfile
from envlock.packages.licenses import License

_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
"""https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set"""

REMARKS = [
    CHECKED,
    "Such a command goes into `args` of the container; `command` would replace the entrypoint.",
    "The CPUs are a set of their own only where the kubelet's CPU manager is `static` and the pod is Guaranteed:",
    "add `memory` to requests and limits for that.",
]


def render(lock: Lockfile, licenses: Mapping[str, License]) -> str:
    """Return the manifest of a job.

    Raises:
        UsageError: the image is in no registry.
    """
    return yaml_text(REMARKS, job(deployment(lock)))


def job(made: Deployment) -> dict[str, Any]:
    """Return the manifest of a job as values."""
    pod = {
        "restartPolicy": "Never",
        "nodeSelector": _node(made),
        "securityContext": {"runAsNonRoot": True},
        "containers": [_container(made)],
        "volumes": [
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": str(made.shared_memory)}}
        ],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": made.name,
            "annotations": {f"{NAMESPACE}/lock": f"sha256:{made.lock}"},
        },
        "spec": {
            "backoffLimit": 0,
            "template": {"spec": pod},
        },  # a refusal is one the next time, too
    }


def _container(made: Deployment) -> dict[str, Any]:
    wanted: dict[str, Any] = {}
    if made.cpus:
        wanted["cpu"] = str(made.cpus)
    if made.gpus:
        wanted["nvidia.com/gpu"] = str(made.gpus)
    return {
        "name": made.name,
        "image": made.image,
        **({"resources": {"requests": wanted, "limits": dict(wanted)}} if wanted else {}),
        "securityContext": {"allowPrivilegeEscalation": False},
        "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],  # noqa: S108 (in the pod)
    }


def _node(made: Deployment) -> dict[str, str]:
    """Return the labels of a node that the entrypoint can accept; that of the GPU is of NVIDIA's feature discovery."""
    labels = {"kubernetes.io/os": "linux", "kubernetes.io/arch": made.platform.rpartition("/")[2]}
    product = (made.gpu_model or "").replace(" ", "-")
    if _LABEL.fullmatch(product):
        labels["nvidia.com/gpu.product"] = product
    return labels
