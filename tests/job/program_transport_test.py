"""The whole program on several ranks, each with a GPU in software: which device a rank takes, which transport moves
tensors and what the run says of it, every scheme.

    program_transport_test.py MPIRUN HCP_ON_SOFTWARE_GPU   (with the repository's root in PYTHONPATH)

Every run verifies itself; the program exits with 9 if a kernel, a call of the CUDA runtime or the order of operations
left a finding.
"""

import os
import pathlib
import re
import unittest

import program_case
import h5py

PROBLEM = ("--seq-length 45 --doc-lengths 29,16 --num-attention-heads 4 --num-query-groups 2 --kv-channels 16 "
           "--attention-mask-type causal --backend cuda --warmup 0 --iterations 1 --verify full").split()
SCHEMES = [(3, "p2p"), (2, "all_gather"), (3, "a2a"), (4, "p2p+a2a"), (4, "a2a+p2p"), (4, "p2p+p2p"),
           (4, "all_gather+a2a"), (4, "p2p+all_gather")]  # tests/attention has them all
DEVICE = r"software GPU \(no hardware\) 0000:[0-9a-f]{2}:00\.0"


class TransportCase(program_case.ProgramCase):
    def passes(self, ranks, *options):
        """The header by name."""
        status = self.run_to_end(ranks, *PROBLEM, *options)
        self.assertEqual(status, 0, self.stdout() + self.stderr())
        self.assertEqual(self.stdout().splitlines()[-1], "PASS")
        return self.header()

    def refusal(self, ranks, *options):
        """The one line that says why the program does not run."""
        status = self.run_to_end(ranks, *PROBLEM, *options)
        self.assertEqual(status, 2, self.stdout() + self.stderr())
        self.assertEqual(len(self.messages()), 1, self.stderr())
        return self.messages()[0]

    def devices(self, ranks, *options):
        """PCI bus ids by rank, and the root attributes of the trace."""
        self.passes(ranks, "--trace", "run.h5", *options)
        with h5py.File(self.trace) as trace:
            texts = [text.decode() for text in trace["ranks"]["device"]]
            attributes = {name: value.decode() for name, value in trace.attrs.items() if isinstance(value, bytes)}
        self.trace.unlink()
        for text in texts:
            self.assertRegex(text, f"^{DEVICE}$")
        return [text.split()[-1] for text in texts], attributes

    def every_scheme(self, transport, pattern):
        self.environment["HCP_SOFTWARE_GPU_SCHEDULE"] = "5"  # any; without one, operations are done when they are asked for
        for ranks, scheme in SCHEMES:
            nodes = ["--simulate-ranks-per-node", 2] if ranks == 4 else []
            with self.subTest(transport=transport, ranks=ranks, scheme=scheme):
                header = self.passes(ranks, "--transport", transport, "--cp-comm-type", scheme, *nodes)
                self.assertRegex(header["transport"], pattern)

    def other_problems(self, transport):
        for options in (["--dtype", "bf16", "--window-size", "7,0"],
                        ["--dtype", "fp16", "--cp-comm-type", "a2a+p2p", "--num-layers", 2],
                        ["--dtype", "bf16", "--grad-comm-dtype", "bf16", "--cp-comm-type", "p2p+p2p"],
                        ["--cp-partition", "contiguous", "--cp-comm-type", "all_gather"],
                        ["--softmax-type", "learnable", "--attention-dropout", "0.2", "--cp-comm-type", "a2a"]):
            with self.subTest(transport=transport, options=options):
                self.passes(4, "--transport", transport, "--simulate-ranks-per-node", 2, *options)


class OneDevice(TransportCase):
    """All ranks share it."""

    def test_every_scheme(self):
        self.every_scheme("staged", r"^staged, through pinned memory: .+")

    def test_other_problems(self):
        self.other_problems("staged")

    def test_auto_takes_staged_and_says_why(self):
        header = self.passes(2)
        self.assertRegex(header["transport"],
                         rf"^staged \(world ranks 0 and 1 share {DEVICE} on {os.uname().nodename}\), through pinned")
        devices, attributes = self.devices(3)
        self.assertEqual(len(set(devices)), 1)
        self.assertEqual(attributes["transport"], "staged")
        self.assertRegex(attributes["staged_path"], "^through pinned memory: ")

    def test_nccl_is_refused(self):
        self.assertRegex(self.refusal(3, "--transport", "nccl"),
                         rf"^--transport nccl: world ranks 0, 1 and 2 share {DEVICE} on {os.uname().nodename}; "
                         "start one rank per device, or use staged$")


class DeviceOfEachRank(TransportCase):
    def setUp(self):
        super().setUp()
        self.environment = {"HCP_SOFTWARE_GPU_DEVICES": "4"}

    def test_every_scheme(self):
        self.every_scheme("nccl", r"^nccl 2\.\d+\.\d+, ")

    def test_other_problems(self):
        self.other_problems("nccl")

    def test_auto_takes_nccl(self):
        devices, attributes = self.devices(4, "--simulate-ranks-per-node", 2)
        self.assertEqual(len(set(devices)), 4)
        self.assertEqual(attributes["transport"], "nccl")
        self.assertRegex(attributes["nccl_version"], r"^2\.\d+\.\d+$")
        self.assertIn(attributes["nccl_order"], self.header()["transport"])
        ranks = re.findall(rf"^#( +\d+){{8}}  .*, {DEVICE}, cpus ", self.stdout(), re.MULTILINE)
        self.assertEqual(len(ranks), 4, self.stdout())

    def test_levels_one_after_the_other(self):
        header = self.passes(4, "--simulate-ranks-per-node", 2, "--transport", "nccl", "--serialize-levels")
        self.assertRegex(header["transport"], "serialized")

    def test_more_ranks_than_devices(self):
        self.environment["HCP_SOFTWARE_GPU_DEVICES"] = "2"
        devices, attributes = self.devices(4)
        self.assertEqual(devices[:2], devices[2:])
        self.assertEqual(len(set(devices)), 2)
        self.assertEqual(attributes["transport"], "staged")

    @unittest.skipUnless({0, 1} <= os.sched_getaffinity(0), "CPUs 0 and 1 are needed")
    def test_the_nearest_device_is_taken(self):
        # A made-up machine for hwloc: CPU 0 is near the second device, CPU 1 near the first.
        machine = pathlib.Path(__file__).with_name("two_packages.xml").resolve()
        self.before_program = ["sh", "-c", f'HWLOC_XMLFILE={machine} exec taskset -c $OMPI_COMM_WORLD_RANK "$@"', "sh"]
        self.assertEqual(self.devices(2)[0], ["0000:11:00.0", "0000:10:00.0"])

    def test_visible_devices_are_respected(self):
        self.environment["CUDA_VISIBLE_DEVICES"] = "2"
        devices, attributes = self.devices(2)
        self.assertEqual(len(set(devices)), 1)
        self.assertEqual(attributes["transport"], "staged")

    def test_ranks_that_are_given_one_device_each(self):
        # As Slurm binds them: every rank counts its own as the first.
        self.before_program = ["sh", "-c", 'CUDA_VISIBLE_DEVICES=$((3 - OMPI_COMM_WORLD_RANK)) exec "$@"', "sh"]
        devices, attributes = self.devices(4)
        self.assertEqual(devices, sorted(devices, reverse=True))
        self.assertEqual(len(set(devices)), 4)
        self.assertEqual(attributes["transport"], "nccl")


if __name__ == "__main__":
    program_case.main()
