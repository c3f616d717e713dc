"""Lock, build and verify TensorFlow environments.

    import envlock
    envlock.assert_locked()     # line 1 of a script
    envlock.activate(seed=42)   # the same, and the recipe that makes TensorFlow deterministic

Importing this imports nothing else: every public name is loaded when it is first asked for.

PYTEST_DONT_REWRITE: a program that imports this before it starts pytest would get a warning that it comes too late.
"""

_MODULES = {
    "divergence.live_dataset": "lint_dataset",
    "fleet.fleet_assertion": "assert_fleet",
    "integrations.jupyter": "load_ipython_extension unload_ipython_extension",
    "lock.document": "save",
    "lock.models": "Lockfile",
    "reports": "render",
    "runtime.activation": "Activation activate",
    "runtime.assertion": "assert_loaded assert_locked locate",
    "runtime.citation": "cite",
    "runtime.errors": "EnvironmentMismatch EnvlockError FactError LockfileError OutsideError TooLateError UsageError",
    "runtime.recording": "record recorded",
    "runtime.report": "Finding Report",
    "runtime.stamp": "stamp",
    "runtime.version": "__version__",
    "workflows.bisect": "bisect",
    "workflows.build": "BuildEngine build context dockerfile rebuild",
    "workflows.canary": "canary",
    "workflows.capture": "add_machine capture",
    "workflows.capture_image": "capture_image",
    "workflows.capture_requests": "Contents ImageEnvironment",
    "workflows.diff": "diff",
    "workflows.diverge": "compare_traces diverge_script record_trace",
    "workflows.doctor": "doctor",
    "workflows.export": "export",
    "workflows.fleet": "FleetLaunch check_fleet prepare_fleet report_rank",
    "workflows.hash": "HashRequest hash_packages",
    "workflows.ignore": "ignore",
    "workflows.images": "base_images",
    "workflows.init": "init",
    "workflows.lint": "lint",
    "workflows.locks": "load",
    "workflows.policy": "allowed explain",
    "workflows.program": "Program",
    "workflows.progress": "Progress",
    "workflows.repeat": "compare_saved repeat",
    "workflows.run": "prepare",
    "workflows.supply": "BuildSources ImageRequest",
    "workflows.sync": "SyncRequest sync",
    "workflows.upgrade": "upgrade",
    "workflows.vendor": "vendor",
    "workflows.verify": "verify",
}
_EXPORTS = {
    name: f"envlock.{module}" for module, names in _MODULES.items() for name in names.split()
}

_NOTEBOOK = ("packaging", "pydantic", "pydantic_core", "tomli")
"""What the extra `notebook` installs."""

__all__ = sorted(_EXPORTS)

