"""Laws of the bits: the same ones whoever computes and wherever the rows come from, and after a file."""

from __future__ import annotations

import pickle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from unmix.engine.config import config
from unmix.model import load
from unmix.testing.cases import law
from unmix.testing.compare import close, demand, same_bits
from unmix.testing.problem import Problem


@law("same bits")
def same_bits_on_threads_and_streams(p: Problem) -> None:
    """Serial, on threads, from Parquet, from a NumPy file and from an iterator, a fit gives the same bits.

    Blocks of another size give other sums of rounding errors, and nearly the same parts.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    X = p.X

    def fit(data: Any, jobs: int) -> Any:
        with config(block_rows=32, n_jobs=jobs):
            return p.model().fit(data).parts

    truth = p.fitted(block_rows=32, runner="serial").parts
    with TemporaryDirectory() as folder:
        parquet, file = Path(folder) / "folder", Path(folder) / "x.npy"
        parquet.mkdir()
        for i, part in enumerate(np.array_split(X, 3)):
            table = pa.table({f"c{j}": part[:, j] for j in range(X.shape[1])})
            pq.write_table(table, parquet / f"{i}.parquet", row_group_size=37)
        np.save(file, X)
        for what, data, jobs in (
            ("two threads", X, 2),
            ("three threads", X, 3),
            ("Parquet files", parquet, 2),
            ("a NumPy file", file, 2),
            ("an iterator", lambda: iter(np.array_split(X, 7)), 2),
        ):
            demand(same_bits(truth, fit(data, jobs)), f"{what} give other bits than one thread on an array")
    other = p.fitted(block_rows=10**6).parts
    close(truth, other, rtol=1e-3, what="parts from small blocks and from one block")


@law("same bits", needs="distributed")
def same_bits_on_dask(p: Problem) -> None:
    """On Dask workers, from an array and from a Dask array, a fit and `transform` give the bits of one thread."""
    import dask.array as da

    X, truth = p.X, p.fitted(block_rows=32, runner="serial")
    with p.cluster() as client, config(block_rows=32, runner=client):
        one, two = p.model().fit(X), p.model().fit(da.from_array(X, chunks=(50, -1)))
        demand(same_bits(truth.parts, one.parts), "Dask workers give other bits than one thread")
        demand(same_bits(truth.parts, two.parts), "a Dask array gives other bits than an array")
        demand(np.array_equal(truth.transform(X), one.transform(X)), "transform on Dask workers gives other bits")


@law("files")
def save_load_and_pickle_give_the_same_output(p: Problem) -> None:
    """A model that was saved and loaded, or pickled, gives the same output, parameters and trace."""
    X, model = p.X, p.fitted()
    Z = model.transform(X)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "model.unmix"
        model.save(file)
        back = {"load": p.cls.load(file), "pickle": pickle.loads(pickle.dumps(model))}
        if p.cls.__module__.split(".")[0] == "unmix":  # a file imports no module of others: their class reads it
            back["unmix.load"] = load(file)
    for how, again in back.items():
        demand(np.array_equal(again.transform(X), Z), f"transform gives other bits after {how}")
        demand(again.get_params().keys() == model.get_params().keys(), f"other parameters after {how}")
        demand(again.trace_ == model.trace_, f"another trace_ after {how}")
