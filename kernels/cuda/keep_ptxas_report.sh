#!/usr/bin/env bash
# keep_ptxas_report.sh COMMAND...: runs nvcc. What ptxas tells of registers goes to OBJECT.ptxas, the rest to stderr.
set -uo pipefail
object=
for ((i = 1; i < $#; ++i)); do
  if [[ ${!i} == -o ]]; then
    next=$((i + 1))
    object=${!next}
  fi
done
if [[ $object != *.o ]]; then exec "$@"; fi
"$@" 2>"$object.ptxas"
status=$?
grep -vE '^ptxas info|^ +[0-9]+ bytes stack frame' "$object.ptxas" >&2
exit "$status"
