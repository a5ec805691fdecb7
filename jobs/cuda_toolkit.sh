#!/usr/bin/env bash
# The CUDA compiler, and where a machine has none, NVIDIA's own wheels from PyPI (13.0; a driver of that version or
# later runs what it builds). NCCL's is among them, 200 MB for one header that is needed and a library that may be of
# use (LD_LIBRARY_PATH=DIRECTORY/nvidia/nccl/lib). To be sourced; offers the functions below and does nothing.

hcp_cuda_wheels=('nvidia-cuda-nvcc==13.0.*' 'nvidia-cuda-crt==13.0.*' 'nvidia-nvvm==13.0.*' 'nvidia-cuda-runtime==13.0.*'
  'nvidia-cuda-cccl==13.0.*' 'nvidia-nvtx==13.0.*' 'nvidia-nccl-cu13==2.28.*')

# hcp_find_nvcc DIRECTORY: prints the nvcc that is there: $CUDACXX, on PATH, in /usr/local/cuda, or in DIRECTORY.
hcp_find_nvcc() {
  local nvcc
  for nvcc in "$(command -v "${CUDACXX:-nvcc}" || true)" /usr/local/cuda/bin/nvcc "$1/nvidia/cu13/bin/nvcc"; do
    if [[ -x $nvcc ]]; then
      echo "$nvcc"
      return 0
    fi
  done
  return 1
}

# hcp_provide_nvcc DIRECTORY: after it hcp_find_nvcc finds one, or it has said why not and returns 77.
hcp_provide_nvcc() {
  if [[ -e $1 && ! -e $1/nvidia/nccl/include/nccl.h ]]; then rm -rf "$1"; fi # from before NCCL was one of them
  if hcp_find_nvcc "$1" >/dev/null; then return 0; fi
  if ! python3 -m pip --version >/dev/null 2>&1; then
    echo "skipped: there is no nvcc, and no pip for python3 that would install NVIDIA's (Debian: python3-pip)"
    return 77
  fi
  # All or nothing: what was interrupted is not taken for a toolkit.
  rm -rf "$1" "$1.part"
  if ! hcp_run_shown python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --no-cache-dir \
    --target "$1.part" "${hcp_cuda_wheels[@]}"; then
    echo "skipped: there is no nvcc, and pip could not install NVIDIA's"
    return 77
  fi
  mv "$1.part" "$1"
}
