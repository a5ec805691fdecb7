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
           "--iterations 1 --verify full --timeout 6 --simulate-ranks-per-node 2").split()
RING = ("nccl", "p2p")
SWAP = ("nccl", "a2a")
DOUBLE_RING = ("nccl", "p2p+p2p")
GATHER = ("nccl", "all_gather")
STAGED = ("staged", "p2p")
STAGED_SWAP = ("staged", "a2a")
STAGED_GATHER = ("staged", "all_gather")

# What it means for the program, the bug, the call that has it (of several the first that matters in the program of today),
# transport and scheme, and words of what is found where it is always the same.
BUGS = (
    ("computes with a block that has not arrived", "skip_wait_on_transport", (1,), RING, "not ordered"),
    ("receives into a block that is still computed with", "skip_wait_on_compute", (3,), RING, "not ordered"),
    ("sends rows that are not packed yet", "skip_wait_on_compute", (1,), SWAP, ""),
    ("takes the gathered block to be there", "skip_wait_on_transport", (1,), GATHER, ""),
    ("takes the event before a message for the one after it", "early_record", (10, 11, 12), RING, ""),
    ("a kernel runs in another stream", "wrong_stream", (5,), RING, ""),
    ("the host reads results that are not there yet", "skip_synchronise", (60, 59, 61, 58, 62), RING, ""),
    ("a sum is not cleared before it is added to", "lost_fill", (2,), RING, ""),
    ("a gradient that travels is not cleared", "lost_fill", (7, 8, 9), RING, ""),
    ("an input never comes to the device", "lost_copy", (2,), RING, ""),
    ("a message goes to another rank", "wrong_peer", (1,), RING, ""),
    ("half of a block is sent", "half_count", (1,), RING, "meets"),
    ("one rank launches in another order", "swapped_groups", (3, 1, 2), DOUBLE_RING, ""),
    ("a call gives the stream of another level", "two_streams", (1,), DOUBLE_RING, ""),
    ("a communicator is left behind", "leaked_communicator", (1,), RING, "never destroyed"),
    ("rows leave the device before they are packed", "skip_wait_on_compute", (1,), STAGED_SWAP, ""),
    ("computes with a block that is still on its way to the device", "skip_wait_on_transport", (1,), STAGED_GATHER, ""),
    ("MPI gets a piece that has not left the device", "early_query", (1, 2), STAGED, ""),
    ("a piece of a message never leaves the device", "lost_copy", (10, 11), STAGED, ""),
)


class PlantedBugs(program_case.ProgramCase):
    def run_under(self, schedule, transport, scheme, bug=None):
        """Exit status."""
        self.environment = {"HCP_SOFTWARE_GPU_DEVICES": str(RANKS), "HCP_SOFTWARE_GPU_SCHEDULE": str(schedule)}
        self.before_program = [*OF_ONE_RANK, bug] if bug else []
        return self.run_to_end(RANKS, *PROBLEM, "--transport", transport, "--cp-comm-type", scheme)

    def is_found(self, bug, where, words):
        """Under every schedule; prints how."""
        statuses = []
        for schedule in SCHEDULES:
            status = self.run_under(schedule, *where, bug)
            if status == 0 or "no call had the bug" in self.stderr():
                return False
            self.assertIn(words, self.stderr())
            statuses.append(str(status))
        print(f"{bug} with {' '.join(where)}: exit status {', '.join(statuses)}", flush=True)
        return True

    def test_each_is_found(self):
        for meaning, bug, calls, where, words in BUGS:
            with self.subTest(meaning=meaning, bug=bug, where=where):
                self.assertTrue(any(self.is_found(f"{bug}:{call}", where, words) for call in calls), self.stderr())

    def test_without_them_it_is_clean(self):
        for transport, scheme in sorted({where for *_, where, _ in BUGS}):
            for schedule in SCHEDULES[:2]:
                with self.subTest(transport=transport, scheme=scheme, schedule=schedule):
                    self.assertEqual(self.run_under(schedule, transport, scheme), 0, self.stdout() + self.stderr())


if __name__ == "__main__":
    program_case.main()
