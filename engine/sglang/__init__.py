"""What an SGLang release does with a launch. Releases are data (``releases/``), decisions are steps (``steps/``)."""
