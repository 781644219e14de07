"""Rollout: one session from task to scored rollout; pools, groups, retries. No gradients here."""
