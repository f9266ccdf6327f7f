"""Every package is pinned, and what is installed is what the pins say."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import distributions, packages_distributions
from typing import Any

from api_tests.house.checkout import product_files
from api_tests.material import ROOT


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def name_of(requirement: str) -> str:
    return re.split(r"[<>=!~\[; ]", requirement, maxsplit=1)[0]


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    found = {}
    for line in lines:
        if line and not line.startswith("#"):
            name, separator, version = line.partition("==")
            assert separator, f"not an exact pin: {line}"
            found[normal(name)] = version
    return found


def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return found


BY_NAME = frozenset({"httptools", "psycopg", "uvloop"})
"""Declared packages that others import for us, because a setting or an address names them."""

PRODUCT = ("worker", "fleet", "tracing")
"""The extras that product code imports from; the others are for development."""


def imported_by_the_product() -> set[str]:
    """The top-level names that engine/ and service/ import from other packages."""
    found = set()
    for path in product_files("engine", "service"):
        if path.suffix == ".py":
            for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    found |= {alias.name for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                    found.add(node.module)
    return {name.partition(".")[0] for name in found} - set(sys.stdlib_module_names) - {"engine", "service"}


def test_what_is_imported_is_declared_and_what_is_declared_is_imported() -> None:
    extras = project()["optional-dependencies"]
    requirements = [*project()["dependencies"], *(item for extra in PRODUCT for item in extras[extra])]
    declared = {normal(name_of(item)) for item in requirements}
    providers = packages_distributions()
    imported = {name: {normal(provider) for provider in providers[name]} for name in imported_by_the_product()}
    assert [name for name, packages in imported.items() if not packages & declared] == []
    assert declared - set().union(*imported.values()) == BY_NAME, "several packages may share one name, as a namespace"


def test_every_declared_package_is_pinned() -> None:
    extras = project()["optional-dependencies"].values()
    names = {normal(name_of(item)) for items in (project()["dependencies"], *extras) for item in items}
    assert names - {normal(project()["name"])} <= set(pins())


def test_what_is_installed_is_what_is_pinned() -> None:
    pinned = pins()
    # torch's build for a machine carries a local version (2.13.0+cpu); the plain one is the pin.
    installed = {normal(found.name): found.version.partition("+")[0] for found in distributions()}
    assert {name: installed[name] for name in pinned if name in installed} == {
        name: version for name, version in pinned.items() if name in installed
    }
    assert not set(pinned) - set(installed)
