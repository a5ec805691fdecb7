"""A rank stops whose tensors lie on a GPU in software: the others say where they wait for it, and the job ends.

    program_device_faults_test.py MPIRUN HCP_ON_SOFTWARE_GPU   (with the repository's root in PYTHONPATH)
"""

import program_case
from program_faults_test import StoppingJob


class StoppedRank(StoppingJob):
    timeout = 10  # s; on a busy machine a kernel in software takes some
    problem = ("--seq-length 32 --num-attention-heads 2 --kv-channels 8 --simulate-ranks-per-node 2 "
               "--cp-comm-type p2p+a2a --backend cuda").split()

    def setUp(self):
        super().setUp()
        self.environment = {"HCP_SOFTWARE_GPU_DEVICES": "4", "HCP_SOFTWARE_GPU_SCHEDULE": "3"}

    def test_staged(self):
        self.require_named_peer(1, "--transport", "staged")

    def test_nccl(self):
        self.require_named_peer(2, "--transport", "nccl")

    def test_nccl_with_levels_one_after_the_other(self):
        self.require_named_peer(0, "--transport", "nccl", "--serialize-levels")


if __name__ == "__main__":
    program_case.main()
