"""Columns of mixed kinds: files read, columns named for what they are, and encoded as numbers.

- `read_table`, `table_batches`: a CSV or Parquet file, all of it or batch by batch.
- `scan_csv`, `scan_parquet`: files of any size as a source for `fit` and `predict`.
- `scan_dask`, `scan_spark`: a data frame of Dask or Spark, or a table of a session by its name, as a source.
- `TableSchema`, `ColumnSchema`: what the columns are.
- `TableEncoder`: columns as a matrix of numbers.
"""

from typing import TYPE_CHECKING

from separatrix.lazy import lazy_names

if TYPE_CHECKING:
    from separatrix.tables.columns import ColumnSchema
    from separatrix.tables.encoder import TableEncoder
    from separatrix.tables.reading import read_table, table_batches
    from separatrix.tables.scan import scan_csv, scan_parquet
    from separatrix.tables.scan_engines import scan_dask, scan_spark
    from separatrix.tables.schema import TableSchema
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["read_table", "scan_csv", "scan_dask", "scan_parquet", "scan_spark", "table_batches"]
__all__ += ["ColumnSchema", "TableSchema"]
__all__ += ["TableEncoder"]
