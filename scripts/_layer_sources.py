"""Where a model class keeps its layers' attention, read from the syntax trees of a release's model files.

For architectures that cannot be built from any configuration at hand, and to tell whether a class looks in one release
as it does in another.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

HOLDERS = ("self_attn", "attn", "linear_attn", "attention", "mixer")
"""The attributes of a decoder layer in which the engine looks for attention, in its order."""

_OTHER_TOWERS = re.compile(
    r"Vision|ViT|Audio|Visual|Siglip|Clip|CLIP|Whisper|Patch|Perceiver|Resampler|Mtp|MTP|Swin|Sam"
)
_DEEPEST = 12

Members = dict[str, list[tuple[str, ast.expr | None]]]
"""The attributes and methods of a class: where each is set, and to what."""

Look = frozenset[tuple[str, str, str]]
"""(layer class, attribute, "seen", "hidden", "some" or "unknown") for every class of layers."""


class Sources:
    """The model classes of one release: ``folder`` is its ``srt/models``."""

    def __init__(self, folder: Path) -> None:
        self._trees = {
            file.stem: ast.parse(file.read_text(encoding="utf-8-sig")) for file in sorted(folder.glob("*.py"))
        }
        self._classes: dict[str, dict[str, ast.ClassDef]] = {}
        self._imports: dict[str, dict[str, tuple[str, str]]] = {}
        self._known: dict[tuple[str, str], Members] = {}
        self._named: dict[tuple[str, str], set[str]] = {}
        self._looks: dict[str, Look] = {}
        for name, tree in self._trees.items():
            self._classes[name] = {n.name: n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)}
            self._imports[name] = dict(_imports(tree))

    @cached_property
    def registry(self) -> dict[str, str]:
        """Every architecture of the release, with the file it stands in."""
        found: dict[str, str] = {}
        for name, tree in self._trees.items():
            for node in tree.body:
                if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "EntryClass":
                    for entry in ast.walk(node.value):
                        if isinstance(entry, ast.Name):
                            found[entry.id] = name
        return found

    def look(self, architecture: str) -> Look:
        """What the layers of an architecture hold, one entry a class of layers."""
        if architecture in self._looks:
            return self._looks[architecture]
        found: set[tuple[str, str, str]] = set()
        for file, name in self._reached(self.registry[architecture], architecture):
            view = self._layer(file, name)
            if view is not None:
                found.add((name, *view))
        self._looks[architecture] = frozenset(found)
        return self._looks[architecture]

    def has_model(self, architecture: str) -> bool:
        """Whether the class itself holds ``model``."""
        return "model" in self._members(self.registry[architecture], architecture)

    def _reached(self, file: str, name: str) -> Iterator[tuple[str, str]]:
        """The classes that a class leads to by name, itself first; those of other towers left out."""
        todo, seen = [(file, name, 0)], set()
        while todo:
            where, what, depth = todo.pop(0)
            place = self._find(where, what)
            if place is None or place in seen or depth > _DEEPEST or _OTHER_TOWERS.search(what):
                continue
            seen.add(place)
            yield place
            if place not in self._named:
                names = {n.id for n in ast.walk(self._classes[place[0]][place[1]]) if isinstance(n, ast.Name)}
                self._named[place] = names | self._tables(place[0], names)
            todo += [(place[0], other, depth + 1) for other in sorted(self._named[place])]

    def _tables(self, file: str, names: set[str]) -> set[str]:
        """The classes that module-level tables name (kinds of layers by letter)."""
        out: set[str] = set()
        for node in self._trees[file].body:
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) in names:
                out |= {n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)}
        return out

    def _find(self, file: str, name: str) -> tuple[str, str] | None:
        if name in self._classes.get(file, {}):
            return file, name
        origin = self._imports.get(file, {}).get(name)
        return self._find(*origin) if origin and origin[0] in self._classes and origin != (file, name) else None

    def _members(self, file: str, name: str) -> Members:
        """The attributes and methods of a class and its bases, with the expressions assigned to them."""
        place = self._find(file, name)
        if place is None:
            return {}
        if place in self._known:
            return self._known[place]
        where, what = place
        node = self._classes[where][what]
        out: Members = {}
        for base in node.bases:
            if isinstance(base, ast.Name) and base.id != what:
                out.update(self._members(where, base.id))
        own: Members = {}
        for part in ast.walk(node):
            if isinstance(part, ast.Assign | ast.AnnAssign):
                targets = part.targets if isinstance(part, ast.Assign) else [part.target]
                for target in targets:
                    if isinstance(target, ast.Attribute) and getattr(target.value, "id", "") == "self":
                        own.setdefault(target.attr, []).append((where, part.value))
            elif isinstance(part, ast.FunctionDef):
                own.setdefault(part.name, []).append((where, None))
        self._known[place] = out | own
        return self._known[place]

    def _layer(self, file: str, name: str) -> tuple[str, str] | None:
        members = self._members(file, name)
        if "forward" not in members:
            return None
        holder = next((h for h in HOLDERS if h in members), None)
        if holder is None or not re.search(r"Layer|Block", name):
            return None
        if holder == "mixer" and "_forward_mamba" in members:
            return holder, "seen"
        if holder in ("attn", "linear_attn"):
            return holder, "seen"
        wanted = ("attn", "attn_mqa") if holder == "self_attn" else ("attn",)
        inner = [self._inner(where, value) for where, value in members[holder]]
        known = [members_of for members_of in inner if members_of is not None]
        if not known:
            return holder, "unknown"
        answers = {any(part in members_of for part in wanted) for members_of in known}
        if self._only_in_a_branch(file, name, holder):
            answers.add(False)
        return holder, "some" if len(answers) > 1 else "seen" if answers.pop() else "hidden"

    def _only_in_a_branch(self, file: str, name: str, holder: str) -> bool:
        """Whether some layers of the class go without the attribute: one branch sets it, the other something else."""
        where, what = self._find(file, name) or (file, name)
        for node in ast.walk(self._classes[where][what]):
            if isinstance(node, ast.If) and node.orelse:
                branches = [_set_in(node.body), _set_in(node.orelse)]
                if any(holder in b for b in branches) and any(b and holder not in b for b in branches):
                    return True
        return False

    def _inner(self, file: str, value: ast.expr | None) -> Members | None:
        """The members of the class that an expression makes; a list of modules has none of its own."""
        if not isinstance(value, ast.Call):
            return None
        called = value.func
        if isinstance(called, ast.Attribute):
            return {} if called.attr == "ModuleList" else None
        name = getattr(called, "id", "")
        return self._members(file, name) or None


def _set_in(nodes: list[ast.stmt]) -> set[str]:
    """The attributes of ``self`` that statements set to a new module."""
    return {
        target.attr
        for node in nodes
        for part in ast.walk(node)
        if isinstance(part, ast.Assign) and isinstance(part.value, ast.Call)
        for target in part.targets
        if isinstance(target, ast.Attribute)
    }


def _imports(tree: ast.Module) -> Iterator[tuple[str, tuple[str, str]]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sglang.srt.models."):
            for alias in node.names:
                yield alias.asname or alias.name, (str(node.module).rpartition(".")[2], alias.name)
