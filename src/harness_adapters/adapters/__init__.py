"""An adapter outside of the run that made it: finding it, its card, publishing, merging.

`source.find_adapter` takes what a user names (a run, an adapter in it, a published directory) and
says what is known of it: the weights it fits, the budgets it was trained under, its tasks.
"""
