"""What imports bind: files of the project, which run then, and names of libraries."""

from __future__ import annotations

import ast

from envlock.linter.interpreter.expressions import Expressions
from envlock.linter.interpreter.source_files import Source
from envlock.linter.interpreter.values import FileValue, Library, Scope, Value
from envlock.linter.names import canonical


class Imports(Expressions):
    """The execution of imports."""

    def run_import(self, node: ast.Import) -> bool:
        for alias in node.names:
            place = self.sources.locate(alias.name, self.source)
            top = alias.name.partition(".")[0]
            imported = alias.name if alias.asname else top  # `import a.b` binds `a`
            value: Value = Library(canonical(imported))
            if place is not None:
                self.import_file(place[0])
                value = self.find_package(alias, place)
            self.bind_import(alias.asname or top, value)
        return False

    def find_package(self, alias: ast.alias, place: tuple[Source, tuple[str, ...]]) -> Value:
        """Return what `import a.b` or `import a.b as c` binds."""
        if alias.asname or "." not in alias.name:
            return self.follow(FileValue(place[0]), place[1])
        top = self.sources.locate(alias.name.partition(".")[0], self.source)
        if top is not None and not top[1]:
            return FileValue(top[0])
        # The package itself has no file in the project: an object has the module as an attribute.
        made = self.make("package", alias)
        inner = made
        words = alias.name.split(".")[1:]
        for word in words[:-1]:
            following = self.make("package", alias)
            inner.attributes[word] = following
            inner = following
        inner.attributes[words[-1]] = self.follow(FileValue(place[0]), place[1])
        return made

    def import_file(self, source: Source) -> Scope:
        """Run a file that is imported."""
        self.source.imported.add(source.index)
        scope = self.run_file(source)
        self.apply_test_seeds(source)
        return scope

    def apply_test_seeds(self, source: Source) -> None:
        """Let the base class of TensorFlow's tests seed, in its setUp, all generators of a test."""
        program = self.program
        if program is None or source not in self.test_bases:
            return
        if program is source or program.is_test:
            # tensorflow/python/framework/test_util.py, TensorFlowTestCase.setUp
            place = self.test_bases[source], source
            self.state.seeded.update(tf=place, numpy=place, python=place)

    def run_import_from(self, node: ast.ImportFrom) -> bool:
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            if alias.name == "*":
                self.import_all(module)
                continue
            joint = "" if module.endswith(".") else "."
            full = f"{module}{joint}{alias.name}"
            place = self.sources.locate(full, self.source)
            if place is not None:
                self.import_file(place[0])
                value = self.follow(FileValue(place[0]), place[1])
            elif module.startswith("."):  # a file that is not looked at
                value = Value()
            else:
                value = Library(canonical(full))
            self.bind_import(alias.asname or alias.name, value)
        return False

    def bind_import(self, name: str, value: Value) -> None:
        """Bind what is imported; it counts as read, as what it stands for is not made here."""
        self.scope.bind(name, value)
        self.scope.read.add(name)

    def follow(self, value: Value, names: tuple[str, ...]) -> Value:
        """Return `a.b.c` of an imported file."""
        for name in names:
            value = self.look_up_attribute(value, name, ast.Pass())
        return value

    def import_all(self, module: str) -> None:
        """Do `from x import *`."""
        place = self.sources.locate(module, self.source)
        if place is not None and not place[1]:
            scope = self.import_file(place[0])
            for name, value in scope.names.items():
                if not name.startswith("_"):
                    self.bind_import(name, value)
            if scope in self.stars:
                self.stars.setdefault(self.scope.get_top(), []).extend(self.stars[scope])
        elif not module.startswith("."):
            self.stars.setdefault(self.scope.get_top(), []).append(module)
