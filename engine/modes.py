"""How strictly each rule is held: enforced, warned about or off, for each place where launches are checked.

A policy is one YAML file::

    version: 1
    gate: enforce                      # every rule, every point; or {http: enforce, cli: warn}
    rules:
      GG101: enforce                   # one rule; or by point: {http: enforce, admission: warn}
      GG601: {mode: warn, parameters: {largest_fraction: 0.97}}
    exceptions:
      - rule: GG101                    # or "*" for every rule
        model: "acme/*"                # which models (shell pattern); left out: all
        mode: warn
        until: 2027-01-31              # the last day it holds
        reason: "own build with the buffers allocated per phase, ticket 1234"

``enforce`` is the default. ``warn`` turns an error into a warning and changes nothing; ``off`` says nothing. What the
engine itself refuses is no rule and stays rejected. The digest of the policy stands in every verdict.
"""

from __future__ import annotations

import datetime
import difflib
import fnmatch
import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from engine.errors import QuestionError
from engine.guards import all_rules
from engine.guards.base import Hit

Mode = Literal["enforce", "warn", "off"]
Point = Literal["http", "cli", "admission", "worker"]
MODES: tuple[Mode, ...] = get_args(Mode)
POINTS: tuple[Point, ...] = get_args(Point)


class InvalidPolicy(QuestionError):
    """The policy file has a field of the wrong form, or names a rule, a mode or a point that there is not."""

    slug = "invalid-policy"
    title = "The policy file cannot be used"


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleException:
    """One exception: for which rule and models, which mode, until which day (inclusive), and why."""

    rule: str
    model: str
    mode: Mode
    until: datetime.date
    reason: str

    def matches(self, rule: str, model: str) -> bool:
        """Whether it is about that rule and that model, whatever the day."""
        return self.rule in ("*", rule) and fnmatch.fnmatchcase(model, self.model)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Modes by rule and point, rules' parameters, and exceptions.

    ``digest`` is the SHA-256 of what it says, whatever its spelling.
    """

    gate: Mapping[Point, Mode] = field(default_factory=dict)
    rules: Mapping[str, Mapping[Point, Mode]] = field(default_factory=dict)
    parameters: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    exceptions: tuple[RuleException, ...] = ()
    digest: str = ""

    def mode(self, rule: str, point: Point) -> Mode:
        """The mode of a rule at a point, before exceptions."""
        return self.rules.get(rule, {}).get(point) or self.gate.get(point) or "enforce"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A policy at one enforcement point."""

    policy: Policy
    point: Point = "cli"

    def applied(
        self, hits: Sequence[Hit], model: str, today: datetime.date | None = None
    ) -> tuple[tuple[Hit, ...], tuple[str, ...]]:
        """The hits that remain, each as strict as its mode lets it be, and a note for each that was weakened."""
        policy = self.policy
        if not policy.rules and not policy.gate and not policy.exceptions:
            return tuple(hits), ()
        day = today or datetime.datetime.now(datetime.UTC).date()
        kept: list[Hit] = []
        notes: dict[str, None] = {}
        for hit in hits:
            rule = hit.finding.rule
            mode, why = policy.mode(rule, self.point), "by the policy"
            for exception in policy.exceptions:
                if exception.matches(rule, model):
                    if day > exception.until:
                        notes[f"An exception for {rule} ended on {exception.until}: {exception.reason}"] = None
                    else:
                        mode, why = exception.mode, f"by an exception until {exception.until}: {exception.reason}"
                        break
            if mode == "enforce":
                kept.append(hit)
                continue
            notes[f"{rule} is in mode {mode} {why}"] = None
            if mode == "warn":
                severity = "warning" if hit.finding.severity == "error" else hit.finding.severity
                kept.append(Hit(finding=replace(hit.finding, severity=severity)))
        return tuple(kept), tuple(notes)

    def to_dict(self) -> dict[str, Any]:
        return {"digest": self.policy.digest, "point": self.point}


def read_policy(path: Path) -> Policy:
    """The policy of a YAML file.

    Raises:
        InvalidPolicy: the file cannot be read, or says something that there is not.
    """
    import yaml  # only where there is a policy file, and slow to import

    try:
        parsed = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidPolicy(f"The policy file {path} cannot be read: {error.strerror}.") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark is not None else ""
        raise InvalidPolicy(f"The policy file {path} is not YAML{where}.") from None
    return policy_of(parsed)


