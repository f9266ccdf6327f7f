"""Settings of the fleet; environment variables as in :mod:`service.settings`."""

from __future__ import annotations

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings

_SCHEMES = ("redis://", "rediss://", "sentinel://")


class FleetSettings(BaseSettings):
    """Times in seconds.

    ``broker_url`` is where captures are sent; without it workers ask the database. ``embedded_worker``: whether the
    API runs captures too; None: only where there is no broker. ``resend_s`` is how long a capture that was sent may go
    unclaimed before it is sent again, where the broker has fewer messages than it should. ``reconcile_s`` is how often
    queue, workers and broker are compared. ``drain_s`` is how long a service that is told to stop still answers, not
    ready, so that load balancers turn away first. ``metrics_address`` is where a worker of its own shows its metrics,
    HOST:PORT; None: nowhere.
    """

    broker_url: SecretStr | None = None
    embedded_worker: bool | None = None
    resend_s: float = Field(default=30.0, gt=0)
    reconcile_s: float = Field(default=2.0, gt=0)
    drain_s: float = Field(default=0.0, ge=0)
    metrics_address: str | None = None

    @field_validator("broker_url")
    @classmethod
    def _address(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not value.get_secret_value().startswith(_SCHEMES):
            raise ValueError(f"write an address that begins with {', '.join(_SCHEMES)}")
        return value

    @property
    def runs_worker(self) -> bool:
        """Whether the API's own process takes captures."""
        return self.broker_url is None if self.embedded_worker is None else self.embedded_worker
