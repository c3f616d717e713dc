"""What waits on `sys.meta_path` until a library that computes is imported."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any, Callable, Iterable, Optional, Sequence


class ImportHook:
    """A finder that finds what the others find, and removes itself after the last of the imports that it waits for."""

    def __init__(
        self, names: Iterable[str], before: Callable[[], None], after: Callable[[str], None]
    ) -> None:
        """Prepare to wait; nothing happens until `start`.

        Args:
            names: the modules at the top that are waited for.
            before: is called before one of them runs, and may raise.
            after: is called with the name of one that has run, unless another one imports it, and may raise:
                then its import is tried again when it is asked for again, as with every error.
        """
        self._names = set(names)
        self._before = before
        self._after = after
        self._depth = 0

    def start(self) -> None:
        """Wait for the modules that are not imported."""
        self._names.difference_update(sys.modules)
        if self._names:
            sys.meta_path.insert(0, self)

    def stop(self) -> None:
        """Wait for nothing any more."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, name: str, path: Optional[Sequence[str]] = None, target: Optional[ModuleType] = None
    ) -> Optional[ModuleSpec]:
        """Return what the finders after this one return; running it is what was waited for."""
        if name not in self._names:
            return None
        finders = list(sys.meta_path)
        for finder in finders[finders.index(self) + 1 :] if self in finders else finders:
            find = getattr(finder, "find_spec", None)
            spec: Optional[ModuleSpec] = find(name, path, target) if find is not None else None
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader, self)  # type: ignore[assignment]
                return spec
        return None

    def run(self, loader: Any, module: ModuleType) -> None:
        """Run a module that was waited for."""
        self._before()
        self._depth += 1
        try:
            loader.exec_module(module)
        finally:
            self._depth -= 1
        if self._depth == 0:
            self._after(module.__name__)
        self._names.discard(module.__name__)
        if not self._names:
            self.stop()


class _Loader:
    """The loader of a module that is waited for; the module itself gets its own."""

    def __init__(self, loader: Any, hook: ImportHook) -> None:
        self._loader = loader
        self._hook = hook

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> Optional[ModuleType]:
        module: Optional[ModuleType] = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._hook.run(self._loader, module)
