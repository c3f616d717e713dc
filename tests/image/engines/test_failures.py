"""What engines say when something fails, word for word as they said it, and what is made of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from envlock.image.engines.daemon import Daemon
from envlock.image.engines.engine_command import drop_identity_label
from envlock.image.engines.engine_errors import EngineError, explain, select_output
from tests.golden_files import assert_as_golden

GOLDEN = Path(__file__).parents[2] / "golden" / "engine-errors.txt"
NGC = "nvcr.io/nvidia/tensorflow:25.02-tf2-py3@sha256:" + "0" * 64
PRIVATE = "nvcr.io/private/tensorflow:25.02-tf2-py3@sha256:" + "6" * 64
RESOLVE = "ERROR: failed to solve: {0}: failed to resolve source metadata for {0}: "

HERE = "127.0.0.1:5000/team/x:1"
PULL, PUSH = f"pull of {HERE}: ", f"push of {HERE}: "

TEXTS = {
    "digest gone, BuildKit": RESOLVE.format(NGC) + f"{NGC}: not found",
    "digest gone, classic": f"manifest for {NGC} not found: manifest unknown: manifest unknown",
    "denied, BuildKit": (
        RESOLVE.format(PRIVATE) + "pull access denied, repository does not exist or may require authorization: "
        "server message: insufficient_scope: authorization failed"
    ),
    "denied, classic": (
        "pull access denied for nvcr.io/private/tensorflow, repository does not exist or may require 'docker login': "
        "denied: requested access to the resource is denied"
    ),
    "wrong key, BuildKit": (
        RESOLVE.format(PRIVATE) + "failed to authorize: failed to fetch oauth token: unexpected status from GET "
        "request to https://127.78.94.11/token?scope=repository%3Aprivate%2Ftensorflow%3Apull&service=bed: "
        "401 Unauthorized"
    ),
    "wrong key, classic": f'Get "https://nvcr.io/v2/private/tensorflow/manifests/sha256:{"6" * 64}": unauthorized',
    "no credentials, classic": 'Get "https://nvcr.io/v2/private/tensorflow/manifests/1": no basic auth credentials',
    "registry down, BuildKit": (
        RESOLVE.format("127.0.0.1:1/a/b:1") + 'failed to do request: Head "https://127.0.0.1:1/v2/a/b/manifests/1": '
        "dial tcp 127.0.0.1:1: connect: connection refused"
    ),
    "registry down, classic": 'Get "http://127.0.0.1:1/v2/": dial tcp 127.0.0.1:1: connect: connection refused',
    "no such host, BuildKit": (
        RESOLVE.format("registry.example.org/a:1") + 'failed to do request: Head "https://registry.example.org/v2/a/'
        'manifests/1": dial tcp: lookup registry.example.org on 192.0.2.53:53: no such host'
    ),
    "no such host, classic": (
        'Get "https://registry.example.org/v2/": dial tcp: lookup registry.example.org on 192.0.2.53:53: no such host'
    ),
    "certificate, classic": 'Get "https://registry.example.org/v2/": x509: certificate signed by unknown authority',
    "certificate, BuildKit": (
        RESOLVE.format(NGC) + 'failed to authorize: failed to fetch anonymous token: Get "https://127.78.94.11/token?'
        'scope=repository%3Anvidia%2Ftensorflow%3Apull&service=bed": tls: failed to verify certificate: x509: '
        "certificate signed by unknown authority"
    ),
    "disk full, BuildKit": (
        "ERROR: failed to solve: failed to copy: write /var/lib/docker/buildkit/content/ingest/fd919aa5/data: "
        "no space left on device"
    ),
    "disk full, classic": "write /usr2/bin/python3.11: no space left on device",
    "daemon killed, BuildKit": (
        "ERROR: failed to receive status: rpc error: code = Unavailable desc = error reading from server: EOF"
    ),
    "daemon killed, BuildKit, a moment later": (
        "ERROR: failed to solve: Unavailable: error reading from server: read unix @->/tmp/el.s257cpfo/docker.sock: "
        "read: connection reset by peer"
    ),
    "daemon killed, classic": "('Connection broken: IncompleteRead(0 bytes read)', IncompleteRead(0 bytes read))",
    "daemon killed, between two questions": (
        "('Connection aborted.', RemoteDisconnected('Remote end closed connection without response'))"
    ),
    "no daemon, SDK": (
        "Error while fetching server API version: ('Connection aborted.', "
        "FileNotFoundError(2, 'No such file or directory'))"
    ),
    "no daemon, by TCP": (
        "Error while fetching server API version: HTTPConnectionPool(host='127.0.0.1', port=1): Max retries exceeded "
        "with url: /version (Caused by NewConnectionError(\"HTTPConnection(host='127.0.0.1', port=1): Failed to "
        'establish a new connection: [Errno 111] Connection refused"))'
    ),
    "no daemon, command": (
        "ERROR: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"
    ),
    "no permission, SDK": (
        "Error while fetching server API version: ('Connection aborted.', PermissionError(13, 'Permission denied'))"
    ),
    "no GPUs": 'could not select device driver "" with capabilities: [[gpu]]',
    "no GPUs, CDI": "CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=all",
    "no GPUs, runtime": "unknown or invalid runtime name: nvidia",
    "no GPUs, runtime, 20.10": "Unknown runtime specified nvidia",
    "other platform, classic": (
        "image with reference docker.io/library/python:3.11-slim was found but does not match the specified platform: "
        "wanted linux/s390x, actual: linux/amd64"
    ),
    "other platform, BuildKit": RESOLVE.format(NGC) + "no match for platform in manifest: not found",
    "other platform, classic, index": "no matching manifest for linux/s390x in the manifest list entries",
    "no network": "ERROR: failed to solve: network bridge not found",
    "podman, no cgroups": (
        "Error: OCI runtime error: crun: cgroups in hybrid mode not supported, drop all controllers from cgroupv2"
    ),
    "no such program": (
        "failed to create task for container: failed to create shim task: OCI runtime create failed: runc create "
        'failed: unable to start container process: exec: "nosuch": executable file not found in $PATH: unknown'
    ),
    "no such image": "No such image: nosuch:latest",
    "Dockerfile, BuildKit": (
        "ERROR: failed to solve: dockerfile parse error on line 2: unknown instruction: RUNN (did you mean RUN?)"
    ),
    "Dockerfile, 20.10": "dockerfile parse error line 2: unknown instruction: RUNN",
    "pull, wrong key, Docker 26": PULL + 'unauthorized: {"errors":[{"code":"X","message":"told so"}]}',
    "pull, denied, podman": (
        PULL + "initializing source docker://127.0.0.1:5000/team/x:1: reading manifest 1 in 127.0.0.1:5000/team/x: "
        "denied: no"
    ),
    "pull, gone, Docker 26": PULL + 'unknown: {"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}',
    "pull, gone, podman": (
        PULL + "initializing source docker://127.0.0.1:5000/team/x:1: reading manifest 1 in 127.0.0.1:5000/team/x: "
        "name unknown: repository not known"
    ),
    "pull, too often": PULL + 'toomanyrequests: {"errors":[{"code":"TOOMANYREQUESTS","message":"slow down"}]}',
    "pull, closed": PULL + 'Head "http://127.0.0.1:5000/v2/team/x/manifests/1": EOF',
    "pull, redirected to nowhere": PULL
    + 'Head "http://elsewhere.invalid/x": dial tcp: lookup elsewhere.invalid on 10.0.0.53:53: no such host',
    "pull, no manifest": PULL + "error unmarshalling content: invalid character '<' looking for beginning of value",
    "push, a server that fails": PUSH + "received unexpected HTTP status: 503 Service Unavailable",
    "push, closed": PUSH + "EOF",
    "push, denied, podman": (
        PUSH + "trying to reuse blob sha256:4488 at destination: failed to read from destination repository team/x: "
        "403 (Forbidden)"
    ),
    "push, too often": PUSH + 'toomanyrequests: {"errors":[{"code":"TOOMANYREQUESTS","message":"slow down"}]}',
    "push, too large": (
        PUSH + "trying to reuse blob sha256:4488 at destination: failed to read from destination repository team/x: "
        "413 (Request Entity Too Large)"
    ),
    "something new": "ERROR: the moon is in the wrong place",
    "nothing": "",
}


def test_a_text_becomes_a_sentence() -> None:
    errors = {name: explain(text) for name, text in TEXTS.items()}
    assert {error.exit_code for error in errors.values()} == {5}
    assert_as_golden("\n".join(f"# {name}\n{error}\n" for name, error in errors.items()), GOLDEN)


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
    assert error.message == "the disk of the container engine is full"


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
