"""A shell line is read as a real shell reads it: the reference is ``sh`` itself."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from engine.launch_command import find_command, find_words, parse_command

LINES = [
    "sglang serve org/m --tp 8",
    "sglang serve 'org/m' \"--tp\" '8'",
    """sglang serve org/m --cuda-graph-config '{"prefill": {"backend": "full"}}'""",
    """sglang serve org/m --cuda-graph-config "{\\"prefill\\": {\\"max_bs\\": 64}}" """,
    'sglang serve org/m --cuda-graph-config={\\"a\\":1}',
    "sglang serve \\\n  org/m \\\n  --tp 8   # eight of them\n",
    "sglang serve org/m --a 'it'\\''s' --b \"a\\\\b\" --c \"a\\nb\" --d a\\ b",
    "FOO=1 BAR='x y' sglang serve $KNOWN --tp ${COUNT:-4} --pp ${KNOWN:-7} --e \"${EMPTY:-two words}\"",
    "sglang serve '$KNOWN' \"$KNOWN/x\" --price \\$5 --money $",
    "set -e; cd /tmp && sglang serve org/m --tp 8 || exit 1",
    "sglang serve org/m --tp 8 > /dev/null 2>&1",
    "sglang serve org/m 2>/dev/null --tp 8 </dev/null",
    "MODEL=org/m; export TP=8\nsglang serve $MODEL --tp $TP",
    'export MODEL=org/m TP=2 && sglang serve "$MODEL" --tp=$TP',
    "sglang serve org/m --glob '*.py' --hash a#b --eq a=b \"\"",
    "(sglang serve org/m --tp 8)",
]
GIVEN = {"KNOWN": "known", "EMPTY": ""}


def by_the_shell(line: str, out: Path) -> list[str]:
    script = f'sglang() {{ shift; for word in "$@"; do printf "%s\\0" "$word" >> {out}; done; }}\n{line}'
    environment = {"PATH": os.environ["PATH"], **GIVEN}
    subprocess.run(["sh", "-c", script], env=environment, check=True, stdin=subprocess.DEVNULL)
    return out.read_bytes().decode().split("\0")[:-1]


@pytest.mark.parametrize("line", LINES)
def test_words_are_those_of_the_shell(line: str, tmp_path: Path) -> None:
    parsed = parse_command(line, GIVEN)
    assert [*([parsed.model] if parsed.model else []), *parsed.arguments] == by_the_shell(line, tmp_path / "words")


def test_the_environment_of_a_script_is_kept_apart_from_the_given_one() -> None:
    script = "export A=1\nB=2\nC=3 env D='4 4' python3 -m sglang.launch_server --model org/m"
    assert parse_command(script, {"A": "1", "Z": "0"}).environment == {"B": "2", "C": "3", "D": "4 4"}


def test_a_shell_in_a_shell() -> None:
    found = find_words(
        ["/bin/bash", "-lc", "exec python -m sglang.launch_server --model-path org/m --tp $TP"], {"TP": "4"}
    )
    assert found is not None
    assert found.arguments == ("--model-path", "org/m", "--tp", "4")


@pytest.mark.parametrize(
    "script", ["sleep infinity", "python -m http.server", "python -c 'import sglang'", "# sglang serve x"]
)
def test_a_script_that_starts_no_engine(script: str) -> None:
    assert find_command(script) is None
