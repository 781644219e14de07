"""Learner: rows, trie, advantages, loss, optimizer, publishing, checkpoints.

One process per adapter. It reads rollouts from a run directory and writes adapters into it; it
knows nothing of HTTP, harnesses and sandboxes.
"""
