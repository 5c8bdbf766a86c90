import pyarrow as pa


class TableError(ValueError):
    pass


class Raw:
    def __init__(self, t):
        self.t = t
        self.names = t.column_names
        self.schema = t.schema
        self.n = t.num_rows
        self.headed = True
        self.notes = []
        self.index = None
        self.files = []
        self.in_memory = True

    def batches(self, columns=None):
        return (self.t if columns is None else self.t.select(columns)).to_batches()

    def slice(self, a, b, columns=None):
        return (self.t if columns is None else self.t.select(columns)).slice(a, b - a)


def read(source, *, header=None, budget=None):
    import pandas as pd

    if isinstance(source, dict):
        return Raw(pa.table(source))
    if isinstance(source, str):
        source = pd.read_csv(source)
    if isinstance(source, pd.DataFrame):
        return Raw(pa.Table.from_pandas(source, preserve_index=False))
    return Raw(pa.table(source))
