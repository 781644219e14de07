"""Recorded sessions of many agents, read into one normal form (`session.py`).

`formats/` holds one reader per log format, `sniffing.py` chooses it by a file's content, and
`reading.py` reads files of any size tolerantly: what can't be read is counted, never hidden.
"""
