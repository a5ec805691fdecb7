"""What the Python tests of the whole program share: starting it under mpirun, and finding its ranks."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

try:
    import h5py  # noqa: F401
    import pandas  # noqa: F401
except ImportError as error:
    print(f"skipped: {sys.executable}: {error}")
    sys.exit(77)

WAIT_S = 60  # for whatever takes a second or two on a machine that is not overloaded


class ProgramCase(unittest.TestCase):
    mpirun = hcp = None  # paths, from the command line

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="hcp_program_")
        self.addCleanup(scratch.cleanup)
        self.directory = pathlib.Path(scratch.name)
        self.trace = self.directory / "run.h5"
        self.environment = {}  # of all ranks, besides this process's own
        self.before_program = []  # words: a command that starts the program

    def start(self, ranks, *options):
        """`hcp run OPTIONS` on `ranks` ranks of one thread, its output in files."""
        command = [self.mpirun, "--oversubscribe", "-n", ranks, *self.before_program, self.hcp, "run", *options,
                   "--threads-per-rank", 1]
        with open(self.directory / "stdout", "w") as out, open(self.directory / "stderr", "w") as err:
            job = subprocess.Popen([str(word) for word in command], stdout=out, stderr=err, cwd=self.directory,
                                   env=os.environ | self.environment)
        self.addCleanup(self.end, job)
        return job

    def end(self, job):
        if job.poll() is None:
            job.kill()  # mpirun's daemon part notices, and the ranks go with it
            job.wait()

    def run_to_end(self, ranks, *options):
        return self.start(ranks, *options).wait(timeout=WAIT_S)

    def stdout(self):
        return (self.directory / "stdout").read_text()

    def stderr(self):
        return (self.directory / "stderr").read_text()

    def header(self):
        """Lines of the header by name; those without one are left out."""
        return dict(re.findall(r"^# ([a-z ]+): (.*)$", self.stdout(), re.MULTILINE | re.IGNORECASE))

    def messages(self):
        """The program's own lines on stderr; mpirun adds some."""
        return re.findall(r"^hcp: (.*)$", self.stderr(), re.MULTILINE)

    def wait_until(self, condition, what):
        deadline = time.monotonic() + WAIT_S
        while not condition():
            said = f"{self.stdout()}\n{self.stderr()}"
            self.assertLess(time.monotonic(), deadline, f"{what} did not happen; the output was:\n{said}")
            time.sleep(0.02)

    def ranks_of(self, job):
        """Rank -> process id, of the processes that mpirun started."""
        ranks = {}
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
                if parent != job.pid:
                    continue
                environment = (process / "environ").read_bytes().split(b"\0")
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has just ended
            for entry in environment:
                if entry.startswith(b"OMPI_COMM_WORLD_RANK="):
                    ranks[int(entry.partition(b"=")[2])] = int(process.name)
        return ranks


def still_running(pid):
    """Whether the process exists and has not ended (an ended one may wait for its parent)."""
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def main():
    ProgramCase.mpirun, ProgramCase.hcp = (os.path.abspath(path) for path in sys.argv[1:3])
    del sys.argv[1:3]
    unittest.main()
