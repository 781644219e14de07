"""Ablations: one run for each combination of settings, compared on the same held-out tasks.

`grid` says which runs there are, `directory` keeps them, `play` trains and evaluates what is
missing, `table` reads what came out of it. A cell is an ordinary run directory, and an evaluation
of several cells an ordinary evaluation: every verb works on both.
"""
