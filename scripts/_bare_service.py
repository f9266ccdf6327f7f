"""What ``bench_service.py`` compares the service with: a bare route that parses and returns the same models.

    python scripts/_bare_service.py PORT < ANSWERS

ANSWERS holds one answer of the service a line. The route reads a request into the service's own request model and
gives the framework the next of these answers, which is the service's own answer model already; nothing is examined and
nothing kept.
"""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path

import uvicorn
from fastapi import FastAPI

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from service.schemas.answers import ValidationOut
from service.schemas.requests import ValidationRequest


def bare(answers: list[ValidationOut]) -> FastAPI:
    """The application."""
    app = FastAPI()
    following = itertools.cycle(answers)

    @app.post("/v1/validations")
    async def validate(body: ValidationRequest) -> ValidationOut:  # noqa: ARG001 - reading it is what is measured
        return next(following)

    return app


def main() -> int:
    """Serve until a signal comes."""
    answers = [ValidationOut.model_validate(json.loads(line)) for line in sys.stdin]
    uvicorn.run(bare(answers), port=int(sys.argv[1]), loop="uvloop", http="httptools", access_log=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
