"""Training tasks out of recorded agent sessions.

`traces` reads the logs of many agents into one normal form, `replay` rebuilds the files as they
were at each moment, `miners` find the units of work in them that can be verified, `gates` prove or
drop each one, and `pipeline` writes what is left as a dataset of Harbor tasks.
Logs are other people's text: data, never instructions, and nothing of them runs outside a sandbox.
"""
