"""Mistakes that nobody sees in the numbers: the whole program on GPUs in software, with one planted where it calls CUDA
or NCCL. Each has to be found under every schedule.

    planted_bugs_test.py MPIRUN HCP_ON_SOFTWARE_GPU   (with the repository's root in PYTHONPATH)

The double behaves as if the program had made the mistake (tests/software_gpu/bugs.hpp): what is shown is that the checks
find it in the program's own order of calls, and that the program without it is clean.
"""

import os
import re
import unittest

import program_case

SCHEDULES = (1, 2, 3, 4)
FOUND = 9  # exit status of findings
BUG = "HCP_SOFTWARE_GPU_BUG"
PROBLEM = ("--seq-length 80 --num-attention-heads 4 --num-query-groups 2 --kv-channels 16 --dtype bf16 --backend cuda "
           "--attention-mask-type causal --warmup 0 --iterations 1 --verify full --timeout 10").split()


class PlantedBugs(program_case.ProgramCase):
    def run_under(self, schedule, ranks, options, bug=None):
        """Exit status."""
        os.environ.update(HCP_SOFTWARE_GPU_DEVICES=str(ranks), HCP_SOFTWARE_GPU_SCHEDULE=str(schedule))
        os.environ.pop(BUG, None)
        if bug:
            os.environ[BUG] = bug
        return self.run_to_end(ranks, *PROBLEM, *options)

    def findings(self):
        return sorted(set(re.findall(r"^software GPU: (.*)$", self.stderr(), re.MULTILINE)))

    def check(self, bug, words, *options, ranks=4):
        """The bug is found under every schedule; one of the findings has the words."""
        for schedule in SCHEDULES:
            with self.subTest(bug=bug, schedule=schedule, options=options):
                status = self.run_under(schedule, ranks, options, bug)
                self.assertNotEqual(status, 0, "not found")
                self.assertRegex(self.stderr(), words)
                print(f"{bug}, {' '.join(options)}, schedule {schedule}: exit status {status}", flush=True)


if __name__ == "__main__":
    program_case.main()
