"""Local paths: what may be read, what may not, and what the answer gives away."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from engine.errors import ConfigTooLarge, ConfigUnreadable, ModelError, ModelNotFound, PathNotAllowed
from engine.launch import ModelRef
from engine.models.facts import ModelFacts
from engine.models.local import read_local
from engine.models.resolver import ModelResolver, ModelSettings

CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 2}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    (folder / "llama").mkdir(parents=True)
    (folder / "llama" / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "config.json").write_text(json.dumps({**CONFIG, "num_hidden_layers": 9}))
    return folder


def resolve(root: Path, path: str, limit: int = 10_000) -> ModelFacts:
    resolver = ModelResolver(ModelSettings(allowed_roots=(root,), max_config_bytes=limit))
    return resolver.resolve(ModelRef(path=path))


@pytest.mark.parametrize(
    "path", ["llama", "llama/config.json", "./llama", "llama/../llama", "{root}/llama", "{root}//llama/"]
)
def test_below_a_root(root: Path, path: str) -> None:
    facts = resolve(root, path.format(root=root))
    assert (facts.source, facts.num_layers, facts.model_id) == ("local", 2, "llama")


@pytest.mark.parametrize(
    "path",
    [
        "../secret", "llama/../../secret", "{root}/../secret", "{root}/../secret/config.json", "/etc/passwd",
        "/proc/self/environ", "/dev/zero", "{root}-other", "llama/../../nothing-here", "/nothing/here", "..", "/",
        "link", "link/config.json", "linked.json",
    ],
)  # fmt: skip
def test_outside_every_root_the_answer_is_one_and_the_same(root: Path, path: str) -> None:
    (root / "link").symlink_to(root.parent / "secret")
    (root / "linked.json").symlink_to(root.parent / "secret" / "config.json")
    with pytest.raises(PathNotAllowed) as caught:
        resolve(root, path.format(root=root))
    with pytest.raises(PathNotAllowed) as nowhere:
        resolve(root, "/no/such/place")
    assert str(caught.value) == str(nowhere.value)


@pytest.mark.parametrize("path", ["", "a\0b", "llama\n", "\x7f", "a" * 5000])
def test_strings_that_are_no_paths(root: Path, path: str) -> None:
    with pytest.raises(PathNotAllowed):
        resolve(root, path)


def test_links_that_stay_below_a_root_are_followed(root: Path) -> None:
    (root / "alias").symlink_to(root / "llama")
    assert resolve(root, "alias").num_layers == 2


def test_the_hub_library_s_layout_is_read_and_named(root: Path) -> None:
    folder = root / "models--someone--some-model"
    (folder / "blobs").mkdir(parents=True)
    (folder / "snapshots" / "0123abc").mkdir(parents=True)
    (folder / "blobs" / "ff00").write_text(json.dumps(CONFIG))
    (folder / "snapshots" / "0123abc" / "config.json").symlink_to("../../blobs/ff00")
    facts = resolve(root, "models--someone--some-model/snapshots/0123abc")
    assert (facts.model_id, facts.num_layers) == ("someone/some-model", 2)


def test_no_roots_no_paths(root: Path) -> None:
    with pytest.raises(PathNotAllowed, match="GRAPHGATE_MODEL_ROOTS"):
        ModelResolver(ModelSettings()).resolve(ModelRef(path=str(root / "llama")))


def test_below_a_root_but_not_there(root: Path) -> None:
    (root / "empty").mkdir()
    for path in ("nothing", "empty"):
        with pytest.raises(ModelNotFound):
            resolve(root, path)


def test_devices_pipes_and_sockets_are_no_configs(root: Path) -> None:
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(root / "socket"))
        for name, expected in (("pipe", ConfigUnreadable), ("socket", ModelError)):
            with pytest.raises(expected):
                resolve(root, name)
    (root / "odd").mkdir()
    (root / "odd" / "config.json").mkdir()
    with pytest.raises(ModelError):
        resolve(root, "odd")


def test_files_over_the_limit_are_not_read(root: Path) -> None:
    with (root / "large.json").open("wb") as file:
        file.truncate(10**12)  # no blocks on disk, but read whole it would fill any memory
    with pytest.raises(ConfigTooLarge, match="1,000,000,000,000 bytes"):
        resolve(root, "large.json")


def test_the_same_file_gives_the_same_object_until_it_changes(tmp_path: Path) -> None:
    file = tmp_path / "org--name.json"
    file.write_text(json.dumps(CONFIG))
    first = read_local(file)
    assert read_local(file) is first
    assert first.model_id == "org/name"
    file.write_text(json.dumps({**CONFIG, "num_hidden_layers": 33}))
    assert read_local(file).num_layers == 33


def test_a_missing_file_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound):
        read_local(tmp_path / "nothing.json")
