"""The full verdict of a graphgate service, where ``GRAPHGATE_URL`` names one. No answer in time: the launch goes on."""

from __future__ import annotations

import functools
import json
import multiprocessing
import os
import re
import sys
import urllib.request
from pathlib import Path
from typing import Any

from graphgate_sglang import engine
from graphgate_sglang.rule import Finding, logger

SECRET = re.compile(r"api[_-]?k|key[_-]?file|password|secret|credential|auth[_-]?token", re.IGNORECASE)


def ask(server_args: Any) -> tuple[Finding | None] | None:
    """What the service finds on a launch ((None,): nothing), asked once; None where nobody is asked, or answers."""
    url = os.environ.get("GRAPHGATE_URL", "").strip().rstrip("/")
    if not url or multiprocessing.parent_process() is not None:
        return None
    asked, model = re.sub(r"//[^/@]*@", "//", url), str(server_args.model_path)
    if not any(word == model or word.endswith(f"={model}") for word in sys.argv):
        logger.info("graphgate at %s is not asked: this launch has no command line of its own.", asked)
        return None
    try:
        body = _verdict(url, json.dumps(_request(server_args, model)))
        adjusted = body["verdict"] == "adjusted" and body["effective"]["graph"]["prefill"]["backend"]
        said = " ".join(f"{f['rule']}: {f['message']} {f['remedy']}" for f in body["findings"]) or body["summary"]
        if body["verdict"] == "rejected":
            return ((True, f"graphgate at {asked} rejects this launch: {said}"),)
        logger.info("graphgate at %s: %s. %s", asked, body["verdict"], said)
        if adjusted == "disabled" and engine.graph(server_args).prefill.backend != "disabled":
            return ((False, f"graphgate at {asked} disables prefill graphs: {said}"),)
    except Exception as error:  # what is no network error may quote the key
        said = repr(error) if isinstance(error, OSError) else type(error).__name__
        logger.warning("graphgate at %s gave no verdict (%s); the plugin's own rule holds.", asked, said)
        return None
    return (None,)


@functools.cache
def _verdict(url: str, body: str) -> Any:
    if not url.startswith(("http://", "https://")):
        raise ValueError("GRAPHGATE_URL must begin with http:// or https://")
    headers = {"Content-Type": "application/json"}
    if key := os.environ.get("GRAPHGATE_API_KEY", "").strip():
        headers["Authorization"] = f"Bearer {key}"
    request = urllib.request.Request(f"{url}/v1/validations", body.encode(), headers)  # noqa: S310 - checked above
    timeout = float(os.environ.get("GRAPHGATE_TIMEOUT") or 3)
    with urllib.request.build_opener(_NoRedirect).open(request, timeout=timeout) as reply:
        return json.loads(reply.read())


def _request(server_args: Any, model: str) -> dict[str, Any]:
    import torch

    config, revision = Path(model, "config.json"), getattr(server_args, "revision", None)
    local = {"config": json.loads(config.read_text("utf-8"))} if config.is_file() else None
    secrets = [re.escape(str(value)) for name, value in vars(server_args).items() if value and SECRET.search(name)]
    hidden = re.compile(rf"^(--[\w-]+=)?({'|'.join(secrets) or '(?!)'})$")
    return {
        "model": local or {"id": model, "revision": revision},
        "engine": {"name": "sglang", "version": engine.release()},
        "hardware": {"gpu": torch.cuda.get_device_name(0), "count": torch.cuda.device_count()},
        "arguments": [hidden.sub(r"\1REDACTED", word) for word in sys.argv[1:] if word != "serve"],
        "environment": {k: v for k, v in os.environ.items() if k.startswith("SGLANG_") and not SECRET.search(k)},
    }


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The key goes to the address that was given, and to no other."""

    def redirect_request(self, *_: Any) -> None:
        return None
