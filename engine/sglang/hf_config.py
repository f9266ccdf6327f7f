"""A model's config.json as the engine's configuration object shows it: the file's fields over its class's defaults.

Facts: ``sglang/srt/utils/hf_transformers/config.py`` and ``common.py`` (0.5.23) for which class reads the file, where
the text configuration is, and what is copied between the two; the defaults themselves are data, made by
``scripts/extract_model_classes.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from engine.sglang.hf_computed import compute, prepare
from engine.sglang.resolution import Refusal

TEXT_KEYS = ("thinker_config", "llm_config", "language_config", "text_config")
SUB_KEYS = (*TEXT_KEYS, "vision_config", "audio_config", "sound_config")

_LONGCAT = frozenset({"LongcatCausalLM", "LongcatFlashForCausalLM", "LongcatFlashNgramForCausalLM"})
_GEMMA4_FULL_HEAD = 512
_GEMMA4 = frozenset(
    {"gemma4", "gemma4_assistant", "gemma4_unified", "gemma4_unified_assistant", "diffusion_gemma", "embedding_gemma2"}
)


class HfConfig:
    """Attributes by name. A missing one raises AttributeError, as on the engine's object; ``get`` gives a default.

    ``bases`` are the hybrid-model classes that the configuration is an instance of; ``class_name`` its own class;
    ``row`` what the release's data say about that class.
    """

    __slots__ = ("bases", "class_name", "row", "values")

    def __init__(
        self,
        values: dict[str, Any],
        class_name: str = "PreTrainedConfig",
        bases: tuple[str, ...] = (),
        row: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.values = values
        self.class_name = class_name
        self.bases = bases
        self.row = row

    def put(self, name: str, value: Any) -> None:
        """Set an attribute as assigning to the engine's object does: under both of its names, the type checked.

        Raises:
            Refusal: the class wants a whole number there.
        """
        names: Mapping[str, str] = self.row.get("map", {})
        real = names.get(name, name)
        _check_type(self.row, real, value)
        self.values[name] = self.values[real] = value
        for alias, other in names.items():
            if other == real:
                self.values[alias] = value

    def get(self, name: str, default: Any = None) -> Any:
        """The attribute, or the default where there is none (an attribute that is None stays None)."""
        return self.values.get(name, default)

    def has(self, name: str) -> bool:
        """Whether the attribute exists, be it None."""
        return name in self.values

    def require(self, name: str) -> Any:
        """The attribute; its absence is the engine's own AttributeError.

        Raises:
            Refusal: AttributeError in the engine's words.
        """
        try:
            return self.values[name]
        except KeyError:
            raise Refusal("AttributeError", f"'{self.class_name}' object has no attribute '{name}'") from None

    def __getattr__(self, name: str) -> Any:
        try:
            return self.values[name]
        except KeyError:
            raise AttributeError(name) from None


def read_config(
    config: Mapping[str, Any], classes: Mapping[str, Mapping[str, Any]], path: str
) -> tuple[HfConfig, HfConfig]:
    """The engine's configuration object and its text configuration (the same object for a text-only model).

    ``path`` is what messages call the model.

    Raises:
        Refusal: where the engine cannot read such a config.json.
    """
    architectures = config.get("architectures")
    first = architectures[0] if architectures else None
    model_type = _model_type(config, first, classes, path)
    row = classes[model_type]
    config = prepare(row.get("class", ""), config)
    hf = _object(config, row, classes)
    hf.values["architectures"] = list(hf.get("architectures") or ()) or None
    hf.values["model_type"] = model_type
    text = text_config(hf)
    if not row.get("registry") and text is not hf:
        for key, value in text.values.items():
            if value is not None:
                hf.values.setdefault(key, value)
    auto_model = (config.get("auto_map") or {}).get("AutoModel", "")
    if auto_model in ("modeling_deepseekocr.DeepseekOCRForCausalLM", "modeling_deepseekocr2.DeepseekOCR2ForCausalLM"):
        hf.values["architectures"] = ["DeepseekOCRForCausalLM"]
        for key in ("text_config", "language_config"):
            sub = hf.get(key)
            if isinstance(sub, HfConfig) and sub.get("v_head_dim") == 0:
                sub.values["v_head_dim"] = 128
    if model_type == "internvl_chat" and isinstance(hf.get("llm_config"), HfConfig):
        for key, value in hf.llm_config.values.items():
            hf.values.setdefault(key, value)
    if model_type == "multi_modality":
        hf.values["architectures"] = ["MultiModalityCausalLM"]
    if model_type == "longcat_flash":
        hf.values["architectures"] = ["LongcatFlashForCausalLM"]
    if model_type in _GEMMA4 and isinstance(hf.get("text_config"), HfConfig):
        _gemma4_shapes(hf.text_config)
    return hf, text


def _model_type(
    config: Mapping[str, Any], first: str | None, classes: Mapping[str, Mapping[str, Any]], path: str
) -> str:
    if first in _LONGCAT and "longcat_flash" in classes:
        return "longcat_flash"
    model_type = config.get("model_type")
    if not model_type and not first and "d_model" in config and "ssm_cfg" in config and "mamba" in classes:
        return "mamba"
    if isinstance(model_type, str) and model_type in classes:
        return model_type
    if "AutoConfig" in (config.get("auto_map") or {}):
        raise Refusal(
            "ValueError",
            f"The repository {path} contains custom code which must be executed to correctly load the model. "
            f"You can inspect the repository content at {path} .\n You can inspect the repository content at "
            f"https://hf.co/{path}.\nPlease pass the argument `trust_remote_code=True` to allow custom code to be run.",
        )
    if not model_type:
        raise Refusal("ValueError", f"Unrecognized model in {path}. Should have a `model_type` key in its config.json.")
    raise Refusal(
        "ValueError",
        f"The checkpoint you are trying to load has model type `{model_type}` but Transformers does not recognize this "
        "architecture. This could be because of an issue with the checkpoint, or because your version of Transformers "
        "is out of date.\n\nYou can update Transformers with the command `pip install --upgrade transformers`. If this "
        "does not work, and the checkpoint is very new, then there may not be a release version that supports this "
        "model yet. In this case, you can get the most up-to-date code by installing Transformers from source with the "
        "command `pip install git+https://github.com/huggingface/transformers.git`",
    )


def _object(config: Mapping[str, Any], row: Mapping[str, Any], classes: Mapping[str, Mapping[str, Any]]) -> HfConfig:
    """One configuration object: defaults of its class, the file over them, what follows from other attributes."""
    values: dict[str, Any] = dict(row.get("defaults", {}))
    ignored = row.get("ignores", ())
    for name in row.get("not_null", ()):
        if name in config:
            _check_type(row, name, config[name])
    values |= {key: value for key, value in config.items() if key not in ignored}
    for name, real in row.get("map", {}).items():
        if real in config:
            values[name] = config[real]
        elif name in config:
            values[real] = config[name]
    for name, rule in row.get("follows", {}).items():
        given = row.get("map", {}).get(name, name) in config or name in config
        if not given or values.get(name) is None:
            followed = _followed(rule, values)
            if followed is not None:
                values[name] = followed
    _dtype(values)
    usual = row.get("defaults", {}).get("rope_parameters")
    _rope(values, by_layer=isinstance(usual, Mapping) and any(isinstance(v, Mapping) for v in usual.values()))
    _peculiarities(values, config, row)
    _sub_configs(values, config, row, classes)
    compute(row.get("class", ""), values)
    return HfConfig(values, row.get("class", "PreTrainedConfig"), tuple(row.get("bases", ())), row)


def _check_type(row: Mapping[str, Any], name: str, value: Any) -> None:
    """The classes of transformers 5 check the type of what they are given; ``not_null`` names the whole numbers."""
    kind = row.get("not_null", {}).get(name)
    if kind is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise Refusal(
            "StrictDataclassFieldValidationError",
            f"Validation error for field '{name}':\n    TypeError: Field '{name}' expected {kind}, "
            f"got {type(value).__name__} (value: {value!r})",
        )


def _peculiarities(values: dict[str, Any], config: Mapping[str, Any], row: Mapping[str, Any]) -> None:
    """What the class does to values that it is given."""
    if "architectures" in row:
        values["architectures"] = row["architectures"]
    if "gated_window" in row and not config.get("use_sliding_window", row["gated_window"]):
        values["sliding_window"] = None


def _sub_configs(
    values: dict[str, Any],
    config: Mapping[str, Any],
    row: Mapping[str, Any],
    classes: Mapping[str, Mapping[str, Any]],
) -> None:
    """Text and tower configurations, by the class that the outer one gives them."""
    subs: Mapping[str, Any] = row.get("sub", {})
    for key in SUB_KEYS:
        raw, known = config.get(key), subs.get(key)
        if isinstance(raw, Mapping):
            own = str(raw.get("model_type") or "")
            if key in row.get("dynamic", ()) and own in classes:
                values[key] = _object(raw, classes[own], classes)
            elif known is not None:
                values[key] = _known_sub(raw, known, classes)
            else:
                values[key] = plain_config(raw) if key in TEXT_KEYS else HfConfig({}, "dict")
            if values[key].get("model_type") is None:
                values[key].values["model_type"] = own or (known or {}).get("model_type")
        elif known is not None and raw is None and not known.get("absent"):
            flat = row.get("flat_text") and key == "text_config"
            mine = {k: v for k, v in config.items() if k not in ("architectures", "model_type")} if flat else {}
            values[key] = _known_sub(mine, known, classes)
        elif key in subs:
            values.setdefault(key, None)


def _known_sub(raw: Mapping[str, Any], known: Mapping[str, Any], classes: Mapping[str, Mapping[str, Any]]) -> HfConfig:
    inner = known.get("inner")
    row = {**known, "sub": {inner["key"]: inner}} if inner else known
    sub = _object({k: v for k, v in raw.items() if k != "model_type"}, row, classes)
    sub.values["model_type"] = raw.get("model_type") or known["model_type"]
    return sub


def plain_config(raw: Mapping[str, Any]) -> HfConfig:
    """A dictionary that the engine wraps without a class of its own."""
    values = dict(raw)
    _dtype(values)
    values.setdefault("dtype", None)
    _rope(values)
    return HfConfig(values)


def _followed(rule: str, values: Mapping[str, Any]) -> Any:
    if "//" in rule:
        top, bottom = (values.get(part) for part in rule.split("//"))
        return top // bottom if isinstance(top, int) and isinstance(bottom, int) and bottom else None
    if "+" in rule:
        parts = [values.get(part) for part in rule.split("+")]
        return sum(p for p in parts if isinstance(p, int)) if all(isinstance(p, int) for p in parts) else None
    return values.get(rule)


def _dtype(values: dict[str, Any]) -> None:
    """transformers 5 reads ``torch_dtype`` as ``dtype``."""
    if values.get("dtype") is None and values.get("torch_dtype") is not None:
        values["dtype"] = values["torch_dtype"]


def _rope(values: dict[str, Any], *, by_layer: bool = False) -> None:
    """transformers 5 keeps one dictionary under both names and says in it how long the model was trained for.

    ``by_layer``: the class keeps one dictionary a layer type, so that nothing stands at the top.
    """
    rope = values.get("rope_scaling") or values.get("rope_parameters")
    if not isinstance(rope, Mapping):
        return
    if by_layer and not any(isinstance(v, Mapping) for v in rope.values()):
        rope = {"full_attention": rope}
    if not any(isinstance(v, Mapping) for v in rope.values()):
        rope = dict(rope)
        rope.setdefault("rope_type", rope.get("type", "default"))
        if rope["rope_type"] in ("llama3", "yarn", "longrope"):
            trained = values.get("original_max_position_embeddings")
            if trained is not None:
                rope["original_max_position_embeddings"] = trained
            else:
                rope.setdefault("original_max_position_embeddings", values.get("max_position_embeddings"))
    values["rope_scaling"] = values["rope_parameters"] = rope


def text_config(hf: HfConfig) -> HfConfig:
    """The configuration of the language model; the object itself for a text-only model.

    Raises:
        Refusal: AssertionError where the text configuration is no language model's.
    """
    first = (hf.get("architectures") or [None])[0]
    if first is not None and first.startswith("Llava") and first.endswith("ForCausalLM"):
        hf.values["dtype"] = "float16"
        return hf
    parent = hf.get("dtype")
    for key in TEXT_KEYS:
        sub = hf.get(key)
        if isinstance(sub, HfConfig) and parent is not None and sub.get("dtype") is None:
            sub.values["dtype"] = parent
    text: Any = None
    if hf.has("thinker_config"):
        thinker = hf.get("thinker_config")
        if isinstance(thinker, HfConfig) and isinstance(thinker.get("text_config"), HfConfig):
            thinker.text_config.values["dtype"] = thinker.get("dtype")
            text = thinker.text_config
        else:
            text = thinker
    elif hf.has("llm_config"):
        text = hf.get("llm_config")
    elif hf.has("language_config"):
        text = hf.get("language_config")
    elif hf.has("text_config"):
        text = hf.get("text_config")
        if not (isinstance(text, HfConfig) and text.has("num_attention_heads")):
            raise Refusal("AssertionError", "")
    return text if isinstance(text, HfConfig) else hf


def _gemma4_shapes(text: HfConfig) -> None:
    """Gemma 4 writes the sliding layers' shape first; the engine keeps the full-attention layers' in its place."""
    values = text.values
    sliding = (values.get("head_dim"), values.get("num_key_value_heads"))
    shared = values.get("attention_k_eq_v", text.class_name != "Gemma4TextConfig")
    full_heads = values.get("num_global_key_value_heads") if shared else None
    values["swa_head_dim"] = values["swa_v_head_dim"] = sliding[0]
    values["swa_num_key_value_heads"] = sliding[1]
    values["head_dim"] = values.get("global_head_dim", _GEMMA4_FULL_HEAD)
    values["num_key_value_heads"] = sliding[1] if full_heads is None else full_heads
    values.setdefault("v_head_dim", values["head_dim"])
