"""Kafka tables for streamcore."""
