"""Which models carry recurrent state between tokens, by the release's own list.

The engine tells them by the class of their configuration (``sglang/srt/configs/hybrid_arch.py``,
``mambaish_config``), not by a family's name: a hybrid model that the list does not hold is none. The classes of each
model_type are data of the release; the conditions that a class alone does not decide are here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from engine.sglang.hf_config import HfConfig
from engine.sglang.model_tables import ArchitectureLists

StateFamily = Literal["mamba", "mamba2", "shortconv", "gdn", "kda", "lightning", "registered"]

_MAMBA2: dict[str, StateFamily] = {
    "FalconH1Config": "mamba2",
    "NemotronHConfig": "mamba2",
    "NemotronH_Nano_VL_V2_Config": "mamba2",
    "Lfm2Config": "shortconv",
    "Lfm2MoeConfig": "shortconv",
    "Lfm2VlConfig": "shortconv",
    "ZayaConfig": "shortconv",
    "Mamba2Config": "mamba2",
    "MambaConfig": "mamba",
    "FalconMambaConfig": "mamba",
    "InklingModelConfig": "shortconv",
    "InklingMMConfig": "shortconv",
}
_SINCE_0_5_20 = frozenset({"Mamba2Config", "MambaConfig", "FalconMambaConfig"})
_GDN = frozenset(
    {
        "Qwen3NextConfig",
        "Qwen3_5Config",
        "Qwen3_5MoeConfig",
        "InternS2PreviewConfig",
        "JetNemotronConfig",
        "JetVLMConfig",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateCarrying:
    """Why the engine takes a model for one that carries state: the configuration class, and the kind of its state.

    ``inkling``: the one family whose full prefill graph the engine's authors tested and turn on by themselves.
    """

    config_class: str
    family: StateFamily
    inkling: bool = False


def state_carrying_of(
    hf: HfConfig, text: HfConfig, own_text: HfConfig, lists: ArchitectureLists
) -> StateCarrying | None:
    """The release's answer for one model; None for a model that carries no state.

    ``own_text`` is what the configuration's own ``get_text_config`` gives; ``lists`` holds the release's registry of
    softmax/linear hybrids.
    """
    for name in hf.bases:
        if name in _MAMBA2 and (name not in _SINCE_0_5_20 or lists.since(0, 5, 20)):
            return StateCarrying(config_class=hf.class_name, family=_MAMBA2[name], inkling=name.startswith("Inkling"))
    if "GraniteMoeHybridConfig" in hf.bases and "mamba" in (hf.get("layer_types") or ()):
        return StateCarrying(config_class="GraniteMoeHybridConfig", family="mamba2")
    for name in own_text.bases:
        if name in _GDN:
            return StateCarrying(config_class=own_text.class_name, family="gdn")
    for config in (hf, text, hf.get("text_config")):
        if not isinstance(config, HfConfig):
            continue
        if "KimiLinearConfig" in config.bases and config is not text:
            return StateCarrying(config_class="KimiLinearConfig", family="kda")
        if "KimiLinearConfig" in config.bases and (config is hf or config is hf.get("text_config")):
            return StateCarrying(config_class="KimiLinearConfig", family="kda")
        if config is not hf and not lists.since(0, 5, 21):
            continue
        if "BailingHybridConfig" in config.bases and config.get("use_kda"):
            return StateCarrying(config_class="BailingHybridConfig", family="kda")
    if hf.get("model_type") == "glm5_next" and lists.since(0, 5, 20):
        return StateCarrying(config_class=own_text.class_name, family="kda")
    if "BailingHybridConfig" in hf.bases and not hf.get("use_kda"):
        return StateCarrying(config_class="BailingHybridConfig", family="lightning")
    if "MiniCPMHybridConfig" in hf.bases and hf.get("has_lightning_layers"):
        return StateCarrying(config_class="MiniCPMHybridConfig", family="lightning")
    for spec in lists.linear_specs:
        config = own_text if spec["unwrap"] else hf
        if spec["class"] in config.bases:
            return StateCarrying(config_class=spec["class"], family="registered")
    return None
