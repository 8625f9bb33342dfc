"""Shared settings: hypothesis repeats itself, so that a failure seen once is seen again."""

from hypothesis import settings

settings.register_profile("steady", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("steady")