def policy_of(parsed: Any) -> Policy:
    """The policy that parsed YAML holds.

    Raises:
        InvalidPolicy: with the dotted path of what is wrong.
    """
    whole = _mapping(parsed, "policy", ("version", "gate", "rules", "exceptions"))
    if whole.get("version") != 1:
        raise InvalidPolicy("The policy's version must be 1.", remedy="Write version: 1.", field="version")
    known = [rule.id for rule in all_rules()]
    rules: dict[str, Mapping[Point, Mode]] = {}
    parameters: dict[str, Mapping[str, float]] = {}
    for rule, given in _mapping(whole.get("rules") or {}, "rules").items():
        _one_of(rule, known, f"rules.{rule}", "rule")
        if isinstance(given, Mapping) and ("mode" in given or "parameters" in given):
            fields = _mapping(given, f"rules.{rule}", ("mode", "parameters"))
            if fields.get("parameters") is not None:
                parameters[rule] = _parameters(fields["parameters"], rule)
            given = fields.get("mode", "enforce")
        rules[rule] = _modes(given, f"rules.{rule}")
    given_exceptions = whole.get("exceptions") or []
    if not isinstance(given_exceptions, list):
        raise InvalidPolicy("exceptions must be a list.", field="exceptions")
    exceptions = tuple(_exception(item, f"exceptions[{i}]", known) for i, item in enumerate(given_exceptions))
    gate = _modes(whole["gate"], "gate") if whole.get("gate") is not None else {}
    said = json.dumps(
        [gate, rules, parameters, [[e.rule, e.model, e.mode, str(e.until), e.reason] for e in exceptions]],
        sort_keys=True,
    )
    digest = "sha256:" + hashlib.sha256(said.encode()).hexdigest()
    return Policy(gate=gate, rules=rules, parameters=parameters, exceptions=exceptions, digest=digest)


@cache
def gate_at(point: Point, path: Path | None = None) -> Gate:
    """The policy of a file, or the default one, at an enforcement point.

    Raises:
        InvalidPolicy: the file cannot be used.
    """
    return Gate(policy=default_policy() if path is None else read_policy(path), point=point)


@cache
def default_policy() -> Policy:
    """Every rule enforced at every point."""
    return policy_of({"version": 1})


def _exception(given: Any, where: str, known: Sequence[str]) -> RuleException:
    fields = _mapping(given, where, ("rule", "model", "mode", "until", "reason"))
    for name in ("rule", "mode", "until", "reason"):
        if not fields.get(name):
            raise InvalidPolicy(f"An exception needs {name}.", field=f"{where}.{name}")
    rule = str(fields["rule"])
    if rule != "*":
        _one_of(rule, known, f"{where}.rule", "rule")
    until = fields["until"]
    if isinstance(until, datetime.datetime) or not isinstance(until, datetime.date):
        raise InvalidPolicy(f"{until!r} is not a day.", remedy="Write until: 2027-01-31.", field=f"{where}.until")
    return RuleException(
        rule=rule,
        model=str(fields.get("model") or "*"),
        mode=_mode(fields["mode"], f"{where}.mode"),
        until=until,
        reason=str(fields["reason"]),
    )


def _parameters(given: Any, rule: str) -> dict[str, float]:
    where = f"rules.{rule}.parameters"
    names = next(known.parameters for known in all_rules() if known.id == rule)
    out: dict[str, float] = {}
    for name, value in _mapping(given, where).items():
        if not names:
            raise InvalidPolicy(f"{rule} has no parameters.", remedy="Leave them out.", field=where)
        _one_of(name, names, f"{where}.{name}", "parameter")
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise InvalidPolicy(f"{value!r} is not a number.", field=f"{where}.{name}")
        out[name] = value
    return out


def _modes(given: Any, where: str) -> dict[Point, Mode]:
    if isinstance(given, Mapping):
        out: dict[Point, Mode] = {}
        for point, mode in given.items():
            _one_of(point, POINTS, f"{where}.{point}", "enforcement point")
            out[point] = _mode(mode, f"{where}.{point}")
        return out
    mode = _mode(given, where)
    return dict.fromkeys(POINTS, mode)


def _mode(given: Any, where: str) -> Mode:
    if given is False:  # YAML 1.1 reads a bare off so
        return "off"
    _one_of(given, MODES, where, "mode")
    mode: Mode = given
    return mode


def _one_of(given: Any, known: Iterable[str], where: str, what: str) -> None:
    names = list(known)
    if given in names:
        return
    near = difflib.get_close_matches(str(given), names, n=1)
    meant = f"Did you mean {near[0]}? " if near else ""
    raise InvalidPolicy(f"There is no {what} {given!r}.", remedy=f"{meant}Known: {', '.join(names)}.", field=where)


def _mapping(given: Any, where: str, names: Sequence[str] = ()) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise InvalidPolicy(f"{where} must be a mapping.", field=where)
    for name in given:
        if names:
            _one_of(name, names, f"{where}.{name}", "field")
    return given
