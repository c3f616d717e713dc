"""What engines say when something fails, word for word as they said it, and what is made of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from envlock.containers.engines.daemon import Daemon
from envlock.containers.engines.engine_command import drop_identity_label
from envlock.containers.engines.engine_errors import EngineError, explain, select_output

NGC = "nvcr.io/nvidia/tensorflow:25.02-tf2-py3@sha256:" + "0" * 64
PRIVATE = "nvcr.io/private/tensorflow:25.02-tf2-py3@sha256:" + "6" * 64
RESOLVE = "ERROR: failed to solve: {0}: failed to resolve source metadata for {0}: "
LOGIN = "run `docker login nvcr.io` with a key that can pull it (for nvcr.io the user is $oauthtoken)"
GONE = "choose another tag: the publisher may have removed this one"
ANEW = "check that it runs (`docker version`), and build again"
SEE = "start Docker (`docker version` shows its state), or name another host in DOCKER_HOST"
ROOM = "free disk space (`docker system df` shows its use)"
TOOLKIT = "install the NVIDIA container toolkit on the machine of the engine, or leave out `--gpus`"
NETWORK = "check its network and proxy, or name a mirror"
NO_GPU = "the container engine cannot give a GPU to a container"
FULL = "the disk of the container engine is full"
AWAY = "the connection to the container engine was lost"
NONE = "the container engine does not respond"

HERE = "127.0.0.1:5000/team/x:1"
PULL, PUSH = f"pull of {HERE}: ", f"push of {HERE}: "
REGISTRY = "check the name and the state of its registry, or try again later"

TEXTS = {
    "digest gone, BuildKit": (RESOLVE.format(NGC) + f"{NGC}: not found", f"the registry does not have {NGC}", GONE),
    "digest gone, classic": (
        f"manifest for {NGC} not found: manifest unknown: manifest unknown",
        f"the registry does not have {NGC}",
        GONE,
    ),
    "denied, BuildKit": (
        RESOLVE.format(PRIVATE) + "pull access denied, repository does not exist or may require authorization: "
        "server message: insufficient_scope: authorization failed",
        f"the registry denies access to {PRIVATE}",
        LOGIN,
    ),
    "denied, classic": (
        "pull access denied for nvcr.io/private/tensorflow, repository does not exist or may require 'docker login': "
        "denied: requested access to the resource is denied",
        "the registry denies access to nvcr.io/private/tensorflow",
        LOGIN,
    ),
    "wrong key, BuildKit": (
        RESOLVE.format(PRIVATE) + "failed to authorize: failed to fetch oauth token: unexpected status from GET "
        "request to https://127.78.94.11/token?scope=repository%3Aprivate%2Ftensorflow%3Apull&service=bed: "
        "401 Unauthorized",
        f"the registry rejects the login for {PRIVATE}",
        LOGIN,
    ),
    "wrong key, classic": (
        f'Get "https://nvcr.io/v2/private/tensorflow/manifests/sha256:{"6" * 64}": unauthorized',
        "the registry rejects the login for nvcr.io",
        LOGIN,
    ),
    "no credentials, classic": (
        'Get "https://nvcr.io/v2/private/tensorflow/manifests/1": no basic auth credentials',
        "the registry rejects the login for nvcr.io",
        LOGIN,
    ),
    "registry down, BuildKit": (
        RESOLVE.format("127.0.0.1:1/a/b:1") + 'failed to do request: Head "https://127.0.0.1:1/v2/a/b/manifests/1": '
        "dial tcp 127.0.0.1:1: connect: connection refused",
        "the container engine cannot reach the registry 127.0.0.1:1",
        NETWORK,
    ),
    "registry down, classic": (
        'Get "http://127.0.0.1:1/v2/": dial tcp 127.0.0.1:1: connect: connection refused',
        "the container engine cannot reach the registry 127.0.0.1:1",
        NETWORK,
    ),
    "no such host, BuildKit": (
        RESOLVE.format("registry.example.org/a:1") + 'failed to do request: Head "https://registry.example.org/v2/a/'
        'manifests/1": dial tcp: lookup registry.example.org on 192.0.2.53:53: no such host',
        "the container engine cannot reach the registry registry.example.org",
        NETWORK,
    ),
    "no such host, classic": (
        'Get "https://registry.example.org/v2/": dial tcp: lookup registry.example.org on 192.0.2.53:53: no such host',
        "the container engine cannot reach the registry registry.example.org",
        NETWORK,
    ),
    "certificate, classic": (
        'Get "https://registry.example.org/v2/": x509: certificate signed by unknown authority',
        "the certificate of registry.example.org is not trusted by the container engine",
        "install its CA certificate: /etc/docker/certs.d/registry.example.org/ca.crt on the machine of the engine",
    ),
    "certificate, BuildKit": (
        RESOLVE.format(NGC) + 'failed to authorize: failed to fetch anonymous token: Get "https://127.78.94.11/token?'
        'scope=repository%3Anvidia%2Ftensorflow%3Apull&service=bed": tls: failed to verify certificate: x509: '
        "certificate signed by unknown authority",
        "the certificate of 127.78.94.11 is not trusted by the container engine",
        "install its CA certificate: /etc/docker/certs.d/127.78.94.11/ca.crt on the machine of the engine",
    ),
    "disk full, BuildKit": (
        "ERROR: failed to solve: failed to copy: write /var/lib/docker/buildkit/content/ingest/fd919aa5/data: "
        "no space left on device",
        FULL,
        ROOM,
    ),
    "disk full, classic": ("write /usr2/bin/python3.11: no space left on device", FULL, ROOM),
    "daemon killed, BuildKit": (
        "ERROR: failed to receive status: rpc error: code = Unavailable desc = error reading from server: EOF",
        AWAY,
        ANEW,
    ),
    "daemon killed, BuildKit, a moment later": (
        "ERROR: failed to solve: Unavailable: error reading from server: read unix @->/tmp/el.s257cpfo/docker.sock: "
        "read: connection reset by peer",
        AWAY,
        ANEW,
    ),
    "daemon killed, classic": (
        "('Connection broken: IncompleteRead(0 bytes read)', IncompleteRead(0 bytes read))",
        AWAY,
        ANEW,
    ),
    "daemon killed, between two questions": (
        "('Connection aborted.', RemoteDisconnected('Remote end closed connection without response'))",
        AWAY,
        ANEW,
    ),
    "no daemon, SDK": (
        "Error while fetching server API version: ('Connection aborted.', "
        "FileNotFoundError(2, 'No such file or directory'))",
        NONE,
        SEE,
    ),
    "no daemon, by TCP": (
        "Error while fetching server API version: HTTPConnectionPool(host='127.0.0.1', port=1): Max retries exceeded "
        "with url: /version (Caused by NewConnectionError(\"HTTPConnection(host='127.0.0.1', port=1): Failed to "
        'establish a new connection: [Errno 111] Connection refused"))',
        NONE,
        SEE,
    ),
    "no daemon, command": (
        "ERROR: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
        NONE,
        SEE,
    ),
    "no permission, SDK": (
        "Error while fetching server API version: ('Connection aborted.', PermissionError(13, 'Permission denied'))",
        "no permission to use the container engine",
        "join the group of its socket (often `docker`), or run as another user",
    ),
    "no GPUs": ('could not select device driver "" with capabilities: [[gpu]]', NO_GPU, TOOLKIT),
    "no GPUs, CDI": (
        "CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=all",
        NO_GPU,
        TOOLKIT,
    ),
    "no GPUs, runtime": ("unknown or invalid runtime name: nvidia", NO_GPU, TOOLKIT),
    "no GPUs, runtime, 20.10": ("Unknown runtime specified nvidia", NO_GPU, TOOLKIT),
    "other platform, classic": (
        "image with reference docker.io/library/python:3.11-slim was found but does not match the specified platform: "
        "wanted linux/s390x, actual: linux/amd64",
        "docker.io/library/python:3.11-slim does not exist for this platform",
        "name another platform, or another base",
    ),
    "other platform, BuildKit": (
        RESOLVE.format(NGC) + "no match for platform in manifest: not found",
        f"{NGC} does not exist for this platform",
        "name another platform, or another base",
    ),
    "other platform, classic, index": (
        "no matching manifest for linux/s390x in the manifest list entries",
        "the image does not exist for this platform",
        "name another platform, or another base",
    ),
    "no network": (
        "ERROR: failed to solve: network bridge not found",
        "the container engine has no network for a build",
        "build without a network (the default), or configure one for the engine",
    ),
    "podman, no cgroups": (
        "Error: OCI runtime error: crun: cgroups in hybrid mode not supported, drop all controllers from cgroupv2",
        "the container runtime failed: crun: cgroups in hybrid mode not supported, drop all controllers from cgroupv2",
        "see `podman info`; `runtime` in containers.conf names another runtime",
    ),
    "no such program": (
        "failed to create task for container: failed to create shim task: OCI runtime create failed: runc create "
        'failed: unable to start container process: exec: "nosuch": executable file not found in $PATH: unknown',
        "the image does not have the program nosuch",
        "name a program of the image",
    ),
    "no such image": (
        "No such image: nosuch:latest",
        "the container engine does not have the image nosuch:latest",
        "build or pull it first",
    ),
    "Dockerfile, BuildKit": (
        "ERROR: failed to solve: dockerfile parse error on line 2: unknown instruction: RUNN (did you mean RUN?)",
        "invalid Dockerfile, line 2: unknown instruction: RUNN (did you mean RUN?)",
        "correct it, or let envlock write it again",
    ),
    "Dockerfile, 20.10": (
        "dockerfile parse error line 2: unknown instruction: RUNN",
        "invalid Dockerfile, line 2: unknown instruction: RUNN",
        "correct it, or let envlock write it again",
    ),
    "pull, wrong key, Docker 26": (
        PULL + 'unauthorized: {"errors":[{"code":"X","message":"told so"}]}',
        f"the registry rejects the login for {HERE}",
        LOGIN.replace("nvcr.io`", "127.0.0.1:5000`"),
    ),
    "pull, denied, podman": (
        PULL + "initializing source docker://127.0.0.1:5000/team/x:1: reading manifest 1 in 127.0.0.1:5000/team/x: "
        "denied: no",
        f"the registry denies access to {HERE}",
        LOGIN.replace("nvcr.io`", "127.0.0.1:5000`"),
    ),
    "pull, gone, Docker 26": (
        PULL + 'unknown: {"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}',
        f"the registry does not have {HERE}",
        GONE,
    ),
    "pull, gone, podman": (
        PULL + "initializing source docker://127.0.0.1:5000/team/x:1: reading manifest 1 in 127.0.0.1:5000/team/x: "
        "name unknown: repository not known",
        f"the registry does not have {HERE}",
        GONE,
    ),
    "pull, too often": (
        PULL + 'toomanyrequests: {"errors":[{"code":"TOOMANYREQUESTS","message":"slow down"}]}',
        f"too many requests to the registry of {HERE}",
        "run `docker login 127.0.0.1:5000`, or try again later",
    ),
    "pull, closed": (
        PULL + 'Head "http://127.0.0.1:5000/v2/team/x/manifests/1": EOF',
        "the container engine cannot reach the registry 127.0.0.1:5000",
        NETWORK,
    ),
    "pull, redirected to nowhere": (
        PULL + 'Head "http://elsewhere.invalid/x": dial tcp: lookup elsewhere.invalid on 10.0.0.53:53: no such host',
        "the container engine cannot reach the registry elsewhere.invalid",
        NETWORK,
    ),
    "pull, no manifest": (
        PULL + "error unmarshalling content: invalid character '<' looking for beginning of value",
        f"the pull of {HERE} failed: error unmarshalling content: invalid character '<' looking for beginning of value",
        REGISTRY,
    ),
    "push, a server that fails": (
        PUSH + "received unexpected HTTP status: 503 Service Unavailable",
        f"the push of {HERE} failed: received unexpected HTTP status: 503 Service Unavailable",
        REGISTRY,
    ),
    "push, closed": (PUSH + "EOF", f"the push of {HERE} failed: EOF", REGISTRY),
    "push, denied, podman": (
        PUSH + "trying to reuse blob sha256:4488 at destination: failed to read from destination repository team/x: "
        "403 (Forbidden)",
        f"the registry denies a push to {HERE}",
        "run `docker login 127.0.0.1:5000` with a key that can push, or name another repository with `--tag`",
    ),
    "push, too often": (
        PUSH + 'toomanyrequests: {"errors":[{"code":"TOOMANYREQUESTS","message":"slow down"}]}',
        f"too many requests to the registry of {HERE}",
        "run `docker login 127.0.0.1:5000`, or try again later",
    ),
    "push, too large": (
        PUSH + "trying to reuse blob sha256:4488 at destination: failed to read from destination repository team/x: "
        "413 (Request Entity Too Large)",
        f"the registry of {HERE}, or a proxy before it, does not take a layer of this size",
        "raise its limit (nginx: `client_max_body_size`), or name another repository with `--tag`",
    ),
    "something new": (
        "ERROR: the moon is in the wrong place",
        "the container engine failed: the moon is in the wrong place",
        SEE,
    ),
    "nothing": ("", "the container engine failed: it gave no reason", SEE),
}


def test_a_text_becomes_a_sentence() -> None:
    errors = {name: explain(text) for name, (text, _, _) in TEXTS.items()}
    assert {name: (error.message, error.hint, error.exit_code) for name, error in errors.items()} == {
        name: (message, hint, 5) for name, (_, message, hint) in TEXTS.items()
    }


STEPS = [
    'ERROR: failed to solve: process "/bin/sh -c echo oops >&2; exit 3" did not complete successfully: exit code: 3',
    "The command '/bin/sh -c echo oops >&2; exit 3' returned a non-zero code: 3",
]


@pytest.mark.parametrize("text", STEPS)
def test_a_failing_step_is_told_by_what_it_said_last(text: str) -> None:
    error = explain(text, ["first", "oops", ""])
    assert (error.message, error.hint) == ("a step of the Dockerfile failed with exit code 3: oops", None)
    assert explain(text).message == "a step of the Dockerfile failed with exit code 3"


@pytest.mark.parametrize("text", STEPS)
def test_what_a_step_says_of_its_network_is_not_taken_for_the_registry(text: str) -> None:
    error = explain(text, ['Get "https://index.example.org/": dial tcp: connection refused', "no: not found"])
    assert error.message == "a step of the Dockerfile failed with exit code 3: no: not found"


PIP = """\
ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE. If you have updated the package versions, \
please update the hashes. Otherwise, examine the package contents carefully; someone may have tampered with them.
    demo==1.0 from file:///opt/wheelhouse/demo-1.0-py3-none-any.whl (from -r /opt/requirements.txt (line 1)):
        Expected sha256 0000000000000000000000000000000000000000000000000000000000000000
             Got        2c5c3d8ee3a0c5bc2ffbfb2f2bbb3b7c3c1f1e8d1a90d4e3a3ab0c9a3a0f5b3e
