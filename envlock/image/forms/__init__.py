"""Forms of a lockfile for scanners, attestations and deployment. To add one, write a module with a
`render`, and a line here.
"""

from __future__ import annotations

from collections.abc import Mapping

FORMS: Mapping[str, str] = {
    "cyclonedx": "envlock.image.forms.cyclonedx",
    "slsa": "envlock.image.forms.slsa",
    "docker-run": "envlock.image.forms.docker_run",
    "compose": "envlock.image.forms.compose",
    "devcontainer": "envlock.image.forms.devcontainer",
    "kubernetes": "envlock.image.forms.kubernetes",
    "kubernetes-fleet": "envlock.image.forms.kubernetes_fleet",
    "jobset": "envlock.image.forms.jobset",
}
"""The modules of the forms by their names on the command line; docs/reference/forms.md describes
each.
"""
