"""The bridge to Spark: one data source, the types on both sides, and a session fit for streams."""
