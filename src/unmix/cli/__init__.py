"""The command line: `unmix fit`, `transform`, `info`, `models`."""
