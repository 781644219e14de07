"""Tests that import the agent's code get it at arm's length: it runs in a confined child.

These files are put into the verifier's sandbox (`verify(..., confined=...)`) and need nothing but
Python's standard library. Tests stay as they are: their `import` gives a stand-in.

    sitecustomize.py        loaded at the start of every Python of the verifier
    candidate_stand_in.py   modules, classes and objects that pass each use on to the child
    candidate_values.py     what may cross: plain data, by exact type
    candidate_worker.py     the child: imports the agent's code and does as it is told

The child is confined by `tasks/starter/checkers/confined.py`, which is put beside them.
"""
