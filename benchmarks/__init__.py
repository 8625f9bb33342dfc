"""What is measured, and against what: every figure is a ratio of two things timed in one run."""
