"""Report: the HTML page and its plots, made from a run directory alone."""
