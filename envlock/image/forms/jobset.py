"""A JobSet of Kubernetes that runs in all pods or in none, and a policy that admits only the locked
image. Pure.

Source: https://github.com/kubernetes-sigs/jobset/blob/main/api/jobset/v1alpha2/jobset_types.go
"""

from __future__ import annotations

from envlock.image.forms.deployment import describe_deployment, format_yaml
from envlock.image.forms.kubernetes import (
    SECURITY,
    build_annotations,
    build_job_spec,
    describe_pull_secret,
)
from envlock.image.forms.kubernetes_fleet import (
    PODS,
    build_fleet_pod,
    build_indexed_spec,
    build_policies,
)
from envlock.lock.models import Lockfile

ROLE = "worker"

REMARKS = [
    "Change the number of pods in `completions`, `parallelism`, ENVLOCK_FLEET_SIZE and the workers of TF_CONFIG, the claim",
    "`fleet`, which all nodes must be able to write (ReadWriteMany), and the command that follows `--` in `args`.",
    "The entrypoint of the image verifies; then every pod waits for all others, and all become the command or none.",
    "JobSet makes the service that TF_CONFIG needs. `maxRestarts: 0`: what was refused once would be refused again.",
    "The policy admits a job with the annotation of this lockfile only with the image that was built from it.",
    "It was validated by the published schemas of JobSet and Kubernetes, and was not run on a cluster.",
]


def render(lock: Lockfile) -> str:
    """Return the manifests of a JobSet, and of a policy and its binding.

    Raises:
        UsageError: the image is not in a registry.
    """
    deployment = describe_deployment(lock)
    name = deployment.name
    # JobSet names a pod after set, role, number of the job and number of the pod
    # (`enableDNSHostnames` in the source above).
    hosts = [f"{name}-{ROLE}-0-{index}.{name}" for index in range(PODS)]
    # The policy examines the job that JobSet creates, so the annotation belongs there, too.
    template = {
        "metadata": {"annotations": build_annotations(deployment)},
        "spec": build_job_spec(build_indexed_spec(), build_fleet_pod(deployment, hosts)),
    }
    jobs = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name, "annotations": build_annotations(deployment)},
        "spec": {
            "network": {
                "enableDNSHostnames": True,
                "publishNotReadyAddresses": True,
                "subdomain": name,
            },
            "failurePolicy": {"maxRestarts": 0},
            "replicatedJobs": [{"name": ROLE, "replicas": 1, "template": template}],
        },
    }
    remarks = [*REMARKS, *SECURITY, *describe_pull_secret(deployment)]
    return format_yaml(remarks, jobs, *build_policies(deployment))
