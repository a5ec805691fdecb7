"""timing_table.py TIMES...: lines of "what, mask, milliseconds, TFLOP/s", with the share of the fastest matrix product."""

import pathlib
import sys

rows = []
for path in map(pathlib.Path, sys.argv[1:]):
    if path.exists():  # nothing is left by what was cut off at once
        rows += [line.split("\t") for line in path.read_text().splitlines()]
gemm = max((float(rate) for what, _, _, rate in rows if what.startswith("gemm")), default=None)
print("what", "mask", "ms", "TFLOP/s", "% of gemm", sep="\t")
for what, mask, milliseconds, rate in rows:
    share = "not measured" if gemm is None else f"{100 * float(rate) / gemm:.1f}"
    print(what, mask, milliseconds, rate, share, sep="\t")
