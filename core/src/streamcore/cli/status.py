"""What the exit status of a command means."""

OK = 0
FAILED = 1
"""A check found something wrong, or a job failed."""
BAD_INPUT = 2
INTERRUPTED = 130
