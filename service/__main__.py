"""``python -m service`` is the ``graphgate`` command."""

from __future__ import annotations

import sys

from service.cli import main

sys.exit(main())
