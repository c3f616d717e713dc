"""A job of Kubernetes:
https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/job-v1/. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from envlock.image.additions import HOME
from envlock.image.forms.deployment import Deployment, describe_deployment, format_yaml
from envlock.image.plan import NAMESPACE
from envlock.lock.models import Lockfile

_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
"""https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set"""

SECURITY = [
    "The pod is one of the level `restricted` of https://kubernetes.io/docs/concepts/security/pod-security-standards/,",
    "and its files are read-only: a program can write to /tmp, to its home unless its code lies there, and to volumes.",
]
"""Remarks on what a pod may do."""

POD_SECURITY: Mapping[str, object] = {
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}

REMARKS = [
    "The entrypoint of the image verifies, and then runs the command that the image was built with; another one goes",
    "into `args` of the container. `command` would replace the entrypoint.",
    *SECURITY,
    "The CPUs are a set of their own only where the kubelet's CPU manager is `static` and the pod is Guaranteed:",
    "add `memory` to requests and limits for that.",
]
"""Each is a line of the manifest."""


def render(lock: Lockfile) -> str:
    """Return the manifest of a job.

    Raises:
        UsageError: the image is not in a registry.
    """
    deployment = describe_deployment(lock)
    pod = build_pod(deployment, build_container(deployment))
    remarks = [*REMARKS, *describe_pull_secret(deployment)]
    return format_yaml(remarks, build_job(deployment, {}, pod))


def build_job(
    deployment: Deployment, spec: Mapping[str, object], pod: Mapping[str, object]
) -> dict[str, object]:
    """Return the manifest of a job with such pods, as values.

    The keys of `spec` come before those of every job.
    """
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": deployment.name, "annotations": build_annotations(deployment)},
        "spec": build_job_spec(spec, pod),
    }


def build_annotations(deployment: Deployment) -> dict[str, str]:
    """Return the annotation that names the lockfile in the image."""
    return {f"{NAMESPACE}/lock": f"sha256:{deployment.lock}"}


def build_job_spec(spec: Mapping[str, object], pod: Mapping[str, object]) -> dict[str, object]:
    """Return the specification of a job of such pods, as values."""
    # No second try: the entrypoint would refuse again.
    return {**spec, "backoffLimit": 0, "template": {"spec": pod}}


def build_pod(
    deployment: Deployment,
    container: Mapping[str, object],
    volumes: Sequence[Mapping[str, object]] = (),
) -> dict[str, object]:
    """Return the specification of a pod with one container and further volumes, as values."""
    memory = {"medium": "Memory", "sizeLimit": str(deployment.shared_memory)}
    own: list[dict[str, object]] = [
        {"name": name, "emptyDir": {}} for name in _list_writable(deployment)
    ]
    return {
        "restartPolicy": "Never",
        "nodeSelector": _build_labels(deployment),
        # A training asks nothing of the cluster.
        "automountServiceAccountToken": False,
        "imagePullSecrets": [{"name": _name_pull_secret(deployment)}],
        "securityContext": dict(POD_SECURITY),
        "containers": [container],
        "volumes": [{"name": "shm", "emptyDir": memory}, *own, *volumes],
    }


def describe_pull_secret(deployment: Deployment) -> list[str]:
    """Return the remarks on the secret by which a node logs in to the registry of the image."""
    name, host = _name_pull_secret(deployment), deployment.image.partition("/")[0]
    return [
        "A node pulls from a private registry with this secret, and without it where that is public:",
        f"kubectl create secret docker-registry {name} --docker-server={host} --docker-username=... "
        "--docker-password=...",
    ]


def _name_pull_secret(deployment: Deployment) -> str:
    """Return the name of the secret, after the registry's host."""
    host = deployment.image.partition("/")[0].lower()
    return re.sub(r"[^a-z0-9]+", "-", host).strip("-") or "registry"


def _list_writable(deployment: Deployment) -> dict[str, str]:
    """Return the folders that a pod can write to, by the names of their volumes."""
    folders = {"tmp": "/tmp"}  # noqa: S108 (in the pod)
    # An empty volume would hide code that lies there.
    if not f"{deployment.code}/".startswith(f"{HOME}/"):
        folders["home"] = HOME
    return folders


def build_container(
    deployment: Deployment, mounts: Sequence[Mapping[str, object]] = ()
) -> dict[str, object]:
    """Return the container that runs the image with further volumes, as values."""
    resources: dict[str, str] = {}
    if deployment.cpus:
        resources["cpu"] = str(deployment.cpus)
    if deployment.gpus:
        resources["nvidia.com/gpu"] = str(deployment.gpus)
    container: dict[str, object] = {"name": deployment.name, "image": deployment.image}
    if resources:
        # A copy: YAML would write the same object as an alias.
        container["resources"] = {"requests": resources, "limits": dict(resources)}
    container["securityContext"] = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    memory = {"name": "shm", "mountPath": "/dev/shm"}  # noqa: S108 (in the pod)
    own = [
        {"name": name, "mountPath": folder} for name, folder in _list_writable(deployment).items()
    ]
    container["volumeMounts"] = [memory, *own, *mounts]
    return container


def _build_labels(deployment: Deployment) -> dict[str, str]:
    """Return the labels of a node that the entrypoint can accept.

    The label of the GPU comes from NVIDIA's feature discovery.
    """
    architecture = deployment.platform.rpartition("/")[2]
    labels = {"kubernetes.io/os": "linux", "kubernetes.io/arch": architecture}
    # A label has no blanks, and NVIDIA's discovery writes hyphens for them:
    # https://github.com/NVIDIA/k8s-device-plugin/tree/main/docs/gpu-feature-discovery
    product = (deployment.gpu_model or "").replace(" ", "-")
    if _LABEL.fullmatch(product):
        labels["nvidia.com/gpu.product"] = product
    return labels
