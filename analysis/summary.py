"""The table of a run, and where its time went, from the trace alone."""

import pandas as pd

from analysis.trace import TraceError

KINDS = ("compute", "post", "wait", "pack", "copy")


def print_summary(trace):
    """Prints provenance, one row per finished cell, the reasons of those not done, the cells that a stopped or
    killed job left unfinished, and time per phase."""
    cells, unfinished = result_table(trace), unfinished_table(trace)
    if len(cells) + len(unfinished) == 0:
        raise TraceError(f"{trace.path}: no cell has finished yet, and none has events")
    for name, text in trace.provenance.items():
        if len(text) <= 160 or name == "command_line":
            print(f"# {name}: {text}")
    if len(cells) > 0:
        print(_formatted(cells))
    for _, row in cells[cells["reason"].astype(str) != ""].iterrows():
        print(f"# cell {row['cell']} {row['state']}: {row['reason']}")
    for _, row in unfinished.iterrows():
        print(
            f"# cell {row['cell']} ({row['tokens']} tokens, {row['scheme']}, {row['pass']}) unfinished: "
            f"{row['iterations']} iterations recorded"
        )
    phases = phase_table(trace, [*cells["cell"], *unfinished["cell"]])
    if len(phases) > 0:
        print("\n# time per iteration, mean over ranks [ms]")
        print(phases.to_string(index=False, float_format="{:.3f}".format))


def result_table(trace):
    """One row per finished cell: /results joined with what /cells says about it."""
    return trace.table("cells").merge(trace.table("results"), on="cell").sort_values("cell")


def unfinished_table(trace):
    """One row per cell that has events and no row in /results: /cells with the number of its iterations."""
    begun = set(trace.cells_with_events()) - set(trace.table("results")["cell"])
    cells = trace.table("cells")
    cells = cells[cells["cell"].isin(begun)].sort_values("cell")
    return cells.assign(iterations=[trace.events(cell)["iteration"].nunique() for cell in cells["cell"]])


def phase_table(trace, cells):
    """Milliseconds that a rank spends in each kind of phase, per cell and pass: the sum over the events of all
    layers, divided by the ranks and iterations that have events."""
    frames = []
    for cell in cells:
        events = trace.events(cell)
        if len(events) == 0:
            continue
        share = 1e3 / (events["rank"].nunique() * events["iteration"].nunique())
        spent = (events["t_end"] - events["t_begin"]) * share
        by_pass = spent.groupby([events["pass"].astype(str), events["kind"].astype(str)]).sum().unstack(fill_value=0.0)
        by_pass = by_pass.reindex(columns=list(KINDS), fill_value=0.0).sort_index(ascending=False)  # fwd first
        frames.append(by_pass.rename_axis(columns=None).reset_index().assign(cell=cell))
    if not frames:
        return pd.DataFrame()
    return pd.concat(frames)[["cell", "pass", *KINDS]]


def _formatted(cells):
    """The columns of the program's own table, as text."""
    milliseconds = {f"{name} ms": cells[f"time_{name}"] * 1e3 for name in ("min", "median", "p95", "max")}
    table = pd.DataFrame(
        {
            "cell": cells["cell"],
            "tokens": cells["tokens"],
            "scheme": cells["scheme"],
            "sizes": cells["sizes"],
            "nodes": cells["nodes"],
            "mask": cells["mask"],
            "dtype": cells["dtype"],
            "pass": cells["pass"],
            **{name: values.map("{:.3f}".format) for name, values in milliseconds.items()},
            "TFLOP/s": cells["tflops_per_rank"].map("{:.4f}".format),
            "MB inside": (cells["bytes_inside"] * 1e-6).map("{:.3f}".format),
            "MB across": (cells["bytes_across"] * 1e-6).map("{:.3f}".format),
            "exposed %": (cells["exposed_fraction"] * 1e2).map("{:.1f}".format),
            "imbalance": cells["imbalance"].map("{:.3f}".format),
            "peak MB min": (cells["peak_memory_min"] * 1e-6).map("{:.2f}".format),
            "peak MB max": (cells["peak_memory_max"] * 1e-6).map("{:.2f}".format),
            "error": cells["error"].map("{:.1e}".format),
            "verify": cells["verification"],
            "verdict": cells["verdict"],
        }
    )
    done = cells["state"].astype(str) == "done"
    table["verdict"] = table["verdict"].astype(str).where(done, cells["state"].astype(str))
    return table.replace("nan", "-").to_string(index=False)
