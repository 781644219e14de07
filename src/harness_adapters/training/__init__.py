"""Training: the loop that samples groups, hands them to a learner and publishes adapters."""
