"""The whole program on GPUs in software when a rank stops answering: who waits says for whom, and the job ends.

    program_device_faults_test.py MPIRUN HCP_ON_SOFTWARE_GPU   (with the repository's root in PYTHONPATH)
"""

import os
import re
import signal
import time

import program_case

RANKS = 4
TIMEOUT_S = 4
LONGEST_S = TIMEOUT_S + 10  # 2 s of them to listen who else waits; the rest is the machine's
RUN = ("--seq-length 96 --num-attention-heads 4 --kv-channels 16 --backend cuda --iterations 1000000 --verify off "
       "--simulate-ranks-per-node 2").split()
STEP = r"world rank \d waited \d+ s in layer 0, (?:forward|backward), level [01], step \d+; (.*)"


class StoppedRank(program_case.ProgramCase):
    def setUp(self):
        super().setUp()
        os.environ["HCP_SOFTWARE_GPU_DEVICES"] = str(RANKS)  # NCCL wants one for each

    def stop(self, victim, *options):
        """What the others said of the step that they wait in."""
        job = self.start(RANKS, *RUN, "--timeout", TIMEOUT_S, "--trace", self.trace, *options)
        self.wait_until(lambda: "TFLOP/s" in self.stdout() or job.poll() is not None, "the head of the table")
        self.wait_until(lambda: self.trace.stat().st_size > 400_000 or job.poll() is not None, "growth of the trace")
        self.assertIsNone(job.poll(), self.stdout() + self.stderr())
        ranks = self.ranks_of(job)
        self.assertEqual(sorted(ranks), list(range(RANKS)))
        os.kill(ranks[victim], signal.SIGSTOP)
        begin = time.monotonic()
        status = job.wait(timeout=program_case.WAIT_S)
        seconds = time.monotonic() - begin
        self.assertEqual(status, 3, self.stderr())
        self.assertGreater(seconds, TIMEOUT_S - 1)
        self.assertLess(seconds, LONGEST_S)
        self.wait_until(lambda: not any(map(program_case.still_running, ranks.values())), "the end of all ranks")
        self.assertIn(f"the job waits for world rank {victim}: stopped,", "\n".join(self.messages()))
        print(f"\nSIGSTOP of rank {victim}, {options}: over after {seconds:.1f} s\n  " + "\n  ".join(self.messages()),
              flush=True)
        self.trace.unlink()
        return [match[1] for match in map(re.compile(STEP).search, self.messages()) if match]

    def require_named_peer(self, victim, *options):
        # A rank that is stopped between two iterations is not in any step; that is seldom, and not three times.
        for _ in range(3):
            if any(re.search(rf"world rank (\d+, )*{victim}\b", said) for said in self.stop(victim, *options)):
                return
        self.fail(self.stderr())

    def test_nccl(self):
        self.require_named_peer(1, "--transport", "nccl", "--cp-comm-type", "p2p+a2a")

    def test_nccl_rank_0(self):
        self.require_named_peer(0, "--transport", "nccl", "--cp-comm-type", "p2p")

    def test_staged(self):
        self.require_named_peer(2, "--transport", "staged", "--cp-comm-type", "p2p+a2a")


if __name__ == "__main__":
    program_case.main()
