"""Files in and out: rows written as they come, never half a file."""
