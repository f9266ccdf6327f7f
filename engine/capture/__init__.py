"""Proof on a device: a supervised child process captures graphs and compares replay with eager.

Only ``job``, ``report`` and ``supervisor`` may be imported from outside; they need no torch.
"""
