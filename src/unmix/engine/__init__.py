"""The one loop of the project, and what it runs on: blocks, sources, runners, trace, checkpoints, acceleration."""
