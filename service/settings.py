"""Settings of the service: environment variables named ``GRAPHGATE_...``; those of model look-ups are in
:mod:`engine.models.settings`."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import SettingsConfigDict

from engine.errors import GraphgateError
from engine.models.settings import ModelSettings
from service.admission.settings import AdmissionSettings
from service.fleet.settings import FleetSettings
from service.security.settings import AccessSettings
from service.store.address import Address, address_of, file_address
from service.tls import TlsSettings


class SettingsError(GraphgateError):
    """A setting that cannot be used; the message names the environment variable."""


class Settings(AccessSettings, AdmissionSettings, FleetSettings, TlsSettings):
    """What can be set. Sizes are in bytes, times in seconds.

    ``data`` is the folder of the database and of what captures leave, ``policy`` the file that says how strictly each
    rule is held. ``threads`` is how many launches are examined at
    the same time, ``waiting`` how many more may wait for one of those threads before the service says it is overloaded.
    ``database_url`` is where the database is, if not in a file below ``data``; ``database_start_s`` how long the start
    waits for its server; ``retention_days`` how long answers and ended captures are kept (0: for ever).
    ``body_wait_s`` is how long a body may take to arrive, ``streams`` how many event streams may be open,
    ``stream_heartbeat_s`` how long one of them is silent before a comment keeps it alive.
    ``idempotency_hours`` is how long an Idempotency-Key is remembered; ``idempotency_lease_s`` after how much silence
    of the process that answers it another may.
    ``capture_lease_s`` is how long a running capture may go without a sign of its worker before another one takes it;
    ``capture_grace_s`` how long a running capture may still run when the service is told to stop;
    ``capture_attempts`` how often a capture is begun before it is given up as dead.
    """

    model_config = SettingsConfigDict(env_prefix="GRAPHGATE_", extra="ignore", frozen=True, env_ignore_empty=True)

    data: Path = Path("var")
    policy: Path | None = None
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    max_body_bytes: int = Field(default=2**20, ge=1024)
    max_json_depth: int = Field(default=64, ge=4, le=500)
    max_json_items: int = Field(default=50_000, ge=100)
    body_wait_s: float = Field(default=30.0, gt=0)
    streams: int = Field(default=200, ge=1)
    stream_heartbeat_s: float = Field(default=10.0, gt=0)
    threads: int = Field(default=16, ge=1, le=256)
    waiting: int = Field(default=256, ge=0)
    database_url: SecretStr | None = None
    database_start_s: float = Field(default=30.0, ge=0)
    database_wait_s: float = Field(default=10.0, gt=0)
    retention_days: float = Field(default=30.0, ge=0)
    worker_python: str | None = None
    idempotency_lease_s: float = Field(default=30.0, ge=1)
    idempotency_hours: float = Field(default=24.0, gt=0)
    capture_queue: int = Field(default=1000, ge=1)
    capture_lease_s: float = Field(default=15.0, ge=1)
    capture_grace_s: float = Field(default=20.0, ge=0)
    capture_attempts: int = Field(default=3, ge=1)

    @field_validator("database_url")
    @classmethod
    def _usable(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None:
            address_of(value.get_secret_value())
        return value

    @property
    def database(self) -> Address:
        """Where the database is: ``database_url``, or else a SQLite file in ``data``."""
        if self.database_url is None:
            return file_address(self.data / "graphgate.sqlite")
        return address_of(self.database_url.get_secret_value())

    def models(self) -> ModelSettings:
        """How model references are looked up; what the hub answered is kept below ``data``.

        Raises:
            QuestionError: a variable that cannot be understood.
        """
        found = ModelSettings.from_environment(os.environ)
        return found if found.cache_dir else dataclasses.replace(found, cache_dir=self.data / "models")


def load_settings() -> Settings:
    """The settings that the environment gives.

    Raises:
        SettingsError: a variable that cannot be understood.
    """
    try:
        return Settings()
    except ValidationError as error:
        lines = [f"GRAPHGATE_{str(e['loc'][0]).upper()}: {e['msg']}" for e in error.errors(include_url=False)]
        raise SettingsError("; ".join(lines)) from None
