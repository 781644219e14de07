"""The shell: `run.py` walks a program, `words.py` expands its words, `commands/` knows programs."""
