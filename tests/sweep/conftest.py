from training.conftest import coins, small

__all__ = ["coins", "small"]
