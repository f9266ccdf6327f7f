"""Launch forms, guards, policy, the whole preflight."""
