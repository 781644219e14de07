"""Evaluation: paired plans, statistics, cost. No gradients here.

`plan.PairedPlan` says what to run, `compare.compare` what came out of it, `compare.headline` the
sentence to quote. The modules are imported by name: `compare` needs SciPy, `plan` doesn't.
"""
