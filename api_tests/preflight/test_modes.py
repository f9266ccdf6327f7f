"""How strictly a rule is held: by rule, by place, by exception, and what a wrong policy file is told."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

from engine.launch_forms import launch_from_request
from engine.models.resolver import ModelResolver
from engine.models.settings import ModelSettings
from engine.modes import Gate, InvalidPolicy, Point, default_policy, policy_of, read_policy
from engine.preflight import check
from engine.verdict import Verdict

LOCKED = {"model": "Qwen/Qwen3-Next-80B-A3B-Instruct", "arguments": ["--cuda-graph-backend-prefill", "full"]}
UNLOCKED = {"model": "Qwen/Qwen3-Next-80B-A3B-Instruct", "defaults": {"prefill": {"backend": "full"}}}
resolver = ModelResolver(ModelSettings.from_environment({"GRAPHGATE_OFFLINE": "1"}))


def verdict(body: dict[str, Any], policy: dict[str, Any], point: Point = "http") -> Verdict:
    gate = Gate(policy=policy_of({"version": 1, **policy}), point=point)
    return check(launch_from_request(body), resolver, gate).verdict


def gg101(answer: Verdict) -> list[str]:
    return [f.severity for f in answer.findings if f.rule == "GG101"]


def test_warn_turns_the_rejection_into_a_warning_and_says_so() -> None:
    answer = verdict(LOCKED, {"rules": {"GG101": "warn"}})
    assert answer.verdict != "rejected"
    assert gg101(answer) == ["warning"]
    assert answer.effective is not None
    assert answer.effective.graph["prefill"].backend == "full"
    assert any("GG101 is in mode warn" in note for note in answer.notes)


def test_off_is_silent_but_noted() -> None:
    answer = verdict(LOCKED, {"rules": {"GG101": "off"}})
    assert gg101(answer) == []
    assert any("GG101 is in mode off" in note for note in answer.notes)


def test_what_a_guard_would_change_stays_where_it_only_warns() -> None:
    answer = verdict(UNLOCKED, {"gate": "warn"})
    assert answer.effective is not None
    assert answer.effective.graph["prefill"].backend == "full"
    assert verdict(UNLOCKED, {}).effective != answer.effective


def test_a_place_of_its_own() -> None:
    policy = {"rules": {"GG101": {"cli": "off"}}, "gate": {"cli": "enforce"}}
    assert verdict(LOCKED, policy, "http").verdict == "rejected"
    assert verdict(LOCKED, policy, "cli").verdict != "rejected"


def test_the_whole_gate_off_leaves_the_engines_own_refusals() -> None:
    assert verdict(LOCKED, {"gate": False}).findings == ()
    assert verdict({**LOCKED, "arguments": ["--no-such-option"]}, {"gate": "off"}).verdict == "rejected"


@pytest.mark.parametrize(
    ("model", "days", "rejected"), [("Qwen/*", 1, False), ("Qwen/*", -1, True), ("acme/*", 1, True)]
)
def test_an_exception_holds_for_its_models_until_its_day(model: str, days: int, rejected: bool) -> None:
    until = datetime.datetime.now(datetime.UTC).date() + datetime.timedelta(days=days)
    exception = {"rule": "GG101", "model": model, "mode": "warn", "until": until, "reason": "own build"}
    answer = verdict(LOCKED, {"exceptions": [exception]})
    assert (answer.verdict == "rejected") is rejected
    assert any("own build" in note for note in answer.notes) is (model == "Qwen/*")


def test_a_rules_parameter_is_the_policys_where_it_gives_one() -> None:
    body = {"model": "meta-llama/Llama-3.1-8B-Instruct", "arguments": ["--mem-fraction-static", "0.96"]}
    kinds = {
        fraction: [f.rule for f in verdict(body, {"rules": {"GG601": {"parameters": given}}}).findings]
        for fraction, given in ((0.95, {}), (0.97, {"largest_fraction": 0.97}))
    }
    assert "GG601" in kinds[0.95]
    assert "GG601" not in kinds[0.97]


def test_the_digest_is_of_what_the_policy_says(tmp_path: Path) -> None:
    one, other = tmp_path / "a.yaml", tmp_path / "b.yaml"
    one.write_text("version: 1\nrules: {GG101: warn}\n", encoding="utf-8")
    other.write_text(
        "# the same\nrules:\n  GG101: {http: warn, cli: warn, admission: warn, worker: warn}\nversion: 1\n"
    )
    assert read_policy(one).digest == read_policy(other).digest
    assert read_policy(one).digest != default_policy().digest
    assert verdict(LOCKED, {}).policy == {"digest": default_policy().digest, "point": "http"}


@pytest.mark.parametrize(
    ("policy", "field", "says"),
    [
        ({"version": 2}, "version", "must be 1"),
        ({"version": 1, "rules": {"GG999": "off"}}, "rules.GG999", "Known: GG101"),
        ({"version": 1, "rules": {"GG101": "enforced"}}, "rules.GG101", "Did you mean enforce?"),
        ({"version": 1, "rules": {"GG101": {"https": "off"}}}, "rules.GG101.https", "Did you mean http?"),
        ({"version": 1, "rulse": {}}, "policy.rulse", "Did you mean rules?"),
        ({"version": 1, "gate": 3}, "gate", "no mode 3"),
        (
            {"version": 1, "rules": {"GG601": {"parameters": {"largest_fractoin": 1}}}},
            "rules.GG601.parameters.largest_fractoin",
            "Did you mean largest_fraction?",
        ),
        (
            {"version": 1, "rules": {"GG601": {"parameters": {"largest_fraction": "high"}}}},
            "rules.GG601.parameters.largest_fraction",
            "not a number",
        ),
        ({"version": 1, "rules": {"GG101": {"parameters": {"x": 1}}}}, "rules.GG101.parameters", "has no parameters"),
        ({"version": 1, "exceptions": [{"rule": "GG101", "mode": "off"}]}, "exceptions[0].until", "needs until"),
        (
            {"version": 1, "exceptions": [{"rule": "GG101", "mode": "off", "until": "soon", "reason": "x"}]},
            "exceptions[0].until",
            "not a day",
        ),
        ([], "policy", "mapping"),
    ],
)
def test_a_policy_that_cannot_be_used_says_where(policy: Any, field: str, says: str) -> None:
    with pytest.raises(InvalidPolicy) as caught:
        policy_of(policy)
    assert caught.value.field == field
    assert says in str(caught.value)


def test_a_file_that_is_no_yaml(tmp_path: Path) -> None:
    broken = tmp_path / "policy.yaml"
    broken.write_text("version: [", encoding="utf-8")
    with pytest.raises(InvalidPolicy, match="not YAML"):
        read_policy(broken)
    with pytest.raises(InvalidPolicy, match="cannot be read"):
        read_policy(tmp_path / "absent.yaml")
