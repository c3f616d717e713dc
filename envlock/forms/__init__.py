"""Forms of a lockfile for scanners, attestations and deployment. To add one, write a module with a
`render`, and a line here.
"""

from __future__ import annotations

from collections.abc import Mapping

FORMS: Mapping[str, str] = {
    "cyclonedx": "envlock.forms.cyclonedx",
    "slsa": "envlock.forms.slsa",
    "docker-run": "envlock.forms.docker_run",
    "compose": "envlock.forms.compose",
    "devcontainer": "envlock.forms.devcontainer",
    "kubernetes": "envlock.forms.kubernetes",
    "kubernetes-fleet": "envlock.forms.kubernetes_fleet",
    "jobset": "envlock.forms.jobset",
}
"""The modules of the forms by their names on the command line; docs/reference/forms.md describes
each.
"""
