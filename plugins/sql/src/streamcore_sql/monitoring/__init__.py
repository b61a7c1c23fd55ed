"""Seeing a job run: its figures, where they are shown, and where they are kept."""
