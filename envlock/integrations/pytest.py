"""pytest: `--envlock` tests in the locked environment only; the fixture `bits` compares results.

Every pytest in the environment loads this module, so it imports nothing else before it is used.
PYTEST_DONT_REWRITE
"""

from __future__ import annotations

import os

import pytest

import envlock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

VERDICT: pytest.StashKey[str] = pytest.StashKey()
SUFFIX = ".bits.json"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options; if none is given, the plugin does nothing else."""
    group = parser.getgroup("envlock", "the locked environment")
    about = (
        "run no test unless this is the environment of the lockfile: the nearest one, "
        "or the one in --envlock=LOCK"
    )
    group.addoption("--envlock", nargs="?", const="", metavar="LOCK", help=about)
    about = "record the digests that the fixture `bits` computes as those of this environment"
    group.addoption("--envlock-update", action="store_true", help=about)


def pytest_configure(config: pytest.Config) -> None:
    """Decide once, before anything is collected; the processes of pytest-xdist follow the first
    process.
    """
    config.addinivalue_line(
        "markers", "envlock(policy=None): run this test in the locked environment only"
    )
    if config.getoption("envlock_update") and config.getoption("numprocesses", None):
        raise pytest.UsageError(
            "--envlock-update writes files that several processes would overwrite: leave out `-n`"
        )
    named = config.getoption("envlock")
    if named is None or hasattr(config, "workerinput"):
        return
    if os.path.isdir(named) or ".py" in os.path.basename(named):
        raise pytest.UsageError(
            f"{named} is not a lockfile: write --envlock=LOCK, or `--envlock` after all paths"
        )
    try:
        lock = os.path.abspath(envlock.locate(named or None))
        report = envlock.assert_locked(lock)
    except envlock.EnvlockError as error:
        raise pytest.UsageError(f"envlock: {error}") from None
    # The processes of pytest-xdist get the present values of the options.
    config.option.envlock = lock
    verdict = report.headline if report is not None else "not verified (ENVLOCK_MODE=off)"
    config.stash[VERDICT] = verdict


def pytest_report_header(config: pytest.Config) -> Optional[str]:
    """Return the line with the verdict."""
    if VERDICT not in config.stash:
        return None
    return f"envlock: {config.stash[VERDICT]} ({os.path.relpath(config.option.envlock)})"


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Apply the policy of a test that has the marker."""
    marker = item.get_closest_marker("envlock")
    if marker is not None:
        _hold(item.config, *marker.args, **marker.kwargs)


def _hold(config: pytest.Config, policy: Optional[str] = None) -> None:
    """Skip a test in a different environment; with the option, that is an error."""
    lock = config.getoption("envlock")
    if lock is not None and policy is None:
        # This was decided for all tests before they were collected.
        return
    try:
        envlock.assert_locked(lock, policy, static=True)
        return
    except envlock.EnvlockError as error:
        problem = error
    if lock is None and isinstance(problem, envlock.EnvironmentMismatch):
        pytest.skip(f"not in the locked environment: {problem.report.headline}")
    pytest.fail(f"envlock: {problem}", pytrace=False)


@pytest.fixture
def bits(request: pytest.FixtureRequest) -> Bits:
    """A function to compare arrays with their digests: `bits(array)`, or `bits(array, "name")` for
    several.
    """
    _hold(request.config)
    return Bits(request)


class Bits:
    """The value of the fixture in one test; the digests are in a file beside the test, for git."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self.file = request.path.with_suffix(SUFFIX)
        self.test = request.node.nodeid.partition("::")[2]
        self.environment = envlock.cite(request.config.getoption("envlock"))
        self.update = request.config.getoption("envlock_update")

    def __call__(self, array: object, name: str = "result") -> None:
        """Fail unless the array has the digest that is recorded for this environment."""
        __tracebackhide__ = True
        # Start-up time: every pytest of the environment loads this module.
        from envlock.integrations.arrays import compute_digest, read_records, write_records

        found = compute_digest(array)
        records = read_records(self.file)
        known = records.setdefault(self.test, {}).setdefault(name, {})
        if self.update:
            known[self.environment] = found
            write_records(self.file, records)
        elif self.environment not in known:
            hint = "record it with `pytest --envlock-update`, after a run that you trust"
            pytest.fail(
                f"{self.file.name} has no digest of `{name}` in this environment\nhint: {hint}"
            )
        elif known[self.environment] != found:
            said = f"recorded {known[self.environment][:12]}, computed {found[:12]}"
            pytest.fail(f"the bits of `{name}` are not those in {self.file.name}: {said}")
