"""A job of Kubernetes:
https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/job-v1/. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from envlock.containers.plan import NAMESPACE
from envlock.forms.deployment import CHECKED, Deployment, describe_deployment, format_yaml
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
"""Each is a line of the manifest."""


def render(lock: Lockfile, licenses: Mapping[str, License]) -> str:
    """Return the manifest of a job.

    Raises:
        UsageError: the image is not in a registry.
    """
    deployment = describe_deployment(lock)
    pod = build_pod(deployment, build_container(deployment))
    return format_yaml(REMARKS, build_job(deployment, {}, pod))


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
    return {
        "restartPolicy": "Never",
        "nodeSelector": _build_labels(deployment),
        "securityContext": {"runAsNonRoot": True},
        "containers": [container],
        "volumes": [{"name": "shm", "emptyDir": memory}, *volumes],
    }


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
    container["securityContext"] = {"allowPrivilegeEscalation": False}
    memory = {"name": "shm", "mountPath": "/dev/shm"}  # noqa: S108 (in the pod)
    container["volumeMounts"] = [memory, *mounts]
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
