#!/usr/bin/python3
"""Visible-work rate of masks against one causal document of the same visible area, as `hcp run` reports it.

  mask_rates.py HCP [--ranks 2] [--pairs 3] [WORD ...]     only the cases whose row holds every WORD

Both sides run in turn, so both meet the same state of the machine; a ratio is the median over pairs of neighbouring runs. Both sides
have the same ranks, scheme, partition, heads and type, but for zigzag where a partition would leave one causal document unbalanced.
"""

import argparse
import itertools
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field, replace

import h5py
import numpy

ITERATIONS = 4  # of one run
COLUMNS = ("mask", "ranks", "scheme", "partition", "heads x dim", "dtype", "pass", "imbalance", "GFLOP/s", "causal", "ratio", "least-most")


@dataclass(frozen=True)
class Case:
    name: str
    mask: dict = field(hash=False)  # options that say tokens, documents and mask
    ranks: int = 1
    scheme: str = "p2p"
    partition: str = "zigzag"
    heads: int = 4
    dim: int = 128
    dtype: str = "fp32"
    direction: str = "fwdbwd"

    def options(self):
        return {
            "cp-comm-type": self.scheme,
            "cp-partition": self.partition,
            "num-attention-heads": self.heads,
            "kv-channels": self.dim,
            "dtype": self.dtype,
            "pass": self.direction,
            "threads-per-rank": 1,
            "warmup": 1,
            "verify": "off",  # the tests do that
        } | self.mask

    @property
    def words(self):
        shape = f"{self.heads} x {self.dim}"
        return (self.name, str(self.ranks), self.scheme, self.partition, shape, self.dtype, self.direction)


@dataclass(frozen=True)
class Rate:
    flops: float  # per second and rank
    work: float  # FLOP of all ranks in one iteration
    imbalance: float


def documents(count, tokens):
    return {"seq-length": count * tokens, "doc-lengths": ",".join([str(tokens)] * count)}


def cases(ranks, scratch):
    """Packed documents over several ranks, then every mask on one."""
    packed = documents(64, 512) | {"attention-mask-type": "causal"}
    for dtype, dim, direction in itertools.product(("fp32", "bf16"), (128, 64), ("fwd", "fwdbwd")):
        for scheme, partition in (
            ("p2p", "contiguous"), ("p2p", "balanced"), ("p2p", "zigzag"), ("all_gather", "zigzag"), ("a2a", "zigzag"),
        ):
            yield Case("64 x 512 causal", packed, ranks, scheme, partition, 4, dim, dtype, direction)
    tokens = 8192
    row = {"seq-length": tokens}
    masks = {
        "window 256": row | {"attention-mask-type": "causal", "window-size": "256,0"},
        "window 128,128": row | {"attention-mask-type": "sliding_window", "window-size": "128,128"},
        "prefix_lm 2048": row | {"attention-mask-type": "prefix_lm", "prefix-lengths": 2048},
        "block_causal 32": row | {"attention-mask-type": "block_causal", "mask-block-size": 32},
        "block_diffusion 32": row | {"attention-mask-type": "block_diffusion", "mask-block-size": 32},
        "padding 3/4": documents(4, 2048) | {"attention-mask-type": "padding_causal", "doc-valid-lengths": "1536,1536,1536,1536"},
        "random intervals": row | {"attention-mask-type": "intervals", "mask-file": random_intervals(scratch, tokens)},
        "160 x 51 causal": documents(160, 51) | {"attention-mask-type": "causal"},
    }
    for (name, mask), dtype, direction in itertools.product(masks.items(), ("fp32", "bf16"), ("fwd", "fwdbwd")):
        yield Case(name, mask, dtype=dtype, direction=direction)


def random_intervals(scratch, tokens):
    """Runs of 1 to 64 queries that see two random ranges each."""
    draw = random.Random(0)
    rows = []
    while len(rows) < tokens:
        bounds = sorted(draw.randrange(tokens + 1) for _ in range(4))
        rows += [bounds] * draw.randrange(1, 65)
    path = f"{scratch}/intervals.h5"
    with h5py.File(path, "w") as file:
        file["intervals"] = numpy.array(rows[:tokens], dtype=numpy.int64)
    return path


def visible_pairs(hcp, case, known):
    """Of one head, as hcp counts them in its FLOP."""
    if case.name not in known:
        small = replace(case, ranks=1, heads=1, dim=8, dtype="fp32", direction="fwd")
        known[case.name] = run(hcp, small, 1).work / (2 * 2 * small.dim)
    return known[case.name]


def causal_like(case, pairs):
    """One causal document with about as many visible pairs."""
    partition = "zigzag" if case.partition == "contiguous" else case.partition
    mask = {"seq-length": round((2 * pairs) ** 0.5), "attention-mask-type": "causal"}
    return replace(case, name="causal", mask=mask, partition=partition)


def run(hcp, case, iterations):
    launch = f'source "{pathlib.Path(__file__).resolve().parents[2]}/jobs/mpi_environment.sh" && hcp_mpirun "$@"'
    with tempfile.TemporaryDirectory(prefix="hcp_masks_") as scratch:
        trace = f"{scratch}/run.h5"
        options = case.options() | {"iterations": iterations, "trace": trace}
        words = [str(word) for name, value in options.items() for word in (f"--{name}", value)]
        job = subprocess.run(
            ["bash", "-c", launch, "bash", str(case.ranks), str(hcp), "run", *words],
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
        )
        if job.returncode != 0:
            raise RuntimeError(f"hcp run ended with status {job.returncode}:\n{job.stdout}{job.stderr}")
        with h5py.File(trace, "r") as file:
            result = file["results"][0]
    flops = float(result["tflops_per_rank"]) * 1e12
    return Rate(flops, flops * float(result["time_median"]) * case.ranks, float(result["imbalance"]))


def compare(hcp, case, pairs, known):
    causal = causal_like(case, visible_pairs(hcp, case, known))
    rates = [(run(hcp, case, ITERATIONS), run(hcp, causal, ITERATIONS)) for _ in range(pairs)]
    ratios = [masked.flops / dense.flops for masked, dense in rates]
    return (
        *case.words,
        f"{rates[0][0].imbalance:.3f}",
        f"{statistics.median(masked.flops for masked, _ in rates) * 1e-9:.1f}",
        f"{statistics.median(dense.flops for _, dense in rates) * 1e-9:.1f}",
        f"{100 * statistics.median(ratios):.0f} %",
        f"{100 * min(ratios):.0f}-{100 * max(ratios):.0f}",
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hcp", type=pathlib.Path, help="the program")
    parser.add_argument("--ranks", type=int, default=2, help="of packed documents (default 2)")
    parser.add_argument("--pairs", type=int, default=3, help="of runs per case (default 3)")
    parser.add_argument("words", nargs="*", help="only the cases whose row holds each of them")
    arguments = parser.parse_intermixed_args()
    print("| " + " | ".join(COLUMNS) + " |\n" + "|---" * len(COLUMNS) + "|")
    known = {}
    with tempfile.TemporaryDirectory(prefix="hcp_masks_") as scratch:
        for case in cases(arguments.ranks, scratch):
            if all(word in case.words for word in arguments.words):
                print("| " + " | ".join(str(cell) for cell in compare(arguments.hcp, case, arguments.pairs, known)) + " |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
