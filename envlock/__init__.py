"""Lock, build and verify TensorFlow environments.

    import envlock
    envlock.assert_locked()     # line 1 of a script
    envlock.activate(seed=42)   # the same, and the recipe that makes TensorFlow deterministic

Importing this imports nothing else: every public name is loaded when it is first asked for.

PYTEST_DONT_REWRITE: a program that imports this before it starts pytest would get a warning that it comes too late.
"""

_MODULES = {
    "diagnosis.doctor": "doctor",
    "evidence.bisect.bisect": "bisect",
    "evidence.canary.canary": "canary",
    "evidence.diverge.diverge": "compare_traces diverge_script record_trace",
    "evidence.diverge.live_dataset": "lint_dataset",
    "evidence.program": "Program",
    "evidence.repeat.repeat": "compare_saved repeat",
    "evidence.upgrade.upgrade": "upgrade",
    "fleet.fleet_assertion": "assert_fleet",
    "image.build": "BuildEngine build context dockerfile rebuild",
    "image.images": "base_images",
    "image.supply": "BuildSources ImageRequest",
    "integrations.jupyter": "load_ipython_extension unload_ipython_extension",
    "linter.lint": "lint",
    "lock.document": "save",
    "lock.locks": "load",
    "lock.models": "Lockfile",
    "packages.hash": "HashRequest hash_packages",
    "packages.vendor": "vendor",
    "reports": "render",
    "reports.progress": "Progress",
    "runtime.activation": "Activation activate",
    "runtime.assertion": "assert_loaded assert_locked locate",
    "runtime.citation": "cite",
    "runtime.errors": "EnvironmentMismatch EnvlockError FactError LockfileError OutsideError TooLateError UsageError",
    "runtime.recording": "record recorded",
    "runtime.report": "Finding Report",
    "runtime.stamp": "stamp",
    "runtime.version": "__version__",
    "workflows.capture": "add_machine capture",
    "workflows.capture_image": "capture_image",
    "workflows.capture_requests": "Contents ImageEnvironment",
    "workflows.diff": "diff",
    "workflows.export": "export",
    "workflows.fleet": "FleetLaunch check_fleet prepare_fleet report_rank",
    "workflows.ignore": "ignore",
    "workflows.init": "init",
    "workflows.policy": "allowed explain",
    "workflows.run": "prepare",
    "workflows.sync": "SyncRequest sync",
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
    from envlock.diagnosis.doctor import doctor as doctor
    from envlock.evidence.bisect.bisect import bisect as bisect
    from envlock.evidence.canary.canary import canary as canary
    from envlock.evidence.diverge.diverge import compare_traces as compare_traces
    from envlock.evidence.diverge.diverge import diverge_script as diverge_script
    from envlock.evidence.diverge.diverge import record_trace as record_trace
    from envlock.evidence.diverge.live_dataset import lint_dataset as lint_dataset
    from envlock.evidence.program import Program as Program
    from envlock.evidence.repeat.repeat import compare_saved as compare_saved
    from envlock.evidence.repeat.repeat import repeat as repeat
    from envlock.evidence.upgrade.upgrade import upgrade as upgrade
    from envlock.fleet.fleet_assertion import assert_fleet as assert_fleet
    from envlock.image.build import BuildEngine as BuildEngine
    from envlock.image.build import build as build
    from envlock.image.build import context as context
    from envlock.image.build import dockerfile as dockerfile
    from envlock.image.build import rebuild as rebuild
    from envlock.image.images import base_images as base_images
    from envlock.image.supply import BuildSources as BuildSources
    from envlock.image.supply import ImageRequest as ImageRequest
    from envlock.integrations.jupyter import load_ipython_extension as load_ipython_extension
    from envlock.integrations.jupyter import unload_ipython_extension as unload_ipython_extension
    from envlock.linter.lint import lint as lint
    from envlock.lock.document import save as save
    from envlock.lock.locks import load as load
    from envlock.lock.models import Lockfile as Lockfile
    from envlock.packages.hash import HashRequest as HashRequest
    from envlock.packages.hash import hash_packages as hash_packages
    from envlock.packages.vendor import vendor as vendor
    from envlock.reports import render as render
    from envlock.reports.progress import Progress as Progress
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
    from envlock.workflows.capture import add_machine as add_machine
    from envlock.workflows.capture import capture as capture
    from envlock.workflows.capture_image import capture_image as capture_image
    from envlock.workflows.capture_requests import Contents as Contents
    from envlock.workflows.capture_requests import ImageEnvironment as ImageEnvironment
    from envlock.workflows.diff import diff as diff
    from envlock.workflows.export import export as export
    from envlock.workflows.fleet import FleetLaunch as FleetLaunch
    from envlock.workflows.fleet import check_fleet as check_fleet
    from envlock.workflows.fleet import prepare_fleet as prepare_fleet
    from envlock.workflows.fleet import report_rank as report_rank
    from envlock.workflows.ignore import ignore as ignore
    from envlock.workflows.init import init as init
    from envlock.workflows.policy import allowed as allowed
    from envlock.workflows.policy import explain as explain
    from envlock.workflows.run import prepare as prepare
    from envlock.workflows.sync import SyncRequest as SyncRequest
    from envlock.workflows.sync import sync as sync
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
