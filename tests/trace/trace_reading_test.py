"""Reads what the C++ side wrote with nothing but h5py and HDF5's own tools.

    trace_reading_test.py PATH_OF_WRITE_TRACE
"""

import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import tempfile
import unittest

import trace_case
import h5py
import numpy as np
import pandas as pd

TABLES = ["bytes", "cells", "events", "memory", "placement", "ranks", "results"]
EVENTS_OF_A_CELL = 4 * 2 * 2 * 8  # ranks, iterations, passes, events of a pass


class FinishedTrace(trace_case.TraceCase):
    def setUp(self):
        super().setUp()
        self.assertEqual(self.write("finish").returncode, 0)
        self.file = h5py.File(self.path, "r")
        self.addCleanup(self.file.close)

    def test_has_the_tables_and_provenance(self):
        self.assertEqual(sorted(self.file), TABLES)
        self.assertEqual(self.file.attrs["schema_version"], 1)
        self.assertEqual(self.file.attrs["format"], b"hcp trace")
        self.assertEqual(self.file.attrs["command_line"], b"hcp run 'a b'")
        self.assertEqual(len(self.file.attrs["environment"]), 100_000)

    def test_every_column_has_its_unit(self):
        for table in TABLES:
            for column in self.file[table].dtype.names:
                self.assertIn(self.file[table].attrs[f"{column}_unit"], (b"1", b"s", b"B", b"FLOP", b"FLOP/s", b"TFLOP/s", b"text"))
        self.assertEqual(self.file["events"].attrs["t_begin_unit"], b"s")
        self.assertEqual(self.file["memory"].attrs["live_bytes_unit"], b"B")

    def test_columns_follow_the_order_of_the_table(self):
        self.assertEqual(
            self.file["events"].dtype.names,
            tuple("cell iteration rank layer pass level step kind peer bytes t_begin t_end".split()),
        )
        self.assertEqual(self.file["events"].dtype.itemsize, 64)

    def test_pandas_reads_a_table_in_one_line(self):
        events = pd.DataFrame(self.file["events"][:])
        self.assertEqual(len(events), EVENTS_OF_A_CELL)
        wait = events[(events["kind"] == b"wait") & (events["level"] == 0)]
        np.testing.assert_allclose(wait["t_end"] - wait["t_begin"], 2e-3 + 0.5e-3 * wait["rank"], rtol=1e-9)
        self.assertEqual(set(wait["peer"] ^ 1), {0, 1, 2, 3})

    def test_rows_come_back_as_written(self):
        cell = self.file["cells"][0]
        self.assertEqual((cell["cell"], cell["tokens"], cell["scheme"]), (0, 4096, b"p2p+a2a"))
        self.assertEqual(json.loads(cell["options"].decode()), {"seq-length": "4096", "qkv": 'a "quoted" \\ näme\n'})
        self.assertEqual(self.file["placement"][3].tolist(), (0, 3, 0, 3, 0, 0, b"1,1", 1027))
        self.assertEqual(self.file["memory"][0].tolist(), (0, 3, 0.25, b"head_scatter", 2**33))
        self.assertEqual(
            self.file["bytes"][0].tolist(), (0, 1, 2, 1, 1, b"bwd", b"dkv", 3 * 2**32, 4, 3 * 2**32, 4)
        )
        done, skipped = self.file["results"][:]
        self.assertEqual((done["state"], done["time_p95"], done["verdict"]), (b"done", 0.0783, b"PASS"))
        self.assertEqual(done["bytes_across"], 7_250_000)
        self.assertEqual((skipped["cell"], skipped["state"]), (1, b"skipped"))
        self.assertEqual(skipped["reason"], b"cp 8 does not divide 4 ranks")
        self.assertTrue(np.isnan(skipped["time_min"]))

    def test_ranks_are_rewritten_at_the_end(self):
        ranks = self.file["ranks"][:]
        self.assertEqual(ranks["clock_offset_end"].tolist(), [2e-6] * 4)
        self.assertEqual(ranks["world_rank"].tolist(), [3, 2, 1, 0])
        self.assertTrue(np.isnan(ranks["clock_uncertainty"]).all())

    def test_is_never_overwritten(self):
        before = self.path.read_bytes()
        again = self.write("finish")
        self.assertEqual(again.returncode, 3)
        self.assertIn("never overwritten", again.stderr)
        self.assertEqual(self.path.read_bytes(), before)


