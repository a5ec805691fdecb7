"""Times attention of PyTorch on the CPU against hcp and prints the tables in Markdown. Started by run.sh."""

import argparse
import datetime
import os
import pathlib
import re
import subprocess

import torch

import attention_table
import ring_table
from hcp_attention import LineProgram

SECONDS_PER_CASE = {"attention": 4.0, "ring": 6.0}  # exceeded where even two pairs of windows take longer
INSTRUCTION_SETS = ("avx2", "avx512f", "avx512_bf16", "amx_bf16")  # as lscpu calls those that matter here


def main():
    options = parse_options()
    torch.set_num_threads(options.threads)
    print_machine(options)
    if "attention" in options.tables:
        print_attention(options)
    if "ring" in options.tables:
        print_ring(options)


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", metavar="attention|ring", help="which tables (default both)")
    parser.add_argument("--quick", action="store_true", help="a few cases, one to two minutes")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of each side")
    parser.add_argument("--build", type=pathlib.Path, required=True, help="build directory of hcp")
    options = parser.parse_args()
    options.tables = options.tables or ["attention", "ring"]
    for table in options.tables:
        if table not in SECONDS_PER_CASE:
            parser.error(f"there is no table '{table}'; tables are attention and ring")
    return options


def print_machine(options):
    ours = dict(line.split(": ", 1) for line in _output(options.build / "src/hcp", "--version").splitlines())
    libraries = re.findall("Math Kernel Library Version [0-9.]+|MKL-DNN v[0-9.]+", torch.__config__.show())
    print(f"* machine: {_processor()}, {len(os.sched_getaffinity(0))} cores")
    print(f"* date: {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}")
    built = ", ".join(ours[name] for name in ("compiler", "build type", "CPU instruction set"))
    print(f"* hcp {ours['version']} ({ours['git']}): {built}")
    print(f"* PyTorch {torch.__version__}: {', '.join([torch.backends.cpu.get_cpu_capability(), *libraries])}")


def _processor():
    """Family and model, too: in a virtual machine the name may say little."""
    fields = dict(re.findall(r"^([^:]+):\s*(.*)$", _output("lscpu"), re.MULTILINE))
    known = [name for name in INSTRUCTION_SETS if name in fields.get("Flags", "").split()]
    return f"{fields['Model name']} (family {fields['CPU family']}, model {fields['Model']}; {', '.join(known)})"


def _output(*command):
    environment = {**os.environ, "LC_ALL": "C"}
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout


def print_attention(options):
    print(
        f"\n`scaled_dot_product_attention` against the kernel of hcp, {options.threads} threads each. "
        "GFLOP/s of the visible pairs; ratio: time of PyTorch / time of hcp.\n"
    )
    cases = attention_table.quick_cases() if options.quick else attention_table.all_cases()
    once = options.build / "tests/bench/peers/bench_attention_once"
    with LineProgram([once, options.threads], {"OMP_NUM_THREADS": str(options.threads)}) as program:
        program.receive()  # the instruction set, which is in the head already
        rows = attention_table.attention_rows(program, cases, options.threads, SECONDS_PER_CASE["attention"])
        print_table(attention_table.COLUMNS, rows)


def print_ring(options):
    print(
        f"\nRing attention of PyTorch over gloo against `hcp run --cp-comm-type p2p`, {ring_table.RANKS} ranks of one "
        "thread each. The public entry `context_parallel`, on the CPU:\n"
    )
    cases = ring_table.quick_cases() if options.quick else ring_table.all_cases()
    with ring_table.TorchRing() as ring:
        for said in ring.ask("public")[0].split("; "):
            print(f"* {said}")
        print("\nThe loop below that entry, called with the operators of the CPU:\n")
        rows = ring_table.ring_rows(options.build / "src/hcp", ring, cases, SECONDS_PER_CASE["ring"])
        print_table(ring_table.COLUMNS, rows)


def print_table(columns, rows):
    """Each row as soon as it is measured."""
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}", flush=True)
    ratios = []
    for row in rows:
        print(f"| {' | '.join(str(cell) for cell in row)} |", flush=True)
        ratios.append(float(row[columns.index("ratio")]))
    print(f"\nratio: {min(ratios):.2f} to {max(ratios):.2f}")


if __name__ == "__main__":
    main()
