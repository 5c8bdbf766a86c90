"""Tables as people have them: any file or frame, read into typed columns."""
