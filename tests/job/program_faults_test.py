"""The whole program when something breaks: ranks that stop or die, signals, a full disk.

    program_faults_test.py MPIRUN HCP   (with the repository's root in PYTHONPATH)
"""

import contextlib
import io
import os
import re
import resource
import shutil
import signal
import subprocess
import time

import program_case
import analysis.__main__
import h5py
import numpy as np
from program_case import WAIT_S

RANKS = 4
PROBLEM = (
    "--seq-length 1024 --num-attention-heads 8 --kv-channels 32 --simulate-ranks-per-node 2 --cp-comm-type p2p+a2a"
).split()  # about 50 ms per iteration on two cores
FOR_EVER = ("--iterations", 1_000_000, "--verify", "off")
STEP = r"waited \d+ s in layer 0, (?:forward|backward), level [01], step \d+; n\w+ yet \w+( by)? world rank [\d, ]+"


class RunningJob(program_case.ProgramCase):
    """A job that would run for hours, in the middle of its iterations."""

    problem = PROBLEM
    begun_bytes = 400_000  # of the trace after some iterations

    def start_running(self, *options, timeout=WAIT_S // 2):
        job = self.start(RANKS, *self.problem, "--trace", self.trace, "--timeout", timeout, *options)
        self.wait_until(lambda: "TFLOP/s" in self.stdout() or job.poll() is not None, "the head of the table")
        self.wait_until(lambda: self.trace.stat().st_size > self.begun_bytes or job.poll() is not None,
                        "growth of the trace")
        self.assertIsNone(job.poll(), self.stdout() + self.stderr())
        ranks = self.ranks_of(job)
        self.assertEqual(sorted(ranks), list(range(RANKS)))
        for pid in ranks.values():
            self.addCleanup(kill_leftover, pid, self.hcp)
        return job, ranks

    def wait_for_end(self, job, ranks):
        """Exit status of mpirun and the seconds until it and all ranks are gone."""
        begin = time.monotonic()
        status = job.wait(timeout=WAIT_S)
        self.wait_until(lambda: not any(map(program_case.still_running, ranks.values())), "the end of all ranks")
        return status, time.monotonic() - begin

    def analyse(self):
        """`python3 -m analysis summary` of the trace, in this process: loading pandas takes longer than the rest."""
        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual(analysis.__main__.main(["summary", str(self.trace)]), 0)
        return out.getvalue()

    def require_whole_iterations(self, at_least):
        """By plain h5py: every iteration but perhaps the last has equally many events, of all ranks.

        Returns how many iterations have events.
        """
        with h5py.File(self.trace, "r", swmr=True) as file:
            self.assertEqual(list(file["cells"]["cell"]), [0])
            self.assertEqual(sorted(file["ranks"]["rank"]), list(range(RANKS)))
            self.assertEqual(sorted(file["placement"]["rank"]), list(range(RANKS)))
            events = file["events"][:]
        iterations, counts = np.unique(events["iteration"], return_counts=True)
        self.assertGreaterEqual(len(iterations), at_least)
        self.assertEqual(list(iterations), list(range(len(iterations))))
        self.assertEqual(set(counts[:-1]), {counts[0]})
        whole = events[events["iteration"] < iterations[-1]]
        self.assertEqual(sorted(np.unique(whole["rank"])), list(range(RANKS)))
        self.assertTrue((whole["t_end"] >= whole["t_begin"]).all())
        return len(iterations)


class StoppingJob(RunningJob):
    """Whoever waits says for whom, and the job ends by itself."""

    timeout = 5  # s

    def stop(self, victim, *options):
        job, ranks = self.start_running(*FOR_EVER, *options, timeout=self.timeout)
        os.kill(ranks[victim], signal.SIGSTOP)
        status, seconds = self.wait_for_end(job, ranks)
        self.assertEqual(status, 3, self.stderr())
        self.assertGreater(seconds, self.timeout - 1)
        self.assertLess(seconds, self.timeout + 8)
        self.assertIn(f"the job waits for world rank {victim}: stopped,", "\n".join(self.messages()))
        waiting = [text for text in self.messages() if re.search(STEP, text)]
        self.trace.unlink()
        print(f"\nSIGSTOP of rank {victim}: over after {seconds:.1f} s\n  " + "\n  ".join(self.messages()), flush=True)
        return [text for text in waiting if re.search(rf"world rank (\d+, )*{victim}\b", text.partition(";")[2])]

    def require_named_peer(self, victim, *options):
        # A rank that is stopped between two iterations is not in any step; that is seldom, and not twice.
        named = self.stop(victim, *options) or self.stop(victim, *options) or self.stop(victim, *options)
        self.assertTrue(named, self.stderr())


class StoppedRank(StoppingJob):
    def test_rank_0(self):
        self.require_named_peer(0)

    def test_another_rank(self):
        self.require_named_peer(1)


class KilledRank(RunningJob):
    """The job is over soon, and what was flushed can be read."""

    def kill(self, victim):
        job, ranks = self.start_running(*FOR_EVER)
        os.kill(ranks[victim], signal.SIGKILL)
        status, seconds = self.wait_for_end(job, ranks)
        self.assertNotEqual(status, 0)
        self.assertLess(seconds, 10)
        print(f"\nSIGKILL of rank {victim}: status {status} after {seconds:.1f} s", flush=True)

        iterations = self.require_whole_iterations(at_least=3)
        self.assertIn(f"unfinished: {iterations} iterations recorded", self.analyse())

        if not (shutil.which("h5clear") and shutil.which("h5dump")):
            self.skipTest("no h5clear and h5dump")
        repaired = shutil.copy(self.trace, self.directory / "repaired.h5")
        subprocess.run(["h5clear", "-s", "--increment=0", repaired], check=True, timeout=WAIT_S)
        dump = subprocess.run(["h5dump", "-d", "/ranks", repaired], capture_output=True, text=True, timeout=WAIT_S)
        self.assertEqual(dump.returncode, 0, dump.stderr)
        self.assertIn(f"( {RANKS} ) / ( H5S_UNLIMITED )", dump.stdout)

    def test_rank_0(self):
        self.kill(0)

    def test_another_rank(self):
        self.kill(2)


class Signals(RunningJob):
    """SIGUSR1 and SIGTERM: the iteration is finished, everything flushed, and the cell stays unfinished."""

    def require_early_end(self, job, ranks):
        status, seconds = self.wait_for_end(job, ranks)
        self.assertEqual(status, 4, self.stderr())
        self.assertLess(seconds, 10)
        self.assertEqual(self.messages(), [])
        iterations = self.require_whole_iterations(at_least=3)
        self.assertIn("# stopped by a signal: not verified, and /results of the trace has no row of this cell", self.stdout())
        self.assertEqual(self.stdout().splitlines()[-1], "UNVERIFIED")
        with h5py.File(self.trace, "r") as file:  # closed properly: no repair
            self.assertEqual(len(file["results"]), 0)
            counts = np.unique(file["events"]["iteration"], return_counts=True)[1]
            self.assertEqual(set(counts), {counts[0]})
            self.assertTrue((file["bytes"]["bytes_counted"] == file["bytes"]["bytes_planned"]).all())
            self.assertGreater(len(file["bytes"]), 0)
        self.assertIn(f"unfinished: {iterations} iterations recorded", self.analyse())

    def test_sigusr1_to_mpirun_reaches_all_ranks(self):
        job, ranks = self.start_running(*FOR_EVER)
        job.send_signal(signal.SIGUSR1)
        self.require_early_end(job, ranks)

    def test_sigterm_to_one_rank_stops_all(self):
        job, ranks = self.start_running("--iterations", 1_000_000, "--verify", "full")
        os.kill(ranks[2], signal.SIGTERM)
        self.require_early_end(job, ranks)


class FullDisk(RunningJob):
    def test_the_numbers_are_printed_all_the_same(self):
        job, ranks = self.start_running("--iterations", 60, "--verify", "full")
        limit = self.trace.stat().st_size + 100_000
        resource.prlimit(ranks[0], resource.RLIMIT_FSIZE, (limit, limit))
        status, _ = self.wait_for_end(job, ranks)
        self.assertEqual(status, 3, self.stderr())
        self.assertEqual(len(self.messages()), 1, self.stderr())
        self.assertRegex(self.messages()[0], r"run\.h5.*File too large.*the run goes on without a trace")
        row, trace, verdict = self.stdout().splitlines()[-3:]
        self.assertEqual((row.split()[0], row.split()[-1], verdict), ("1024", "PASS", "PASS"))
        self.assertRegex(trace, "^# trace: incomplete, .*File too large")


def kill_leftover(pid, program):
    """Of a test that failed: the process must not stay, and its number may be another's by now."""
    try:
        if os.readlink(f"/proc/{pid}/exe") == os.path.realpath(program):
            os.kill(pid, signal.SIGKILL)
    except (FileNotFoundError, ProcessLookupError):
        pass


if __name__ == "__main__":
    program_case.main()
