"""Opens a trace file and hands out its tables as pandas DataFrames, each read only when it is asked for."""

import os

# Parallel file systems are often mounted without locks. To be said before HDF5 starts.
os.environ.setdefault("HDF5_USE_FILE_LOCKING", "BEST_EFFORT")

import h5py
import numpy as np
import pandas as pd

SCHEMA_VERSION = 1


class TraceError(Exception):
    """What is wrong with a trace or with the question put to it, in one sentence for the user."""


class Trace:
    """One trace file, open for reading."""

    def __init__(self, path):
        self.path = os.fspath(path)
        self._file = _open(self.path)
        try:
            self._require_our_schema()
        except TraceError:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._file.close()

    @property
    def provenance(self):
        """Root attributes: name -> text."""
        return {name: _text(value) for name, value in self._read(lambda: dict(self._file.attrs)).items()}

    def units(self, table):
        """Column -> unit, "1" for pure numbers."""
        dataset = self._dataset(table)
        return {name: _text(dataset.attrs[f"{name}_unit"]) for name in dataset.dtype.names}

    def table(self, name):
        """All rows of a table."""
        dataset = self._dataset(name)
        return _frame(self._read(lambda: dataset[:]))

    def cells_with_events(self):
        """Numbers of the cells that have events, ascending."""
        return np.unique(self._read(lambda: self._dataset("events").fields("cell")[:]))

    def events(self, cell):
        """Events of one cell, in the order written."""
        dataset = self._dataset("events")
        wanted = self._read(lambda: dataset.fields("cell")[:]) == cell
        rows = np.flatnonzero(wanted)
        if len(rows) == 0:
            return _frame(np.empty(0, dataset.dtype))
        first, last = rows[0], rows[-1] + 1  # a cell is written in one go: few rows of others lie between
        return _frame(self._read(lambda: dataset[first:last])[wanted[first:last]])

    def _dataset(self, name):
        try:
            return self._file[name]
        except KeyError:
            raise TraceError(f"{self.path} has no table /{name}: the file is damaged") from None

    def _read(self, read):
        try:
            return read()
        except (OSError, RuntimeError) as error:
            raise TraceError(f"{self.path} is truncated or damaged ({_first_line(error)})") from error

    def _require_our_schema(self):
        attributes = self._read(lambda: dict(self._file.attrs))
        if _text(attributes.get("format", "")) != "hcp trace":
            raise TraceError(f"{self.path} is an HDF5 file, but not a trace that hcp wrote")
        version = attributes.get("schema_version")
        if version != SCHEMA_VERSION:
            raise TraceError(
                f"{self.path} has schema version {version}; this analysis reads version {SCHEMA_VERSION}, "
                "use the one that belongs to the program that wrote the file"
            )


def _open(path):
    if not os.path.exists(path):
        raise TraceError(f"{path} does not exist")
    if not os.path.isfile(path):
        raise TraceError(f"{path} is not a file")
    if not os.access(path, os.R_OK):
        raise TraceError(f"{path} may not be read by this user")
    with open(path, "rb") as file:
        superblock = file.read(36)
    if not superblock.startswith(b"\x89HDF\r\n\x1a\n"):
        raise TraceError(f"{path} is not an HDF5 file")
    try:
        return h5py.File(path, "r", swmr=_is_being_written(path, superblock))
    except (OSError, RuntimeError) as error:
        raise TraceError(
            f"{path} cannot be opened: it is truncated, damaged, or its job ended before the trace began "
            f"({_first_line(error)})"
        ) from error


def _is_being_written(path, superblock):
    """Whether a writer has the file open in single-writer-multiple-reader mode, or was killed while it had.

    Such files are read with patience: HDF5 (1.10.8) waits for ever for what a truncated one lacks, so the size
    is compared here with the one that the superblock (version 3, HDF5 file format specification, II.A) names.
    """
    if len(superblock) < 36 or superblock[8] != 3:
        return False
    expected, found = int.from_bytes(superblock[28:36], "little"), os.path.getsize(path)
    if found < expected:
        raise TraceError(f"{path} is truncated: {found} of {expected} bytes")
    return bool(superblock[11] & 0b100)


def _frame(rows):
    """A DataFrame with text decoded; few distinct texts in many rows become categories."""
    # Rows that a full disk cut off were announced but never written: nothing but zeros.
    rows = rows[rows.view(np.uint8).reshape(len(rows), -1).any(axis=1)] if len(rows) else rows
    columns = {}
    for name in rows.dtype.names:
        column = rows[name]
        if column.dtype.kind == "S":
            texts, codes = np.unique(column, return_inverse=True)
            column = pd.Categorical.from_codes(codes, [_text(text) for text in texts])
        columns[name] = column
    return pd.DataFrame(columns)


def _text(value):
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else str(value)


def _first_line(error):
    return str(error).splitlines()[0] if str(error) else type(error).__name__
