"""Post-processing of the trace files that hcp writes.

    from analysis import Trace

    with Trace("run.h5") as trace:
        trace.table("results")           # any table as a pandas DataFrame
        trace.events(cell=0)             # the events of one cell

A trace can be read while the job still writes it, and after the job was killed. The tables, their columns and
units are described in src/trace/trace_rows.hpp; every column's unit is an attribute of its table.
"""

from analysis.trace import Trace, TraceError

__all__ = ["Trace", "TraceError"]
