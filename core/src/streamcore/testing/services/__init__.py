"""Real services on loopback, started from packages: nothing but Java and pip is needed."""
