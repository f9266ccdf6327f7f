"""From a container's words to a found launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from engine.errors import InvalidLaunch
from engine.launch import ModelRef
from engine.launch_command import ParsedCommand, find_words
from engine.launch_forms import model_in
from engine.manifests.found import FoundLaunch


def found_launch(
    words: Sequence[str], environment: Mapping[str, str], found: FoundLaunch, *, image: object = None
) -> FoundLaunch | None:
    """``found`` with the launch that the words start; None where they start no engine.

    A model that ``found`` names already wins over the one in the words. An image's own entry point may start the
    engine: words that begin with an option and name a model are a launch too, unless the image is named and is
    none of this engine's, since other engines have such options too.
    """
    try:
        parsed = find_words(words, environment, field=found.path, keep_missing=True)
    except InvalidLaunch as error:
        if not any("sglang" in word for word in words):
            return None  # a script that cannot be read, and has nothing to do with the engine
        return replace(found, problem=f"{error.detail} {error.remedy}".strip(), model=None)
    own = not isinstance(image, str) or "sgl" in image.lower()
    if parsed is None and own and words and words[0].startswith("--") and model_in(words)[0] is not None:
        parsed = ParsedCommand(environment={}, arguments=tuple(words))
    if parsed is None:
        return None
    named, arguments = model_in(parsed.arguments)
    named = named or parsed.model
    marks = {*found.unknown, *parsed.missing}
    if found.model is None:
        if named is None:
            return replace(found, problem="The command names no model (--model-path).")
        if "$" in named:
            return replace(found, problem=f"The model is {named}, whose value is not in the manifest.")
        model = ModelRef(path=named) if named.startswith(("/", "./", "../")) else ModelRef(id=named)
        found = replace(found, model=model)
    return replace(
        found,
        arguments=arguments,
        environment={**environment, **parsed.environment},
        unknown=tuple(sorted(mark for mark in marks if any(mark in word for word in arguments))),
    )
