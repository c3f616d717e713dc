"""Podman and buildah, unpacked and configured: two commands on one store of images, and no daemon.

The corrections are the machine's: no cgroups that crun takes, no CAP_SYS_RESOURCE for the default ulimits.
"""

from __future__ import annotations

import fcntl
import json
import os
import resource
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.image.bed.debian import fetch, unpack
from tests.image.bed.engine import remove

PACKAGES = [
    f"{name}/bookworm"
    for name in (
        *("podman", "buildah", "conmon", "runc", "golang-github-containers-common", "golang-github-containers-image"),
        *("libgpgme11", "libassuan0", "libsubid4", "libdevmapper1.02.1", "libseccomp2", "libglib2.0-0", "catatonit"),
    )
]

WRAPPER = """\
#!/bin/sh
export LD_LIBRARY_PATH="$BED_LIBRARIES"
case $1 in
build|from) command=$1; shift; exec {program} $command {options} "$@";;
*) exec {program} "$@";;
esac
"""
"""Building looks into no configuration for its limits."""


@dataclass(frozen=True)
class Podman:
    """What podman and buildah need.

    Attributes:
        folder: what they keep, below /tmp.
        root: where their programs are unpacked.
    """

    folder: Path
    root: Path

    @property
    def environ(self) -> dict[str, str]:
        """What to add to a process's environment so that it finds these two, and no Docker."""
        libraries = f"{self.root}/usr/lib/x86_64-linux-gnu:{self.root}/lib/x86_64-linux-gnu"
        return {
            "HOME": str(self.folder),
            "PATH": f"{self.folder}/bin:{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin",
            "CONTAINERS_CONF": f"{self.folder}/containers.conf",
            "CONTAINERS_STORAGE_CONF": f"{self.folder}/storage.conf",
            "CONTAINERS_REGISTRIES_CONF": f"{self.folder}/registries.conf",
            "REGISTRY_AUTH_FILE": f"{self.folder}/auth.json",
            "XDG_RUNTIME_DIR": f"{self.folder}/run",
            "BED_LIBRARIES": libraries,
            "DOCKER_HOST": f"unix://{self.folder}/none.sock",
        }

    def remove(self) -> None:
        """Remove everything."""
        remove(self.folder)


def unpacked(cache: Path) -> Path:
    """Return the root of the unpacked packages, unpacking them the first time; several processes may ask at once."""
    root = cache / "podman"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("a") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        if not root.exists():
            fresh = cache / ".podman"
            shutil.rmtree(fresh, ignore_errors=True)
            fresh.mkdir(parents=True)
            unpack(fetch(PACKAGES, cache / "debs"), fresh)
            fresh.replace(root)
    return root


def configured(root: Path) -> Podman:
    """Return podman and buildah with a store of their own, and wrappers that find their libraries."""
    folder = Path(tempfile.mkdtemp(prefix="po.", dir="/tmp"))
    made = Podman(folder, root)
    for name in ("bin", "run"):
        (folder / name).mkdir()
    policy = folder / ".config/containers/policy.json"
    policy.parent.mkdir(parents=True)
    policy.write_text(json.dumps({"default": [{"type": "insecureAcceptAnything"}]}))
    limits = [f"{name}={number}:{number}" for name, number in _limits().items()]
    for name in ("podman", "buildah"):
        script = folder / "bin" / name
        options = " ".join(f"--ulimit {limit}" for limit in limits)
        script.write_text(WRAPPER.format(program=f"{root}/usr/bin/{name}", options=options))
        script.chmod(0o755)
    # What conmon starts when a container has ended is podman without the wrapper; until it answers, podman waits 20 s.
    own = {"PATH": made.environ["PATH"], "LD_LIBRARY_PATH": made.environ["BED_LIBRARIES"]}
    (folder / "containers.conf").write_text(
        f"""\
[containers]
default_ulimits = {json.dumps(limits)}
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
conmon_path = ["{root}/usr/bin/conmon"]
conmon_env_vars = {json.dumps([f"{name}={value}" for name, value in own.items()])}
helper_binaries_dir = ["{root}/usr/lib/podman", "{root}/usr/libexec/podman"]
[engine.runtimes]
runc = ["{root}/usr/sbin/runc"]
"""
    )
    (folder / "storage.conf").write_text(
        f'[storage]\ndriver = "overlay"\ngraphroot = "{folder}/graph"\nrunroot = "{folder}/run/storage"\n'
    )
    (folder / "registries.conf").write_text('unqualified-search-registries = ["docker.io"]\n')
    (folder / "auth.json").write_text("{}")
    return made


def _limits() -> dict[str, int]:
    """Return limits that this process may set."""
    kinds = {"nofile": resource.RLIMIT_NOFILE, "nproc": resource.RLIMIT_NPROC}
    hard = {name: resource.getrlimit(kind)[1] for name, kind in kinds.items()}
    return {name: min(number, 20000) if number > 0 else 20000 for name, number in hard.items()}
