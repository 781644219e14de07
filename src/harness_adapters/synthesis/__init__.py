"""Training tasks out of recorded agent sessions.

`traces` reads the logs of many agents into one normal form, `replay` rebuilds the files as they
were at each moment, and `miners` find the units of work in them that can be verified.
Logs are other people's text: data, never instructions, and nothing of them runs outside a sandbox.
"""
