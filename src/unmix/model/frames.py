"""Tables for people: columns of numbers as a data frame."""

from __future__ import annotations

from typing import Any

import numpy as np


def frame(columns: dict[str, np.ndarray]) -> Any:
    """A data frame of whichever kind is installed."""
    try:
        import pandas as pd

        return pd.DataFrame(columns)
    except ImportError:
        pass
    try:
        import polars as pl

        return pl.DataFrame(columns)
    except ImportError:
        import pyarrow as pa

        return pa.table(columns)
