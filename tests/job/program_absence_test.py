"""The program where something of a device is missing: it starts, and one line says what.

    program_absence_test.py MPIRUN HCP_ON_SOFTWARE_GPU   (with the repository's root in PYTHONPATH)

In the environment: HCP_PROGRAM, the program without a software GPU; HCP_FAKE_NCCL, a directory with libraries that
call themselves NCCL: old/libnccl.so.2 has the version 2.7.8, hollow/libnccl.so.2 a new one, and neither has more than
that; text/libnccl.so.2 is no library.
"""

import ctypes
import os
import pathlib
import re
import subprocess
import unittest

import program_case

PROBLEM = "--seq-length 24 --num-attention-heads 2 --kv-channels 16 --warmup 0 --iterations 1 --cp-comm-type p2p".split()
BUILT_WITHOUT = "this hcp was built without NCCL"


def reason_of_no_device():
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "there is no CUDA driver here"
    return r"(no CUDA-capable device is detected|the driver is for CUDA \d+\.\d+, this hcp for CUDA \d+\.\d+)"


class WithoutDevice(program_case.ProgramCase):
    """On the machine as it is; one with devices does not show them."""

    def setUp(self):
        super().setUp()
        self.hcp = os.environ["HCP_PROGRAM"]
        self.environment = {"CUDA_VISIBLE_DEVICES": "-1"}

    def test_no_library_of_a_device_is_linked(self):
        section = subprocess.run(["readelf", "--dynamic", self.hcp], capture_output=True, text=True, check=True).stdout
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", section)
        self.assertTrue(any(name.startswith("libc.so") for name in needed), needed)
        self.assertEqual([name for name in needed if re.match("lib(cu|nccl|nv)", name)], [])

    def test_it_starts(self):
        version = subprocess.run([self.hcp, "--version"], capture_output=True, text=True, check=True).stdout
        self.assertRegex(version, r"(?m)^CUDA: .+\nNCCL: .+$")

    def test_auto_computes_on_the_host(self):
        self.assertEqual(self.run_to_end(2, *PROBLEM), 0, self.stderr())
        self.assertRegex(self.header()["back end"], rf"^cpu \(no device answers: {reason_of_no_device()}\)$")
        self.assertEqual(self.header()["transport"], "mpi")

    def test_whoever_wants_a_device_is_told(self):
        for option in ("--backend cuda", "--attention-kernel cuda", "--transport staged", "--transport nccl"):
            with self.subTest(option):
                self.assertEqual(self.run_to_end(2, *PROBLEM, *option.split()), 2, self.stderr())
                self.assertEqual(len(self.messages()), 1, self.stderr())
                self.assertRegex(self.messages()[0], rf"^{option}: no device answers: {reason_of_no_device()}; use \w+$")


class DriverWithoutDevice(program_case.ProgramCase):
    def test_whoever_wants_a_device_is_told(self):
        self.environment = {"CUDA_VISIBLE_DEVICES": ""}
        self.assertEqual(self.run_to_end(2, *PROBLEM, "--backend", "cuda"), 2, self.stderr())
        self.assertEqual(self.messages(), ["--backend cuda: no device answers: no CUDA-capable device is detected; use cpu"])


class WithoutNccl(program_case.ProgramCase):
    """Two ranks with a device of their own."""

    def setUp(self):
        super().setUp()
        self.environment = {"HCP_SOFTWARE_GPU_DEVICES": "2"}

    def take_nccl(self, directory):
        """For what the program loads from now on."""
        self.environment["LD_LIBRARY_PATH"] = f"{directory}:{os.environ.get('LD_LIBRARY_PATH', '')}"

    def require_reason(self, reason):
        """Of a refusal, if the user insists; else of the choice."""
        reason = f"({reason}|{BUILT_WITHOUT})"
        self.assertEqual(self.run_to_end(2, *PROBLEM, "--backend", "cuda", "--transport", "nccl"), 2, self.stderr())
        self.assertEqual(len(self.messages()), 1, self.stderr())
        who = f"NCCL cannot be used by world rank 0 on {os.uname().nodename}"
        self.assertRegex(self.messages()[0], f"^--transport nccl: {who}: {reason}; every rank needs the same NCCL, 2.14 or later, or "
                         "use staged$")
        self.assertEqual(self.run_to_end(2, *PROBLEM, "--backend", "cuda"), 0, self.stdout() + self.stderr())
        self.assertRegex(self.header()["transport"], rf"^staged \({who}: {reason}\), ")

    def test_no_library(self):
        self.take_nccl(pathlib.Path(os.environ["HCP_FAKE_NCCL"]) / "text")
        self.require_reason(r"NCCL cannot be loaded: .*libnccl\.so\.2: file too short.*")

    def test_too_old_a_library(self):
        self.take_nccl(pathlib.Path(os.environ["HCP_FAKE_NCCL"]) / "old")
        self.require_reason(r"libnccl\.so\.2 is NCCL 2\.7\.8; 2\.\d+\.\d+ is the first that .+")

    def test_a_library_that_lacks_a_function(self):
        self.take_nccl(pathlib.Path(os.environ["HCP_FAKE_NCCL"]) / "hollow")
        self.require_reason(r"libnccl\.so\.2 has no nccl\w+")

    def test_whoever_does_not_need_it_does_not_load_it(self):
        self.take_nccl(pathlib.Path(os.environ["HCP_FAKE_NCCL"]) / "old")
        self.assertEqual(self.run_to_end(2, *PROBLEM, "--backend", "cuda", "--transport", "staged"), 0, self.stderr())
        self.assertRegex(self.header()["transport"], "^staged, ")


if __name__ == "__main__":
    program_case.main()