class UnfinishedTrace(trace_case.TraceCase):
    def require_first_cell(self, path):
        with h5py.File(path, "r", swmr=True) as file:
            self.assertEqual(file["results"]["state"].tolist(), [b"done"])
            self.assertGreaterEqual(len(file["events"]), EVENTS_OF_A_CELL)
            events = file["events"][:EVENTS_OF_A_CELL]
            self.assertEqual(np.unique(events["kind"]).tolist(), [b"compute", b"copy", b"pack", b"post", b"wait"])
            self.assertTrue((events["t_end"] > events["t_begin"]).all())

    def test_is_readable_while_it_is_written(self):
        command = [self.write_trace, self.path, "hold"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
            self.assertEqual(writer.stdout.readline(), "flushed\n")
            self.require_first_cell(self.path)
            writer.communicate("\n", timeout=60)
            self.assertEqual(writer.returncode, 0)
        with h5py.File(self.path, "r") as file:
            self.assertEqual(file["results"]["state"].tolist(), [b"done", b"skipped"])

    def test_keeps_flushed_rows_after_sigkill(self):
        self.assertEqual(self.write("kill").returncode, -signal.SIGKILL)
        self.require_first_cell(self.path)

    @unittest.skipUnless(shutil.which("h5clear") and shutil.which("h5dump"), "skipped: no h5clear and h5dump")
    def test_is_repaired_for_h5dump_after_sigkill(self):
        self.write("kill")
        subprocess.run(["h5clear", "-s", "--increment=0", self.path], check=True, timeout=60)
        dump = subprocess.run(["h5dump", "-d", "/results", self.path], capture_output=True, text=True, timeout=60)
        self.assertEqual(dump.returncode, 0, dump.stderr)
        self.assertIn("0.0772", dump.stdout)
        self.assertIn('"PASS', dump.stdout)
        with h5py.File(self.path, "r+") as file:
            self.assertEqual(len(file["events"]), EVENTS_OF_A_CELL)

    def require_clear_end(self, writer, path, reason):
        self.assertEqual(writer.returncode, 3, writer.stderr)  # neither a crash nor a hang at exit
        self.assertIn(str(path), writer.stderr)
        self.assertIn(reason, writer.stderr)
        self.assertLess(len(writer.stderr), 300)
        self.assertEqual(writer.stderr.count("\n"), 1)

    def test_file_size_limit_is_a_clear_error(self):
        for kibibytes in (1000, 1500, 3000):  # another write fails each time
            path = self.directory / f"limit_{kibibytes}.h5"
            limit = (kibibytes * 1024, resource.RLIM_INFINITY)
            writer = self.write("fill", path, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit))
            self.require_clear_end(writer, path, "File too large")
            self.require_first_cell(path)

    def test_file_size_limit_before_the_first_row(self):
        for kibibytes in (0, 1, 4, 8):
            path = self.directory / f"limit_{kibibytes}.h5"
            limit = (kibibytes * 1024, resource.RLIM_INFINITY)
            writer = self.write("finish", path, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit))
            self.require_clear_end(writer, path, "File too large")

    def test_full_disk_is_a_clear_error(self):
        mount_point = tempfile.mkdtemp(prefix="hcp_full_disk_")
        self.addCleanup(os.rmdir, mount_point)
        mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "hcp_full_disk", mount_point]
        if subprocess.run(mount, capture_output=True).returncode != 0:
            self.skipTest("skipped: a file system of 1 MiB cannot be mounted without root")
        self.addCleanup(subprocess.run, ["umount", mount_point], check=True)
        path = pathlib.Path(mount_point) / "run.h5"
        self.require_clear_end(self.write("fill", path), path, "No space left on device")
        self.require_first_cell(path)


if __name__ == "__main__":
    trace_case.main()
