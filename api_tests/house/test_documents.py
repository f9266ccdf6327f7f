"""What the documents say is so: files exist, links lead somewhere, commands parse, settings are the ones there are."""

from __future__ import annotations

import itertools
import json
import re
import runpy
import shlex
import subprocess
from pathlib import Path

import pytest

from api_tests.house.checkout import own_files
from api_tests.material import ROOT

DOCUMENTS = sorted(path for path in own_files() if path.suffix == ".md")
CODE_FOLDERS = ("engine/", "service/", "api_tests/", "scripts/", "docs/", "deploy/")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
VARIABLE = re.compile(r"GRAPHGATE_[A-Z_]*[A-Z]")
COMMANDS_IN = runpy.run_path(str(ROOT / "scripts" / "make_readme_output.py"))["commands_in"]
FOR_TESTS = {"GRAPHGATE_MATERIAL", "GRAPHGATE_NO_SKIP"}


def text_of(document: Path) -> str:
    return (ROOT / document).read_text(encoding="utf-8")


def commands_of(document: Path) -> list[str]:
    """The shell commands of a document: `bash` blocks whole, of `console` blocks what follows the prompt."""
    found = []
    for language, body in BLOCK.findall(text_of(document)):
        if language in {"bash", "sh"}:
            found.append(body)
        elif language == "console":
            found += COMMANDS_IN(body)
    return found


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_every_file_that_is_named_exists(document: Path) -> None:
    named = {name for name in re.findall(r"`([^`\s]+)`", text_of(document)) if name.startswith(CODE_FOLDERS)}
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_every_link_within_the_repository_leads_somewhere(document: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text_of(document))
    inside = [target for target in targets if "://" not in target]
    assert [target for target in inside if not (ROOT / document.parent / target).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_every_command_parses(document: Path) -> None:
    for command in commands_of(document):
        done = subprocess.run(["bash", "-n"], input=command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}\n{done.stderr}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_every_body_that_is_posted_is_json(document: Path) -> None:
    for command in commands_of(document):
        words = shlex.split(command, comments=True)
        for option, value in itertools.pairwise(words):
            if option in {"-d", "--data", "--json"} and value.startswith(("{", "[")):
                json.loads(value)


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_every_make_target_exists(document: Path) -> None:
    declared = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    named = {target for command in commands_of(document) for target in re.findall(r"\bmake ([a-z-]+)", command)}
    named |= set(re.findall(r"`make ([a-z-]+)", text_of(document)))
    assert named <= declared


def test_the_settings_table_is_complete_and_holds_nothing_else() -> None:
    from service.settings import Settings

    documented = set(re.findall(r"^\| `(GRAPHGATE_[A-Z_]+)`", text_of(Path("docs/operations.md")), re.M))
    code = "\n".join(text_of(path) for path in own_files("engine", "service") if path.suffix == ".py")
    there = {f"GRAPHGATE_{name.upper()}" for name in Settings.model_fields} | set(VARIABLE.findall(code))
    assert documented == there - plugin_settings()


def plugin_settings() -> set[str]:
    """The variables that the plugin inside the engine reads, as its own page has them."""
    return set(re.findall(r"^\| `(GRAPHGATE_[A-Z_]+)[`=]", text_of(Path("docs/plugin.md")), re.M))


def test_the_plugins_page_names_the_variables_that_it_reads() -> None:
    code = "\n".join(text_of(path) for path in own_files("engine/sglang_plugin") if path.suffix == ".py")
    assert plugin_settings() == set(VARIABLE.findall(code))


def test_the_settings_table_shows_the_defaults() -> None:
    from service.settings import Settings

    rows = re.findall(r"^\| `GRAPHGATE_([A-Z_]+)` \| `?([^|`]+?)`? \|", text_of(Path("docs/operations.md")), re.M)
    shown = {name.lower(): value for name, value in rows}
    words = {True: "on", False: "off"}
    for name, field in Settings.model_fields.items():
        default = field.default
        if default is not None:
            expected = words[default] if isinstance(default, bool) else default
            assert shown[name] == (f"{expected:g}" if isinstance(expected, float) else str(expected)), name


@pytest.mark.parametrize("name", ["README.md", "docker-compose.yml", "Dockerfile", "docs/operations.md", "SECURITY.md"])
def test_no_setting_is_invented(name: str) -> None:
    documented = set(re.findall(r"^\| `(GRAPHGATE_[A-Z_]+)`", text_of(Path("docs/operations.md")), re.M))
    assert set(VARIABLE.findall(text_of(Path(name)))) <= documented | FOR_TESTS
