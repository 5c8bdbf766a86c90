"""Sources turn any input into random access of rows; `as_source` is the one entry point.

========================================================  ===========================================================
input                                                     what is held
========================================================  ===========================================================
NumPy array, list of lists                                the array itself; other dtypes are converted block by block
scipy.sparse                                              the CSR matrix (other formats are converted once)
pandas, polars, any narwhals frame, Arrow table, stream   the frame's own columns, as an Arrow table
`.npy`, `numpy.memmap`                                    nothing: mapped
`.npz`                                                    the sparse matrix
`.parquet`, a folder of them                              where row groups begin
`.csv`, `.tsv`                                            where every megabyte's first row begins
`.csv.gz`, `.tsv.gz`                                      nothing: read in order
`.feather`, `.arrow`                                      nothing: mapped
`.zarr`, Zarr arrays, h5py datasets, what has slices      nothing: read in slabs of whole chunks
a function that returns an iterator of 2-d blocks         nothing: read in order
dask.array, dask.dataframe                                the collection
========================================================  ===========================================================

Columns must be numbers: integers, floats, decimals, truth values, categories of these. A null is NaN. float32 and
float16 give float32, everything else float64. In a CSV file the first line is the header unless all of it is numbers,
and empty cells, `?`, `NA`, `null` and their like are missing values.

An entry that a sparse matrix does not hold is zero, unless the source says that it was not observed
(`as_source(X, absent="unobserved")`, `triples`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from unmix.engine.sources.arrays import Array, Csr, Slabs
from unmix.engine.sources.base import Columns, Source
from unmix.engine.sources.stream import Factory

__all__ = ["Source", "as_source"]

KNOWN = (".npy", ".npz", ".parquet", ".csv", ".csv.gz", ".tsv", ".tsv.gz", ".feather", ".arrow", ".zarr")


def as_source(X: Any, *, columns: Columns | None = None, absent: str | None = None) -> Source:
    """Rows of X, whatever X is.

    Parameters
    ----------
    X : array, sparse matrix, data frame, Arrow table, path, function or Dask collection
        See the table in the documentation of `unmix.engine.sources`.
    columns : list of str or int, optional
        The columns to read, by name or position; all of them by default.
    absent : {"zero", "unobserved"}, optional
        What an entry that a sparse X does not hold means; zero by default. Dense rows hold every entry (and NaN is
        not observed), so this changes nothing for them.

    Returns
    -------
    source : Source
        What every model takes in place of X.

    Examples
    --------
    >>> import numpy as np
    >>> from unmix import as_source
    >>> source = as_source(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), columns=[1])
    >>> source.n, source.d
    (3, 1)
    >>> source.read(1, 3)
    array([[4.],
           [6.]])
    """
    source = X if isinstance(X, Source) else source_of(X, columns)
    return source if absent is None else source.reading(absent)


def source_of(X: Any, columns: Columns | None) -> Source:
    """The source for an X that is not one yet."""
    if isinstance(X, np.matrix):
        raise TypeError("np.matrix is not supported. Please convert to a numpy array with np.asarray.")
    if isinstance(X, np.ndarray):
        return Array(X, columns)
    if sp.issparse(X):
        return Csr(X, columns)
    if isinstance(X, (str, Path)):
        return file_source(Path(X).expanduser(), columns)
    if package(X) in ("dask", "dask_expr"):
        from unmix.engine.sources.lazy import dask_source

        return dask_source(X, columns)
    if isinstance(X, (list, tuple)):
        return Array(list_rows(X), columns)
    return object_source(X, columns)


def object_source(X: Any, columns: Columns | None) -> Source:
    """Everything that is neither NumPy, SciPy, Dask nor a path: told apart by what it can do."""
    if not callable(X) or hasattr(X, "shape"):
        if package(X) not in ("builtins", "zarr", "h5py"):
            from unmix.engine.sources.arrow import frame_source

            source = frame_source(X, columns)
            if source is not None:
                return source
        if hasattr(X, "shape") and hasattr(X, "__getitem__") and is_dtype(getattr(X, "dtype", None)):
            if len(X.shape) == 2 and getattr(X, "chunks", None):
                return Slabs(X, columns)
            return Array(X, columns)
        if hasattr(X, "__array__"):
            return Array(np.asarray(X), columns)
    if callable(X):
        return Factory(X, columns)
    if np.isscalar(X):
        return Array(np.asarray(X), columns)  # which says that it is not 2-d
    if hasattr(X, "__next__"):
        raise TypeError(
            f"X is a {type(X).__name__}, which can be read only once; pass a function that returns a new one each time "
            "it is called, such as lambda: blocks()"
        )
    raise TypeError(
        f"X is a {type(X).__name__}, which cannot be read as rows; pass a 2-d array, a sparse matrix, a data frame, an "
        "Arrow table, a Dask collection, a function that returns an iterator of 2-d blocks, or a path "
        f"({', '.join(KNOWN)})"
    )


def file_source(path: Path, columns: Columns | None) -> Source:
    """The source for a file or folder, by its extension."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file {str(path)!r} (looked from {Path.cwd()})")
    name = path.name.lower()
    if path.is_dir():
        return folder_source(path, columns)
    if name.endswith(".npy"):
        return npy_source(path, columns)
    if name.endswith(".npz"):
        return npz_source(path, columns)
    if name.endswith((".parquet", ".pq")):
        from unmix.engine.sources.columnar import Parquet

        return Parquet([path], columns, str(path))
    if name.endswith((".feather", ".arrow", ".ipc")):
        from unmix.engine.sources.columnar import Ipc

        return Ipc(path, columns)
    if name.endswith((".csv", ".tsv")):
        from unmix.engine.sources.text import Csv

        return Csv(path, columns)
    if name.endswith((".csv.gz", ".tsv.gz")):
        from unmix.engine.sources.text import CsvGz

        return CsvGz(path, columns)
    raise ValueError(
        f"{path} has an unknown extension {path.suffix!r}; known are {', '.join(KNOWN)} and folders of Parquet"
    )


