"""The whole program with its CUDA back end on a GPU in software: choice of the back end, masks, types, softmax terms,
the trace.

    program_device_test.py MPIRUN HCP_ON_SOFTWARE_GPU   (with the repository's root in PYTHONPATH)

Every run verifies itself; the program exits with 9 if a kernel or a call of the CUDA runtime left a finding.
"""

import re
import unittest

import program_case
import h5py
import numpy as np

PROBLEM = ("--seq-length 96 --num-attention-heads 4 --num-query-groups 2 --kv-channels 32 --warmup 0 --iterations 2 "
           "--verify full").split()


class Device(program_case.ProgramCase):
    def passes(self, ranks, *options):
        """Header lines by name."""
        status = self.run_to_end(ranks, *PROBLEM, *options)
        said = self.stdout() + self.stderr()
        self.assertEqual(status, 0, said)
        self.assertIn("PASS", self.stdout())
        return self.header()

    def launches(self):
        """Of all ranks."""
        return sum(int(count) for count in re.findall(r"software GPU[^:]*: (\d+) launches", self.stderr()))

    def test_auto_takes_the_device(self):
        header = self.passes(1, "--dtype", "bf16", "--attention-mask-type", "causal")
        self.assertEqual(header["back end"], "cuda")
        self.assertIn("cuda (software GPU (no hardware))", header["kernel"])
        self.assertGreater(self.launches(), 4)

    def test_types_and_masks(self):
        for dtype in ("fp32", "bf16", "fp16"):
            for mask in (["no_mask"], ["causal"], ["causal", "--window-size", "10,0"]):
                with self.subTest(dtype=dtype, mask=mask):
                    self.passes(1, "--backend", "cuda", "--dtype", dtype, "--attention-mask-type", *mask)

    def test_softmax_terms(self):
        header = self.passes(1, "--softmax-type", "learnable", "--attention-dropout", "0.2", "--return-max-logit", "--dtype",
                             "bf16", "--num-layers", "2")
        self.assertEqual(header["back end"], "cuda")
        on_device = re.findall(r"^(?:# )?max logit of each head.*$", self.stdout(), re.MULTILINE)
        self.assertEqual(len(on_device), 2)
        self.passes(1, "--softmax-type", "learnable", "--attention-dropout", "0.2", "--return-max-logit", "--dtype", "bf16",
                    "--num-layers", "2", "--backend", "cpu")
        on_host = re.findall(r"^(?:# )?max logit of each head.*$", self.stdout(), re.MULTILINE)
        numbers = [[float(x) for x in line.partition(":")[2].split()] for line in on_device + on_host]
        np.testing.assert_allclose(numbers[:2], numbers[2:], rtol=1e-5)

    def test_two_ranks_beside_each_other(self):
        # Nothing is moved between them, so nobody looks for NCCL.
        header = self.passes(2, "--context-parallel-size", "1", "--backend", "cuda", "--transport", "nccl")
        self.assertEqual(header["back end"], "cuda")
        self.assertTrue(header["transport"].startswith("none"), header["transport"])

    def test_phases_and_memory(self):
        self.passes(1, "--backend", "cuda", "--trace", "run.h5", "--num-layers", "2")
        with h5py.File(self.trace) as trace:
            events = trace["events"][()]
        self.assertTrue((events["t_end"] >= events["t_begin"]).all())
        order = np.argsort(events["t_begin"], kind="stable")
        self.assertTrue((events["t_begin"][order][1:] >= events["t_end"][order][:-1]).all(), "phases overlap")
        compute = events[events["kind"] == b"compute"]
        for iteration in range(2):
            for layer in range(2):
                chosen = compute[(compute["iteration"] == iteration) & (compute["layer"] == layer)]
                self.assertGreaterEqual(len(chosen), 4, "forward, its end, delta, backward")
        on_device = self.column("mem_max_MB")
        self.passes(1, "--backend", "cpu", "--num-layers", "2")
        self.assertEqual(on_device, self.column("mem_max_MB"))

    def column(self, name):
        """Of the table's one row."""
        lines = self.stdout().splitlines()
        heading = next(i for i, line in enumerate(lines) if name in line)
        return lines[heading + 1].split()[lines[heading].lstrip("#").split().index(name)]

    def test_two_memories_are_refused(self):
        status = self.run_to_end(1, *PROBLEM, "--backend", "cuda", "--attention-kernel", "cpu")
        self.assertEqual(status, 2)
        self.assertIn("compute in different memory", self.messages()[0])


if __name__ == "__main__":
    program_case.main()
