#!/bin/bash
# Code for different instruction sets must not meet at link time: an object compiled for one of them may offer
# no weak symbol, or the linker would pick one version for the whole program, and older processors would meet
# instructions that they lack.
#   check_isa_symbols.sh OBJECT...
status=0
checked=0
for object in "$@"; do
  case $object in
    */tile_functions_*|*/row_functions_*) ;;
    *) continue ;;
  esac
  checked=$((checked + 1))
  if weak=$(nm -C "$object" | grep -E ' [WVu] '); then
    printf '%s offers weak symbols:\n%s\n' "$object" "$weak"
    status=1
  fi
done
if [ "$checked" -lt 2 ]; then
  echo "only $checked objects of instruction sets among $# files"
  exit 1
fi
exit $status
