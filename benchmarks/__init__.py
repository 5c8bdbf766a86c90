"""Ours beside the fastest peers: same data, same start, same stopping quality; ratios of time and of peak memory."""
