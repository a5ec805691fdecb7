"""Random problems through the whole program: each is verified in full, and moves the bytes that were planned.

    program_random_test.py MPIRUN HCP [--cases N] [--seed S]   (with the repository's root in PYTHONPATH)

Case i draws from seed S + i, so that `--cases 1 --seed X` is the case that failed. What a failing case says begins
with the command that repeats it; the mask file that this needs is kept.
"""

import argparse
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

import program_case
import h5py
from random_problem import RandomProblem

SECONDS = 10 * program_case.WAIT_S


def fault_of(command, directory):
    """What is wrong with one run; empty if nothing is."""
    trace = directory / "run.h5"
    try:
        done = subprocess.run(
            [*command, "--trace", str(trace)], capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"not over after {SECONDS} s"
    if done.returncode != 0 or done.stdout.splitlines()[-1] != "PASS":
        said = [line for line in done.stderr.splitlines() if line.startswith("hcp: ")] or done.stderr.splitlines()[-5:]
        return f"exit status {done.returncode}: " + "\n".join(said)
    with h5py.File(trace, "r") as file:
        ledger, (result,) = file["bytes"][:], file["results"][:]
    trace.unlink()
    for what in ("bytes", "messages"):
        if (ledger[f"{what}_counted"] != ledger[f"{what}_planned"]).any():
            return f"{what} counted are not those planned"
    if result["verification"] != b"full" or not result["error"] <= result["tolerance"]:
        return f"PASS with error {result['error']} of {result['tolerance']}, {result['verification'].decode()} verification"
    if not result["imbalance"] >= 1:
        return f"an imbalance of {result['imbalance']}"
    return ""


def run_case(mpirun, hcp, seed):
    """Whether the case holds; says what does not."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix=f"hcp_random_{seed}_"))
    problem = RandomProblem(seed, directory)
    command = [mpirun, "--oversubscribe", "-n", str(problem.ranks), hcp, "run", *problem.options]
    fault = fault_of(command, directory)
    if fault:
        print(f"seed {seed}:\n{shlex.join(command)}\n{fault}", flush=True)
    else:
        shutil.rmtree(directory)
    return not fault


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mpirun")
    parser.add_argument("hcp")
    parser.add_argument("--cases", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    mpirun, hcp = shutil.which(arguments.mpirun), str(pathlib.Path(arguments.hcp).resolve())
    seeds = range(arguments.seed, arguments.seed + arguments.cases)
    failed = [seed for seed in seeds if not run_case(mpirun, hcp, seed)]
    print(f"{len(seeds) - len(failed)} of {len(seeds)} random problems from seed {arguments.seed} hold")
    return 1 if failed or not seeds else 0


if __name__ == "__main__":
    sys.exit(main())
