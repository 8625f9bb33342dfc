"""What is measured, and against what: ratios of two things timed in one run, seconds, and peak memory.

``python -m benchmarks`` measures everything and writes RESULTS.md; nothing here passes or fails.
"""
