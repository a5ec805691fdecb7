"""Threads and shared memory of a block and registers of a thread of every device kernel, against kernel_budgets.txt.

  kernel_budgets.py BUDGETS NVCC LISTER OBJECT...            exit status 1 and every difference, if there is one
  kernel_budgets.py --write BUDGETS NVCC LISTER OBJECT...    writes the budgets anew

OBJECT.ptxas is what ptxas -v said when the object was built, NVCC the version, LISTER the program list_kernel_entries.
A kernel that is built but in nobody's list is a difference, too. Budgets hold for the version in their second line and
the architectures they name: with another version, or without one of the architectures, exit status 77. Names are those
of C++, without their parameters.
"""
import re
import subprocess
import sys
from pathlib import Path

_HEADER = "# kernel; threads and bytes of shared memory of a block; registers of a thread by architecture"
_KERNEL = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
_USED = re.compile(r"Used (\d+) registers")
_STATIC = re.compile(r"(\d+) bytes smem")


def _registers(reports):
    """Kernel -> architecture -> registers. Shared memory is dynamic: static bytes would not be in LISTER's figure."""
    found = {}
    for report in reports:
        kernel = None
        for line in Path(report).read_text(encoding="utf-8").splitlines():
            if match := _KERNEL.search(line):
                kernel, architecture = match.groups()
            elif (match := _USED.search(line)) and kernel:
                if _STATIC.search(line):
                    sys.exit(f"{kernel} has static shared memory")
                found.setdefault(kernel, {})[architecture] = int(match[1])
                kernel = None
    return found


def _launched(lister):
    """Kernel -> threads, shared bytes."""
    lines = subprocess.run([lister], text=True, capture_output=True, check=True).stdout.splitlines()
    return {name: (int(threads), int(shared)) for name, threads, shared in map(str.split, lines)}


def _lines_of(reports, lister):
    registers = _registers(reports)
    launched = _launched(lister)
    lines = []
    for kernel in sorted(registers.keys() | launched.keys()):
        threads, shared = launched.get(kernel, ("never", "launched"))
        used = ", ".join(f"{arch} {count}" for arch, count in sorted(registers.get(kernel, {}).items()))
        lines.append((kernel, f"{threads}, {shared}; {used or 'not built'}"))
    names = "\n".join(name for name, _ in lines)
    readable = subprocess.run(["c++filt"], input=names, text=True, capture_output=True, check=True).stdout.splitlines()
    return sorted(f"{_short(name)}; {rest}" for name, (_, rest) in zip(readable, lines))


def _short(name):
    """Without `void `, the namespaces and the parameter list."""
    name = name.replace("(anonymous namespace)::", "").replace("hcp::cuda::", "").removeprefix("void ")
    return re.sub(r"\((\w+)\)(?=[\w-])", "", name).split("(")[0]


def _architectures(lines):
    return {use.split()[0] for line in lines for use in line.split("; ")[2].split(", ")}


def main(arguments):
    write = arguments[:1] == ["--write"]
    file, nvcc, lister, *objects = arguments[write:]
    budgets = Path(file)
    measured = _lines_of([Path(f"{name}.ptxas") for name in objects], lister)
    made_with = f"# nvcc {nvcc}"
    if write:
        budgets.write_text("\n".join([_HEADER, made_with, *measured, ""]), encoding="utf-8")
        return 0
    lines = budgets.read_text(encoding="utf-8").splitlines()
    expected = [line for line in lines if not line.startswith("#")]
    if made_with not in lines or not _architectures(expected) <= _architectures(measured):
        print(f"skipped: the budgets are those of {lines[1][2:]} for {' '.join(sorted(_architectures(expected)))}")
        return 77
    for line in sorted(set(expected) - set(measured)):
        print(f"budget:   {line}")
    for line in sorted(set(measured) - set(expected)):
        print(f"measured: {line}")
    return int(expected != measured)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
