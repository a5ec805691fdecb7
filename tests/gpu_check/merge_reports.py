"""merge_reports.py REPORT...: the JSON reports of test programs as one, by the name of their files."""

import json
import pathlib
import sys

reports = {}
for path in map(pathlib.Path, sys.argv[1:]):
    if path.exists():  # a program that was cut off leaves none
        reports[path.stem] = json.loads(path.read_text())
json.dump(reports, sys.stdout, indent=1)
