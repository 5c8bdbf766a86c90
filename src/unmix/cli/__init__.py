"""The command line: files in, answers that people read, files out."""
