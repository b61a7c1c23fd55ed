"""Protobuf messages to Arrow and back, by the descriptor of their type."""
