"""The command line of analysis/ on traces with known numbers, and on files that users get wrong.

    analysis_test.py PATH_OF_WRITE_TRACE   (with the repository's root in PYTHONPATH)
"""

import contextlib
import io
import shutil
import subprocess
import sys

import trace_case
import h5py
import numpy as np

from analysis import Trace
from analysis.__main__ import main


class AnalysisCase(trace_case.TraceCase):
    def analyse(self, *arguments):
        """One command of the analysis, run in this process: loading pandas takes longer than all the rest."""
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
            status = main([str(argument) for argument in arguments])
        return subprocess.CompletedProcess(arguments, status, out.getvalue(), err.getvalue())

    def require_refusal(self, what, *arguments):
        """Exit status 2 and one sentence on stderr that says `what`."""
        result = self.analyse(*arguments)
        self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
        self.assertIn(what, result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)


class Summary(AnalysisCase):
    def test_prints_the_table_and_the_phases(self):
        self.write("finish")
        result = self.analyse("summary", self.path)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        lines = [line.split() for line in result.stdout.splitlines()]
        self.assertIn(["#", "git_revision:", "0123abc"], lines)
        cell = "0 4096 p2p+a2a 2,2 2 (simulated) causal bf16 fwdbwd"
        numbers = "76.100 77.200 78.300 79.400 0.1234 5.000 7.250 9.7 1.050 10.50 11.25 1.5e-03"
        self.assertIn([*cell.split(), *numbers.split(), "full", "PASS"], lines)
        self.assertIn("# cell 1 skipped: cp 8 does not divide 4 ranks", result.stdout)
        # Rank r waits 2 + r/2 ms at level 0 and 1 ms at level 1: 2.75 + 1 ms on average over four ranks.
        self.assertIn("0 fwd 20.000 0.200 3.750 1.000 0.500".split(), lines)
        self.assertIn("0 bwd 40.000 0.200 3.750 1.000 0.500".split(), lines)

    def test_reads_a_trace_whose_writer_was_killed(self):
        self.write("kill")
        result = self.analyse("summary", self.path)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("PASS", result.stdout)

    def test_tells_of_a_cell_that_was_not_finished(self):
        self.write("finish")
        with h5py.File(self.path, "r+") as file:
            file["results"].resize((0,))
        result = self.analyse("summary", self.path)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("# cell 0 (4096 tokens, p2p+a2a, fwdbwd) unfinished: 2 iterations recorded\n", result.stdout)
        lines = [line.split() for line in result.stdout.splitlines()]
        self.assertIn("0 fwd 20.000 0.200 3.750 1.000 0.500".split(), lines)

    def test_reads_a_trace_that_is_being_written(self):
        command = [self.write_trace, self.path, "hold"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
            writer.stdout.readline()
            result = self.analyse("summary", self.path)
            writer.communicate("\n", timeout=60)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("PASS", result.stdout)

    def test_ignores_rows_that_were_announced_but_never_written(self):
        self.write("finish")
        with h5py.File(self.path, "r+") as file:
            file["events"].resize((len(file["events"]) + 1000,))
        with Trace(self.path) as trace:
            self.assertEqual(len(trace.table("events")), 128)
            self.assertEqual(len(trace.events(0)), 128)

    def test_knows_units(self):
        self.write("finish")
        with Trace(self.path) as trace:
            self.assertEqual(trace.units("events")["t_end"], "s")
            self.assertEqual(trace.units("memory")["live_bytes"], "B")


class Timeline(AnalysisCase):
    def setUp(self):
        super().setUp()
        self.write("finish")
        self.picture = self.directory / "timeline.png"

    def test_draws_compute_and_wait_to_scale(self):
        result = self.analyse("timeline", self.path, "-o", self.picture, "--cell", 0, "--iteration", 1)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        from matplotlib import colors, image

        pixels = np.round(image.imread(self.picture)[..., :3] * 255).astype(int)

        def area(colour):
            return np.count_nonzero((pixels == np.round(np.array(colors.to_rgb(colour)) * 255)).all(axis=-1))

        # 60 ms of compute against 7.5 ms of waiting on average over the ranks; the legend adds a little of both.
        self.assertAlmostEqual(area("#0072B2") / area("#D55E00"), 8.0, delta=0.8)
        self.assertGreater(area("#56B4E9"), 1000)  # transfers at level 0
        self.assertGreater(area("#CC79A7"), 1000)  # and at level 1

    def test_refuses_what_is_not_there(self):
        self.require_refusal("no events of cell 7", "timeline", self.path, "-o", self.picture, "--cell", 7)
        self.require_refusal("no events of iteration 9", "timeline", self.path, "-o", self.picture, "--iteration", 9)
        self.assertFalse(self.picture.exists())

    def test_refuses_pictures_that_cannot_be_written(self):
        self.require_refusal("does not exist", "timeline", self.path, "-o", self.directory / "missing" / "t.png")
        before = self.path.read_bytes()
        self.require_refusal("cannot be written", "timeline", self.path, "-o", self.path)
        self.assertEqual(self.path.read_bytes(), before)


class CommandLine(AnalysisCase):
    def test_exit_status_reaches_the_shell(self):
        command = [sys.executable, "-m", "analysis", "summary", self.path]
        missing = subprocess.run(command, capture_output=True, text=True, timeout=60)
        self.assertEqual((missing.returncode, missing.stdout), (2, ""))
        self.assertEqual(missing.stderr, f"python3 -m analysis: {self.path} does not exist\n")
        self.write("finish")
        self.assertEqual(subprocess.run(command, capture_output=True, timeout=60).returncode, 0)


class BadFiles(AnalysisCase):
    def test_missing_or_not_hdf5(self):
        self.require_refusal("does not exist", "summary", self.path)
        self.require_refusal("is not a file", "summary", self.directory)
        self.path.write_text("cell,time\n0,1\n")
        self.require_refusal("is not an HDF5 file", "summary", self.path)
        self.path.write_bytes(b"")
        self.require_refusal("is not an HDF5 file", "summary", self.path)

    def test_truncated_anywhere(self):
        for ending in ("finish", "kill"):
            whole = self.directory / f"{ending}.h5"
            self.write(ending, whole)
            size = whole.stat().st_size
            for keep in (10, 40, 1000, size // 2, size - 1):
                shutil.copy(whole, self.path)
                with open(self.path, "r+b") as file:
                    file.truncate(keep)
                self.require_refusal("truncated", "summary", self.path)

    def test_of_somebody_else(self):
        for version in ("earliest", "latest"):
            with h5py.File(self.path, "w", libver=version) as file:
                file["q"] = np.zeros((4, 2, 8))
            self.require_refusal("not a trace that hcp wrote", "summary", self.path)

    def test_of_another_schema_version(self):
        self.write("finish")
        with h5py.File(self.path, "r+") as file:
            file.attrs["schema_version"] = 99
        self.require_refusal("has schema version 99; this analysis reads version 1", "summary", self.path)

    def test_without_a_finished_cell(self):
        self.write("finish")
        with h5py.File(self.path, "r+") as file:
            file["results"].resize((0,))
            file["events"].resize((0,))
        self.require_refusal("no cell has finished yet, and none has events", "summary", self.path)
        self.require_refusal("no events yet", "timeline", self.path, "-o", self.directory / "t.png")

    def test_without_a_table(self):
        self.write("finish")
        with h5py.File(self.path, "r+") as file:
            del file["results"]
        self.require_refusal("has no table /results", "summary", self.path)


if __name__ == "__main__":
    trace_case.main()