"""


@pytest.mark.parametrize("text", STEPS)
def test_a_wheel_with_another_hash_is_told_wherever_pip_says_it(text: str) -> None:
    error = explain(text, [*PIP.splitlines(), "", "[notice] something else"])
    assert error.message == "a wheel differs from the locked one: its hash does not match"
    assert error.hint == "run `envlock export --wheelhouse wheelhouse` to download the wheels again"


def test_a_full_disk_is_told_by_the_program_that_met_it() -> None:
    error = explain(STEPS[0], ["dd: error writing '/big': No space left on device", "26+0 records out"])
    assert error.message == FULL


def test_what_is_missing_is_named_where_only_the_caller_knows_it() -> None:
    error = explain("no matching manifest for linux/s390x in the manifest list entries", image="nvcr.io/a/b:1")
    assert error.message == "nvcr.io/a/b:1 does not exist for this platform"


def test_the_reason_of_a_step_is_not_the_exit_status_after_it() -> None:
    """As rootless podman 5.4.2 tells it."""
    text = 'Error: building at STEP "RUN pip": while running runtime: exit status 1'
    log = ["STEP 2/3: RUN pip", "crun: cgroups in hybrid mode not supported", ": exit status 1"]
    told = explain(text, select_output(log)).message
    assert told == "a step of the Dockerfile failed with exit code 1: crun: cgroups in hybrid mode not supported"


def test_the_label_with_buildahs_release_is_left_out_where_that_can_be_said() -> None:
    assert drop_identity_label("      --identity-label   add default identity label") == ["--identity-label=false"]
    assert drop_identity_label("      --iidfile string") == []


def test_a_line_of_a_program_of_ours_is_the_reason_whatever_comes_after_it() -> None:
    assert explain(STEPS[0], ["envlock: no such file", "more"]).message == (
        "a step of the Dockerfile failed with exit code 3: envlock: no such file"
    )


@pytest.mark.processes
def test_a_context_that_does_not_exist_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "docker"
    program.write_text('#!/bin/sh\necho "context \\"$DOCKER_CONTEXT\\": context not found: open /x" >&2\nexit 1\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("DOCKER_CONTEXT", "nosuch")
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    with pytest.raises(EngineError) as caught:
        Daemon.connect()
    assert caught.value.message == "there is no Docker context nosuch, which DOCKER_CONTEXT names"
