"""Write docs/openapi.json as the service serves it at /v1/openapi.json; with ``--check`` only compare."""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "docs" / "openapi.json"
sys.path.insert(0, str(ROOT))


def made() -> str:
    """The document, as text."""
    from service.app import create_app
    from service.settings import Settings

    return json.dumps(create_app(Settings()).openapi(), indent=1, ensure_ascii=False) + "\n"


def main() -> int:
    """Write the file, or compare it; 1 where it is stale."""
    text = made()
    if "--check" in sys.argv[1:]:
        return 0 if FILE.is_file() and FILE.read_text(encoding="utf-8") == text else 1
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
