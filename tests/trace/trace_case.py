"""What the Python tests of the trace share: the program that writes known traces, and a scratch directory."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import h5py  # noqa: F401
    import matplotlib  # noqa: F401
    import pandas  # noqa: F401
except ImportError as error:
    print(f"skipped: {sys.executable}: {error}")
    sys.exit(77)


class TraceCase(unittest.TestCase):
    write_trace = None  # path of the program, from the command line

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="hcp_trace_")
        self.addCleanup(scratch.cleanup)
        self.directory = pathlib.Path(scratch.name)
        self.path = self.directory / "run.h5"

    def write(self, ending, path=None, **options):
        """Runs the program to its end."""
        command = [self.write_trace, path or self.path, ending]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, **options)


def main():
    TraceCase.write_trace = sys.argv.pop(1)
    unittest.main()
