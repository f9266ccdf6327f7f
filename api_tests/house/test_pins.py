"""Every package is pinned, and what is installed is what the pins say."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import distributions

from api_tests.material import ROOT


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    found = {}
    for line in lines:
        if line and not line.startswith("#"):
            name, separator, version = line.partition("==")
            assert separator, f"not an exact pin: {line}"
            found[normal(name)] = version
    return found


def test_every_declared_package_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = [
        *project["dependencies"],
        *(item for extra in project["optional-dependencies"].values() for item in extra),
    ]
    names = {normal(re.split(r"[<>=!~\[; ]", requirement, maxsplit=1)[0]) for requirement in declared}
    assert names <= set(pins())


def test_what_is_installed_is_what_is_pinned() -> None:
    pinned = pins()
    # torch's build for a machine carries a local version (2.13.0+cpu); the plain one is the pin.
    installed = {normal(found.name): found.version.partition("+")[0] for found in distributions()}
    assert {name: installed[name] for name in pinned if name in installed} == {
        name: version for name, version in pinned.items() if name in installed
    }
    assert not set(pinned) - set(installed)
