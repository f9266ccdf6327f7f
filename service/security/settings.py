"""The settings of access control, a part of :class:`service.settings.Settings`."""

from __future__ import annotations

from typing import Literal

from limits import parse
from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings

_OPENED = ("admission", "metrics")


class AccessSettings(BaseSettings):
    """Who may do what, and how often.

    ``access``: ``auto`` (off on the loopback interface, on elsewhere), ``required`` or ``off``. ``open`` names what
    needs no credentials all the same, of ``metrics`` and ``admission``. ``rate`` and ``gpu_seconds`` (a day) are for
    keys that have none of their own. ``failures`` is how often one address may fail to say who it is.
    ``limits_url`` is the Redis in which several processes count rates together. ``audit_days`` is how long audit
    entries are kept. ``oidc_scope_claim`` is a claim, dots lead into objects; ``oidc_scopes`` is ``NAME=SCOPE,...``.
    """

    access: Literal["auto", "off", "required"] = "auto"
    open: str | None = None
    rate: str | None = None
    gpu_seconds: int | None = Field(default=None, ge=0)
    failures: str = "30/minute"
    limits_url: SecretStr | None = None
    audit_days: int = Field(default=365, ge=1)
    oidc_issuer: str | None = None
    oidc_audience: str | None = None
    oidc_scope_claim: str = "scope"
    oidc_scopes: str = ",".join(f"graphgate:{scope}={scope}" for scope in ("validate", "capture", "worker", "admin"))

    @field_validator("open")
    @classmethod
    def _known(cls, value: str | None) -> str | None:
        strange = [name for name in opened(value) if name not in _OPENED]
        if strange:
            raise ValueError(f"{strange[0][:40]!r} is not one of {', '.join(_OPENED)}")
        return value

    @field_validator("rate", "failures")
    @classmethod
    def _rate(cls, value: str | None) -> str | None:
        if value is not None and parse(value).amount < 1:
            raise ValueError(f"{value[:40]!r} lets nothing through")
        return value

    @field_validator("limits_url")
    @classmethod
    def _redis(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not value.get_secret_value().startswith(("redis://", "rediss://")):
            raise ValueError("it must be a redis:// or rediss:// address")
        return value

    @property
    def opened(self) -> tuple[str, ...]:
        """The names in ``open``."""
        return opened(self.open)


def opened(value: str | None) -> tuple[str, ...]:
    """The names of a comma-separated list."""
    return tuple(filter(None, (part.strip() for part in (value or "").split(","))))
