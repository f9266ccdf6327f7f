"""The settings of admission, a part of :class:`service.settings.Settings`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings

from engine.errors import UnknownGpu
from engine.hardware import gpu_named
from engine.launch_forms import DEFAULT_GPU, DEFAULT_GPU_COUNT


class AdmissionSettings(BaseSettings):
    """How admission answers.

    ``admission_on_unknown`` is the answer where a launch cannot be examined, ``admission_wait_s`` how long the whole
    answer may take. ``admission_gpu`` and ``admission_gpu_count`` hold where a manifest names none.
    """

    admission_on_unknown: Literal["allow", "deny"] = "allow"
    admission_wait_s: float = Field(default=0.8, gt=0, le=25)
    admission_gpu: str = DEFAULT_GPU
    admission_gpu_count: int = Field(default=DEFAULT_GPU_COUNT, ge=1)

    @field_validator("admission_gpu")
    @classmethod
    def _known_gpu(cls, value: str) -> str:
        try:
            return gpu_named(value).name
        except UnknownGpu as error:
            raise ValueError(str(error)) from None
