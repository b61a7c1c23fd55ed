"""The interactive prompt of `streamcore sql`."""
