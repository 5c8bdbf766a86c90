"""Tables as people have them: read, told apart, made into numbers."""

from unmix.table.encoder import TableEncoder
from unmix.table.errors import TableError
from unmix.table.table import Table

__all__ = ["Table", "TableEncoder", "TableError"]
