"""Command line: one thin file per verb; no logic here."""
