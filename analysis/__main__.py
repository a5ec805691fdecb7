"""Command line of the analysis. Sample runs:

    python3 -m analysis summary run.h5
    python3 -m analysis timeline run.h5 -o timeline.png --cell 0 --iteration 3
"""

import argparse
import os
import sys

from analysis.summary import print_summary
from analysis.trace import Trace, TraceError


def main(words=None):
    """Runs one command (default: that of the process) and returns its exit status."""
    parser = argparse.ArgumentParser(prog="python3 -m analysis", description="Post-processing of hcp's trace files.")
    commands = parser.add_subparsers(dest="command", required=True)
    summary = commands.add_parser("summary", help="print the table of the run and the time per phase")
    summary.add_argument("trace", help="trace file, finished or still being written")
    timeline = commands.add_parser("timeline", help="draw who computes, sends and waits when")
    timeline.add_argument("trace", help="trace file, finished or still being written")
    timeline.add_argument("-o", "--output", required=True, help="picture to write: .png, .pdf or .svg")
    timeline.add_argument("--cell", type=int, help="default: the first that has events")
    timeline.add_argument("--iteration", type=int, help="default: the last")
    arguments = parser.parse_args(words)
    try:
        with Trace(arguments.trace) as trace:
            if arguments.command == "summary":
                print_summary(trace)
            else:
                from analysis.timeline import draw_timeline  # here, because matplotlib is slow to load

                draw_timeline(trace, arguments.output, arguments.cell, arguments.iteration)
                print(arguments.output)
    except TraceError as error:
        print(f"python3 -m analysis: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of a pipe (head, less) has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main())
