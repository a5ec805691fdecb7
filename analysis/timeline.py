"""A picture of one iteration: who computes, sends and waits when."""

import os

import matplotlib

matplotlib.use("Agg")  # a file is written; there may be no screen

import matplotlib.pyplot as plt
from matplotlib.patches import Patch
from matplotlib.transforms import offset_copy

from analysis.trace import TraceError

# Okabe and Ito's colours, told apart with every kind of colour vision; what is exposed stands out.
KIND_COLOURS = {
    "compute": "#0072B2",
    "wait": "#D55E00",
    "pack": "#009E73",
    "copy": "#F0E442",
    "post": "#000000",
}
KIND_LABELS = {
    "compute": "compute",
    "wait": "wait (exposed communication)",
    "pack": "pack rows",
    "copy": "copy and sum rows",
    "post": "post messages",
}
LEVEL_COLOURS = ("#56B4E9", "#CC79A7", "#999999")
PASS_NAMES = {"fwd": "forward", "bwd": "backward"}

TRANSFER = ["rank", "layer", "pass", "level", "step"]


def draw_timeline(trace, output, cell=None, iteration=None):
    """Draws one iteration into `output` (default: the first cell that has events, its last iteration).

    Every rank is a lane: above, what it does; below, thin bars from posting a transfer to the end of the wait
    for it, one colour per level.
    """
    _require_writable(output)
    cell, iteration, events = _select(trace, cell, iteration)
    start = events["t_begin"].min()
    events = events.assign(
        t_begin=(events["t_begin"] - start) * 1e3,
        t_end=(events["t_end"] - start) * 1e3,
        **{"pass": events["pass"].astype(str), "kind": events["kind"].astype(str)},
    )
    ranks = sorted(events["rank"].unique())
    height = min(0.9 + 0.55 * len(ranks), 40.0)
    figure, axes = plt.subplots(figsize=(12, height + 1.6), layout="constrained")
    lane_of = {rank: lane for lane, rank in enumerate(ranks)}
    _draw_phases(axes, events, lane_of)
    levels = _draw_transfers(axes, events, lane_of)
    _mark_passes(axes, events)
    _label(axes, trace, ranks, cell, iteration)
    _add_legend(axes, events, levels)
    try:
        figure.savefig(output, dpi=150)
    except (OSError, ValueError) as error:
        raise TraceError(f"the picture {output} cannot be written: {error}") from error
    finally:
        plt.close(figure)


def _require_writable(output):
    directory = os.path.dirname(output) or "."
    if not os.path.isdir(directory):
        raise TraceError(f"the directory {directory} of the picture does not exist")


def _select(trace, cell, iteration):
    """The cell and iteration to draw, and its events."""
    if cell is None:
        cells = trace.cells_with_events()
        if len(cells) == 0:
            raise TraceError(f"{trace.path} holds no events yet")
        cell = cells[0]
    events = trace.events(cell)
    if len(events) == 0:
        raise TraceError(f"{trace.path} holds no events of cell {cell}")
    last = events["iteration"].max()
    if iteration is None:
        iteration = last
    events = events[events["iteration"] == iteration]
    if len(events) == 0:
        raise TraceError(f"{trace.path} holds no events of iteration {iteration} of cell {cell}; its last is {last}")
    return int(cell), int(iteration), events


def _draw_phases(axes, events, lane_of):
    for kind, colour in KIND_COLOURS.items():
        for rank, rows in events[events["kind"] == kind].groupby("rank"):
            bars = list(zip(rows["t_begin"], rows["t_end"] - rows["t_begin"]))
            # The edge keeps what is shorter than a pixel visible.
            axes.broken_barh(bars, (lane_of[rank] - 0.4, 0.55), facecolor=colour, edgecolor=colour, linewidth=0.4)


def _draw_transfers(axes, events, lane_of):
    """Draws transfers in flight; returns the levels that have any."""
    flights = _numbered(events, "post", "t_begin").merge(_numbered(events, "wait", "t_end"), on=[*TRANSFER, "turn"])
    levels = sorted(flights["level"].unique())
    for (rank, level), rows in flights.groupby(["rank", "level"]):
        bottom = lane_of[rank] + 0.19 + 0.2 * levels.index(level) / len(levels)
        bars = list(zip(rows["t_begin"], rows["t_end"] - rows["t_begin"]))
        axes.broken_barh(bars, (bottom, 0.16 / len(levels)), facecolor=_level_colour(level), linewidth=0)
    return levels


def _numbered(events, kind, time):
    """Events of one kind with their turn among those of the same step: an inner level repeats its steps for every
    block that an outer level lends, so the n-th wait ends the n-th post."""
    rows = events[events["kind"] == kind].sort_values("t_begin")[[*TRANSFER, "t_begin", "t_end"]]
    return rows.assign(turn=rows.groupby(TRANSFER).cumcount())[[*TRANSFER, "turn", time]]


def _mark_passes(axes, events):
    for name, rows in events.groupby("pass"):
        begin = rows["t_begin"].min()
        if begin > 0:
            axes.axvline(begin, color="0.4", linewidth=0.8, linestyle="--")
        axes.annotate(
            PASS_NAMES.get(name, name), (begin, 1), (3, 3), xycoords=("data", "axes fraction"),
            textcoords="offset points", color="0.3", fontsize=9,
        )


def _label(axes, trace, ranks, cell, iteration):
    nodes = trace.table("ranks").set_index("rank")["node"]
    every = -(-len(ranks) // 64)  # more labels than that run into each other
    lanes = range(0, len(ranks), every)
    axes.set_yticks(list(lanes), [f"rank {ranks[lane]}, node {nodes.get(ranks[lane], '?')}" for lane in lanes])
    axes.set_ylim(len(ranks) - 0.45, -0.55)  # rank 0 on top
    axes.margins(x=0.005)
    axes.set_xlabel("time since the iteration began [ms]")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    cells = trace.table("cells").set_index("cell")
    title = f"cell {cell}, iteration {iteration}"
    if cell in cells.index:
        row = cells.loc[cell]
        title = f"{row['scheme']} ({row['sizes']}), {row['mask']}, {row['tokens']} tokens, {row['dtype']} — {title}"
    axes.set_title(title, loc="left", pad=18, fontsize=11)


def _add_legend(axes, events, levels):
    present = set(events["kind"])
    entries = [Patch(color=colour, label=KIND_LABELS[kind]) for kind, colour in KIND_COLOURS.items() if kind in present]
    entries += [Patch(color=_level_colour(level), label=f"transfer in flight, level {level}") for level in levels]
    below_axis_label = offset_copy(axes.transAxes, axes.figure, y=-38, units="points")
    axes.legend(
        handles=entries, loc="upper center", bbox_to_anchor=(0.5, 0), bbox_transform=below_axis_label, ncols=4,
        frameon=False, fontsize=9,
    )


def _level_colour(level):
    return LEVEL_COLOURS[min(max(int(level), 0), len(LEVEL_COLOURS) - 1)]
