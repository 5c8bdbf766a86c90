"""What is in a table, as a page that one looks at: a summary, and the evidence for every sentence of it."""

from unmix.reporting.report import Report, report

__all__ = ["Report", "report"]
