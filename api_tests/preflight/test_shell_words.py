"""A shell line is read as a real shell reads it: the reference is ``sh`` itself."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from engine.errors import InvalidLaunch
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
    "sglang serve org/m $WORDS --tp 8 $EMPTY",
    'sglang serve org/m "$WORDS" --tp 8 "$EMPTY" x"$EMPTY" a${WORDS}b',
    "ARGS='--pp 2  --dp 4'; sglang serve org/m $ARGS",
    "set -e\nif true; then sglang serve org/m --tp 8; else sglang other; fi",
    "{ sglang serve org/m --tp 8; }",
    "! sglang serve org/m --tp 8 || true",
    'sglang serve ${MODEL:-org/$KNOWN} --a ${EMPTY:-$WORDS} --b "${NONE:-$KNOWN and $EMPTY}" c=$WORDS',
]
GIVEN = {"KNOWN": "known", "EMPTY": "", "WORDS": "--a b  --c"}
POSITIONAL = [
    ('sglang serve org/m "$@"', ["sh", "--a", "b c", "", "$d"]),
    ("sglang serve org/m $@ $#", ["sh", "--a", "b c"]),
    ('sglang serve "$1" --tp "${2}" $3 "$*"', ["sh", "org/m", "8"]),
    ('sglang serve org/m "$@"', []),
    ('set -- --tp 8; set -e; sglang serve org/m "$@" --x "$1"', ["sh", "a"]),
    ('shift; sglang serve org/m "$@"', ["sh", "a", "--b", "c"]),
    ('shift 2; set -u; sglang serve org/m "$@"', ["sh", "a", "b", "--c"]),
]


def by_the_shell(line: str, out: Path, positional: Sequence[str] = ()) -> list[str]:
    script = f'sglang() {{ shift; for word in "$@"; do printf "%s\\0" "$word" >> {out}; done; }}\n{line}'
    environment = {"PATH": os.environ["PATH"], **GIVEN}
    subprocess.run(["sh", "-c", script, *positional], env=environment, check=True, stdin=subprocess.DEVNULL)
    return out.read_bytes().decode().split("\0")[:-1]


@pytest.mark.parametrize("line", LINES)
def test_words_are_those_of_the_shell(line: str, tmp_path: Path) -> None:
    parsed = parse_command(line, GIVEN)
    assert [*([parsed.model] if parsed.model else []), *parsed.arguments] == by_the_shell(line, tmp_path / "words")


@pytest.mark.parametrize(("line", "positional"), POSITIONAL)
def test_positional_parameters_are_those_behind_the_script(line: str, positional: list[str], tmp_path: Path) -> None:
    parsed = find_words(["sh", "-c", line, *positional], GIVEN)
    assert parsed is not None
    assert [*([parsed.model] if parsed.model else []), *parsed.arguments] == by_the_shell(
        line, tmp_path / "words", positional
    )


ATOMS = [
    *(
        "a",
        "--x",
        "a=b",
        "{a}",
        "''",
        "'q r'",
        "'\\'",
        '"\\""',
        "\\$K",
        "a\\ b",
        "$#",
        "$1",
        "x$1y",
        '"$2"',
        '"$*"',
        '"$@"',
    ),
    *("$@", '"x$@y"', "$KNOWN", "${KNOWN}z", "z$KNOWN", '"d $KNOWN e"', "$EMPTY", '"$EMPTY"', "$WORDS", "x$WORDS"),
    *('"$WORDS"', "a=$WORDS", "${NONE:-def x}", '"${NONE:-def x}"', "${EMPTY:-$KNOWN}", "$KNOWN$WORDS"),
]
AROUND = [("", ""), ("FOO=1 ", ""), ("set -e; ", ""), ("cd / && ", ""), ("X=$WORDS; ", ""), ("{ ", "; }"), ("( ", " )")]


@pytest.mark.parametrize("seed", range(40))
def test_random_lines_are_read_as_the_shell_reads_them(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)  # noqa: S311 - lines to read, no secrets
    before, behind = chance.choice(AROUND)
    line = f"{before}sglang serve org/m {' '.join(chance.choices(ATOMS, k=8))}{behind}"
    positional = chance.choice([["sh"], ["sh", "p1"], ["sh", "p 1", "--p2", ""]])
    parsed = find_words(["sh", "-c", line, *positional], GIVEN)
    assert parsed is not None
    assert ["org/m", *parsed.arguments] == by_the_shell(line, tmp_path / "words", positional), line


def test_a_script_that_runs_what_stands_behind_it() -> None:
    behind = ["--", "python3", "-m", "sglang.launch_server", "--model-path", "org/m"]
    parsed = find_words(["bash", "-c", 'ulimit -n 65536; exec "$@"', *behind])
    assert parsed is not None
    assert parsed.arguments == ("--model-path", "org/m")


@pytest.mark.parametrize(
    "before",
    [
        "numactl --cpunodebind=0 --membind=0",
        "timeout -k 5 3600",
        "nsys profile -o /tmp/trace",
        "/opt/nvidia/nvidia_entrypoint.sh",
        "uv run",
        "nice -n 5 env A=1",
    ],
)
def test_what_starts_another_program_is_looked_through(before: str) -> None:
    parsed = find_command(f"{before} python3 -u -m sglang.launch_server --model-path org/m --tp 2")
    assert parsed is not None
    assert parsed.arguments == ("--model-path", "org/m", "--tp", "2")


@pytest.mark.parametrize(
    "word",
    ["${ARGS[@]}", "${NAME%.*}", "${#NAME}", "${NAME:+x}", "$((1 + 2))", "$$", "$?", "$'a\\nb'", "$@", "$1", "`date`"],
)
def test_what_only_a_shell_can_know_is_missing(word: str) -> None:
    script = f"sglang serve org/m --a {word} --tp 8"
    with pytest.raises(InvalidLaunch, match="is not known here"):
        find_command(script)
    parsed = find_command(script, keep_missing=True)
    assert parsed is not None
    assert parsed.missing == (word,)
    assert parsed.arguments == ("--a", word, "--tp", "8")


def test_missing_values_may_stay_in_the_words() -> None:
    script = "MODEL=$(cat /model); sglang serve org/m --api-key $KEY --host=${POD_IP} --tp 8 --log $(date)"
    with pytest.raises(InvalidLaunch, match=r"\$KEY"):
        find_command(script)
    parsed = find_command(script, keep_missing=True)
    assert parsed is not None
    assert parsed.arguments == ("--api-key", "$KEY", "--host=${POD_IP}", "--tp", "8", "--log", "$(date)")
    assert parsed.missing == ("$KEY", "${POD_IP}", "$(date)")


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