def folder_source(path: Path, columns: Columns | None) -> Source:
    """A Zarr array, or the Parquet files below a folder."""
    from unmix.engine.sources.columnar import Parquet, parquet_files

    if path.suffix == ".zarr" or (path / "zarr.json").exists() or (path / ".zarray").exists():
        import zarr

        try:
            x = zarr.open(str(path), mode="r")
        except Exception as e:
            raise ValueError(f"{path} cannot be opened as Zarr; it looks incomplete or damaged ({e})") from e
        if hasattr(x, "shape"):
            return Slabs(x, columns)
        inside = ", ".join(sorted(k for k, _ in x.arrays())) or "none"
        raise ValueError(f"{path} is a Zarr group, not an array; pass the path of one of its arrays ({inside})")
    files = parquet_files(path)
    if not files:
        raise ValueError(f"the folder {path} holds neither Parquet files nor a Zarr array")
    return Parquet(files, columns, str(path))


def npy_source(path: Path, columns: Columns | None) -> Source:
    """A mapped `.npy` file."""
    try:
        x = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError) as e:
        if "object" in str(e).lower():
            raise ValueError(f"{path} holds Python objects, which are not read from files; save X.astype(float)") from e
        raise ValueError(f"{path} looks truncated or is not a .npy file ({e})") from e
    return Array(x, columns, path=str(path.absolute()))


def npz_source(path: Path, columns: Columns | None) -> Source:
    """A sparse matrix as scipy.sparse.save_npz writes it, or the only 2-d array in a NumPy archive."""
    import zipfile
    import zlib

    try:
        with np.load(path, allow_pickle=False) as archive:
            keys = list(archive.files)
            if "format" in keys and "data" in keys:
                return Csr(sp.load_npz(path), columns, str(path))
            arrays = [archive[key] for key in keys]
            tables = [x for x in arrays if x.ndim == 2] or arrays
            if len(tables) == 1:
                return Array(tables[0], columns)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as e:
        raise ValueError(f"{path} looks truncated or is not a .npz file ({e})") from e
    raise ValueError(
        f"{path} holds {len(tables)} arrays to choose from ({', '.join(keys)}); save one alone, by "
        "scipy.sparse.save_npz or numpy.save"
    )


def list_rows(X: Any) -> np.ndarray:
    """A list of rows as an array."""
    try:
        x = np.asarray(X)
    except ValueError as e:
        sizes = [len(row) if hasattr(row, "__len__") else -1 for row in X]
        odd = next((i for i, s in enumerate(sizes) if s != sizes[0]), None)
        if odd is None:
            raise
        raise ValueError(
            f"X is a list whose rows differ in length: row 0 has {sizes[0]} values, row {odd} has {sizes[odd]}; "
            "fill the gaps with NaN"
        ) from e
    if x.dtype.kind in "US" and x.ndim == 2:  # a number beside text made everything text: find the text
        return np.array([list(row) for row in X], dtype=object)
    return x


def is_dtype(t: Any) -> bool:
    """Whether t is a dtype that NumPy knows."""
    try:
        np.dtype(t)
    except TypeError:
        return False
    return t is not None


def package(x: Any) -> str:
    """The package that the type of x comes from."""
    return type(x).__module__.partition(".")[0]
