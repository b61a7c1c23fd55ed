"""The commands this package adds to `streamcore`."""
