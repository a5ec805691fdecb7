"""Mistakes of which the numbers often tell nothing: the whole program on GPUs in software, one of whose ranks makes a
mistake where it calls CUDA or NCCL. Each is found under every schedule, and the program without one is clean.

    planted_bugs_test.py MPIRUN HCP_ON_SOFTWARE_GPU   (with the repository's root in PYTHONPATH)

The double makes the mistake in the program's stead (tests/software_gpu/planted_bugs.hpp), so the objects are the
product's own.
"""

import unittest

import program_case

RANKS = 4
SCHEDULES = (1, 2, 3, 4)
OF_ONE_RANK = ["sh", "-c", 'if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then export HCP_SOFTWARE_GPU_BUG="$0"; fi; exec "$@"']
PROBLEM = ("--seq-length 40 --num-attention-heads 4 --num-query-groups 4 --kv-channels 8 --backend cuda --warmup 0 "
           "--iterations 1 --verify full --timeout 15 --simulate-ranks-per-node 2").split()
RING = ("nccl", "p2p")
SWAP = ("nccl", "a2a")
DOUBLE_RING = ("nccl", "p2p+p2p")
GATHER = ("nccl", "all_gather")
STAGED = ("staged", "p2p")
STAGED_SWAP = ("staged", "a2a")

# What it means for the program, the bug and its call, the transport and scheme, and words of what is found.
BUGS = (
    ("computes with a block that has not arrived", "skip_wait_on_transport:1", RING, "not ordered"),
    ("receives into a block that is still computed with", "skip_wait_on_compute:3", RING, "not ordered"),
    ("sends rows that are not packed yet", "skip_wait_on_compute:1", SWAP, "not ordered"),
    ("the gathered block is taken to be there", "skip_wait_on_transport:1", GATHER, "not ordered"),
    ("a message is not covered by the event that tells its end", "early_record:3", RING, "not ordered"),
    ("a kernel runs in another stream", "wrong_stream:5", RING, "not ordered"),
    ("the host reads results that are not there yet", "skip_synchronise:20", RING, ""),
    ("a gradient is not cleared before it is added to", "lost_fill:5", RING, ""),
    ("a copy to the device is left out", "lost_copy:2", RING, ""),
    ("a message goes to another rank", "wrong_peer:1", RING, ""),
    ("half of a block is sent", "half_count:1", RING, ""),
    ("one rank launches in another order", "swapped_groups:1", DOUBLE_RING, ""),
    ("one call gives the stream of another level", "two_streams:1", DOUBLE_RING, ""),
    ("a communicator is left behind", "leaked_communicator:1", RING, ""),
    ("rows leave the device before they are packed", "skip_wait_on_compute:1", STAGED_SWAP, "not ordered"),
    ("computes with a block that is still copied to the device", "skip_wait_on_transport:1", STAGED, "not ordered"),
    ("MPI gets a piece that has not left the device", "early_query:2", STAGED, ""),
    ("a piece of a message never leaves the device", "lost_copy:5", STAGED, ""),
)


class PlantedBugs(program_case.ProgramCase):
    def run_under(self, schedule, transport, scheme, bug=None):
        """Exit status."""
        self.environment = {"HCP_SOFTWARE_GPU_DEVICES": str(RANKS), "HCP_SOFTWARE_GPU_SCHEDULE": str(schedule)}
        self.before_program = [*OF_ONE_RANK, bug] if bug else []
        return self.run_to_end(RANKS, *PROBLEM, "--transport", transport, "--cp-comm-type", scheme)

    def test_each_is_found(self):
        for meaning, bug, (transport, scheme), words in BUGS:
            for schedule in SCHEDULES:
                with self.subTest(meaning=meaning, bug=bug, transport=transport, scheme=scheme, schedule=schedule):
                    status = self.run_under(schedule, transport, scheme, bug)
                    print(f"{meaning} ({bug}; {transport}, {scheme}), schedule {schedule}: exit status {status}",
                          flush=True)
                    self.assertNotEqual(status, 0, "not found\n" + self.stderr())
                    self.assertRegex(self.stderr(), words)

    def test_without_them_it_is_clean(self):
        for transport, scheme in sorted({where for _, _, where, _ in BUGS}):
            for schedule in SCHEDULES:
                with self.subTest(transport=transport, scheme=scheme, schedule=schedule):
                    self.assertEqual(self.run_under(schedule, transport, scheme), 0, self.stdout() + self.stderr())


if __name__ == "__main__":
    program_case.main()