TYPE_CHECKING = False  # not from typing: that import costs 8 ms
if TYPE_CHECKING:
    from envlock.divergence.live_dataset import lint_dataset as lint_dataset
    from envlock.fleet.fleet_assertion import assert_fleet as assert_fleet
    from envlock.integrations.jupyter import load_ipython_extension as load_ipython_extension
    from envlock.integrations.jupyter import unload_ipython_extension as unload_ipython_extension
    from envlock.lock.document import save as save
    from envlock.lock.models import Lockfile as Lockfile
    from envlock.reports import render as render
    from envlock.runtime.activation import Activation as Activation
    from envlock.runtime.activation import activate as activate
    from envlock.runtime.assertion import assert_loaded as assert_loaded
    from envlock.runtime.assertion import assert_locked as assert_locked
    from envlock.runtime.assertion import locate as locate
    from envlock.runtime.citation import cite as cite
    from envlock.runtime.errors import EnvironmentMismatch as EnvironmentMismatch
    from envlock.runtime.errors import EnvlockError as EnvlockError
    from envlock.runtime.errors import FactError as FactError
    from envlock.runtime.errors import LockfileError as LockfileError
    from envlock.runtime.errors import OutsideError as OutsideError
    from envlock.runtime.errors import TooLateError as TooLateError
    from envlock.runtime.errors import UsageError as UsageError
    from envlock.runtime.recording import record as record
    from envlock.runtime.recording import recorded as recorded
    from envlock.runtime.report import Finding as Finding
    from envlock.runtime.report import Report as Report
    from envlock.runtime.stamp import stamp as stamp
    from envlock.runtime.version import __version__ as __version__
    from envlock.workflows.bisect import bisect as bisect
    from envlock.workflows.build import BuildEngine as BuildEngine
    from envlock.workflows.build import build as build
    from envlock.workflows.build import context as context
    from envlock.workflows.build import dockerfile as dockerfile
    from envlock.workflows.build import rebuild as rebuild
    from envlock.workflows.canary import canary as canary
    from envlock.workflows.capture import add_machine as add_machine
    from envlock.workflows.capture import capture as capture
    from envlock.workflows.capture_image import capture_image as capture_image
    from envlock.workflows.capture_requests import Contents as Contents
    from envlock.workflows.capture_requests import ImageEnvironment as ImageEnvironment
    from envlock.workflows.diff import diff as diff
    from envlock.workflows.diverge import compare_traces as compare_traces
    from envlock.workflows.diverge import diverge_script as diverge_script
    from envlock.workflows.diverge import record_trace as record_trace
    from envlock.workflows.doctor import doctor as doctor
    from envlock.workflows.export import export as export
    from envlock.workflows.fleet import FleetLaunch as FleetLaunch
    from envlock.workflows.fleet import check_fleet as check_fleet
    from envlock.workflows.fleet import prepare_fleet as prepare_fleet
    from envlock.workflows.fleet import report_rank as report_rank
    from envlock.workflows.hash import HashRequest as HashRequest
    from envlock.workflows.hash import hash_packages as hash_packages
    from envlock.workflows.ignore import ignore as ignore
    from envlock.workflows.images import base_images as base_images
    from envlock.workflows.init import init as init
    from envlock.workflows.lint import lint as lint
    from envlock.workflows.locks import load as load
    from envlock.workflows.policy import allowed as allowed
    from envlock.workflows.policy import explain as explain
    from envlock.workflows.program import Program as Program
    from envlock.workflows.progress import Progress as Progress
    from envlock.workflows.repeat import compare_saved as compare_saved
    from envlock.workflows.repeat import repeat as repeat
    from envlock.workflows.run import prepare as prepare
    from envlock.workflows.supply import BuildSources as BuildSources
    from envlock.workflows.supply import ImageRequest as ImageRequest
    from envlock.workflows.sync import SyncRequest as SyncRequest
    from envlock.workflows.sync import sync as sync
    from envlock.workflows.upgrade import upgrade as upgrade
    from envlock.workflows.vendor import vendor as vendor
    from envlock.workflows.verify import verify as verify
else:  # in the else, or mypy accepts envlock.any_typo

    def __getattr__(name):
        """Return a public name; the module that defines it is imported on the first access."""
        if name not in _EXPORTS:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            module = __import__(_EXPORTS[name], fromlist=[name])
        except ModuleNotFoundError as error:
            if error.name is not None and error.name.startswith("envlock"):
                reason = (
                    f"envlock.{name} needs the complete envlock, and only its runtime is installed"
                )
            else:
                reason = f"envlock.{name} needs {error.name}"
            from envlock.runtime.installing import explain_installation

            # What an object of a notebook is given to needs few packages, beside TensorFlow.
            remedy = f"install it as a tool of its own, {explain_installation('cli')}"
            if error.name in _NOTEBOOK:
                command = explain_installation("notebook", beside_tensorflow=True)
                remedy = f"install it here, {command}"
            raise ImportError(f"{reason}; {remedy}") from error
        value = getattr(module, name)
        globals()[name] = value
        return value

    def __dir__():
        return sorted(__all__)
