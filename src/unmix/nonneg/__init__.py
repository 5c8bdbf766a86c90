"""Non-negative factors: rows are sums of parts, and nothing cancels."""
