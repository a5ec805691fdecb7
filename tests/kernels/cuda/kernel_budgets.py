"""Registers and static shared memory of every device kernel against the budgets in kernel_budgets.txt.

  kernel_budgets.py BUDGETS NVCC OBJECT...            exit status 1 and every difference, if there is one
  kernel_budgets.py --write BUDGETS NVCC OBJECT...    writes the budgets anew

OBJECT.ptxas is what ptxas -v said when the object was built, NVCC the version. Budgets hold for the version in their
second line and the architectures they name: with another version, or without one of the architectures, exit status 77.
Names are those of C++, without their parameters.
"""
import re
import subprocess
import sys
from pathlib import Path

_HEADER = "# kernel; architecture; registers of a thread; static shared memory of a block in bytes"
_KERNEL = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


def _lines_of(reports):
    """One line of the budget file per kernel and architecture, sorted."""
    found = []
    for report in reports:
        kernel = None
        for line in Path(report).read_text(encoding="utf-8").splitlines():
            if match := _KERNEL.search(line):
                kernel = match.groups()
            elif (match := _USED.search(line)) and kernel:
                shared = _SHARED.search(line)
                found.append((*kernel, match[1], shared[1] if shared else "0"))
                kernel = None
    names = "\n".join(symbol for symbol, *_ in found)
    readable = subprocess.run(["c++filt"], input=names, text=True, capture_output=True, check=True).stdout.splitlines()
    return sorted("; ".join((_short(name), *numbers)) for name, (_, *numbers) in zip(readable, found))


def _short(name):
    """Without `void `, the namespaces and the parameter list."""
    name = name.replace("(anonymous namespace)::", "").replace("hcp::cuda::", "").removeprefix("void ")
    return re.sub(r"\((\w+)\)(?=[\w-])", "", name).split("(")[0]


def _architectures(lines):
    return {line.split("; ")[1] for line in lines}


def main(arguments):
    write = arguments[:1] == ["--write"]
    file, nvcc, *objects = arguments[write:]
    budgets = Path(file)
    measured = _lines_of(Path(f"{name}.ptxas") for name in objects)
    made_with = f"# nvcc {nvcc}"
    if write:
        budgets.write_text("\n".join([_HEADER, made_with, *measured, ""]), encoding="utf-8")
        return 0
    lines = budgets.read_text(encoding="utf-8").splitlines()
    expected = [line for line in lines if not line.startswith("#")]
    if made_with not in lines or _architectures(expected) - _architectures(measured):
        print(f"skipped: the budgets are those of {lines[1][2:]} for {' '.join(sorted(_architectures(expected)))}")
        return 77
    for line in sorted(set(expected) - set(measured)):
        print(f"budget:   {line}")
    for line in sorted(set(measured) - set(expected)):
        print(f"measured: {line}")
    return int(expected != measured)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
