"""Avro datums to Arrow and back: a native path, and an exact one that explains every rejection."""
