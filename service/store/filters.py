"""Which validations, or which captures by the validation that they are of, a list holds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, exists

from service.store.database import first_id_at
from service.store.tables import captures, validation_rules, validations

_EQUAL = ("verdict", "model", "release", "gpu")


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """What all entries of a list have in common; None: anything. ``rule`` is the id of a rule with findings; ``since``
    and ``until`` (not included) bound when the entry was made; ``state`` is of captures alone."""

    verdict: str | None = None
    model: str | None = None
    release: str | None = None
    gpu: str | None = None
    rule: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    state: str | None = None
    owner: str | None = None

    def of_validations(self, query: Select[Any], *, before: str | None) -> Select[Any]:
        """The query, its validations older than the id ``before``, newest first."""
        identity: ColumnElement[str] = validations.c.id
        if self.rule is not None:  # the index by rule is in the order of the list: it is read only as far as needed
            identity = validation_rules.c.validation_id
            query = query.join(validation_rules, identity == validations.c.id).where(
                validation_rules.c.rule == self.rule
            )
        query = query.where(*self._of_validation(), *self._made("val", identity, before))
        if self.owner is not None:
            query = query.where(validations.c.created_by == self.owner)
        return query.order_by(identity.desc())

    def of_captures(self, query: Select[Any], *, before: str | None) -> Select[Any]:
        """The query, which joins captures with their validations, newest first."""
        query = query.where(*self._of_validation(), *self._made("cap", captures.c.id, before))
        if self.rule is not None:
            query = query.where(
                exists().where(
                    validation_rules.c.rule == self.rule,
                    validation_rules.c.validation_id == captures.c.validation_id,
                )
            )
        if self.state is not None:
            query = query.where(captures.c.state == self.state)
        if self.owner is not None:
            query = query.where(captures.c.created_by == self.owner)
        return query.order_by(captures.c.id.desc())

    def _of_validation(self) -> list[ColumnElement[bool]]:
        given = {name: getattr(self, name) for name in _EQUAL}
        return [validations.c[name] == value for name, value in given.items() if value is not None]

    def _made(self, prefix: str, identity: ColumnElement[str], before: str | None) -> list[ColumnElement[bool]]:
        """Ids begin with the time, so that times are places in the order of ids."""
        out: list[ColumnElement[bool]] = []
        if before is not None:
            out.append(identity < before)
        if self.since is not None:
            out.append(identity >= first_id_at(prefix, self.since))
        if self.until is not None:
            out.append(identity < first_id_at(prefix, self.until))
        return out
