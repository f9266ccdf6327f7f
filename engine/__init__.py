"""The domain of graphgate: what a launch asks for, what an engine does with it, whether that is safe, and the proof.

No web framework is imported here, and torch only below ``engine.capture`` in the worker process.
Start reading at :mod:`engine.preflight`.
"""
