"""YAML ingestion jobs: these tables into those topics, without a line of SQL."""
