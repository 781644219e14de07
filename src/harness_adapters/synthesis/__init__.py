"""Tasks from recorded agent sessions: readers, replay, miners, gates, the dataset.

A reader gives sessions in one normal form, replay gives the files at each moment, a miner gives
candidates, the gates prove or drop each one, and what is left is written in Harbor format. This
package knows nothing of training.
"""
