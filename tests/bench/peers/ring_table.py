"""Ring attention of torch.distributed over gloo against `hcp run --cp-comm-type p2p`: two ranks of one thread."""

import contextlib
import itertools
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
from dataclasses import replace

from case import Case
from hcp_attention import LineProgram
from windows import alternate, pairs_within

RANKS = 2
ITERATIONS = 3  # of one window; a window of hcp is a job of its own
JOB_START_S = 2.0  # what starting such a job takes, roughly
TOLERANCE = {"fp32": 1e-5, "bf16": 2e-2}
HERE = pathlib.Path(__file__).resolve().parent

COLUMNS = ("heads x dim", "S", "mask", "dtype", "pass", "PyTorch ms", "hcp ms", "ratio", "least-most")


def all_cases():
    return _cases([2048, 8192])


def quick_cases():
    return [case for case in _cases([2048]) if case.backward]


def _cases(lengths):
    # Two heads suffice: messages and work are both proportional to them.
    return [
        Case(2, 128, tokens, dtype, mask, direction)
        for dtype, direction, mask, tokens in itertools.product(
            ("fp32", "bf16"), ("fwd", "fwdbwd"), ("no_mask", "causal"), lengths
        )
    ]


class TorchRing:
    """The ranks of PyTorch, alive as long as this is open."""

    def __enter__(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        shared = {"WORLD_SIZE": RANKS, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": 1}
        with contextlib.ExitStack() as started:
            self._ranks = [
                started.enter_context(
                    LineProgram(
                        [sys.executable, HERE / "ring_worker.py"],
                        {name: str(value) for name, value in {**shared, "RANK": rank}.items()},
                    )
                )
                for rank in range(RANKS)
            ]
            self._started = started.pop_all()
        return self

    def __exit__(self, *error):
        return self._started.__exit__(*error)

    def ask(self, line):
        """The answers of all ranks."""
        for rank in self._ranks:
            rank.send(line)
        return [rank.receive() for rank in self._ranks]

    def seconds(self, calls):
        """Median over the calls of the slowest rank's time, as hcp counts it."""
        by_rank = [[float(word) for word in answer.split()] for answer in self.ask(f"run {calls}")]
        return statistics.median(max(times) for times in zip(*by_rank))


def ring_rows(hcp, torch_ring, cases, budget_s):
    """Yields the cells of one row per case. `hcp`: path of the program."""
    for case in cases:
        torch_ring.ask(f"case {replace(case, tokens=256).words}")
        difference = max(float(answer) for answer in torch_ring.ask("check"))
        if not difference <= TOLERANCE[case.dtype]:
            raise RuntimeError(f"{case}: the ring of PyTorch differs from one rank by {difference:.1e}")
        torch_ring.ask(f"case {case.words}")
        peer_s, hcp_s = torch_ring.seconds(1), seconds_of_hcp(hcp, case, 1)
        pair_s = JOB_START_S + ITERATIONS * peer_s + (1 + ITERATIONS) * hcp_s
        found = alternate(
            lambda: torch_ring.seconds(ITERATIONS),
            lambda: seconds_of_hcp(hcp, case, ITERATIONS),  # noqa: B023  called before the next case
            pairs_within(budget_s, pair_s),
        )
        yield (
            f"{case.heads} x {case.dim}",
            case.tokens,
            case.mask,
            case.dtype,
            case.direction,
            f"{found.peer_s * 1e3:.1f}",
            f"{found.hcp_s * 1e3:.1f}",
            f"{found.ratio:.2f}",
            f"{min(found.ratios):.2f}-{max(found.ratios):.2f}",
        )


def seconds_of_hcp(hcp, case, iterations):
    """Median over the iterations of the slowest rank's time."""
    launch = f'source "{HERE.parents[2]}/jobs/mpi_environment.sh" && hcp_mpirun "$@"'
    with tempfile.TemporaryDirectory(prefix="hcp_peers_") as scratch:
        options = {
            "cp-comm-type": "p2p",
            "seq-length": case.tokens,
            "num-attention-heads": case.heads,
            "kv-channels": case.dim,
            "attention-mask-type": case.mask,
            "dtype": case.dtype,
            "pass": case.direction,
            "threads-per-rank": 1,
            "iterations": iterations,
            "warmup": 1,
            "verify": "off",  # the tests do that
            "trace": f"{scratch}/run.h5",
        }
        words = [str(word) for name, value in options.items() for word in (f"--{name}", value)]
        job = subprocess.run(
            ["bash", "-c", launch, "bash", str(RANKS), str(hcp), "run", *words],
            env={name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"},
            capture_output=True,
            text=True,
        )
    if job.returncode != 0:
        raise RuntimeError(f"hcp run ended with status {job.returncode}:\n{job.stdout}{job.stderr}")
    return _median_ms(job.stdout) * 1e-3


def _median_ms(output):
    """Counted from the right: further left a cell may hold a blank."""
    lines = output.splitlines()
    header = next(number for number, line in enumerate(lines) if "median_ms" in line)
    columns = lines[header].split()
    return float(lines[header + 1].split()[columns.index("median_ms") - len(columns)])
