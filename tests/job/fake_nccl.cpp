// A library that calls itself NCCL, and of all that knows its version alone.
extern "C" int ncclGetVersion(int* version) {
  *version = HCP_FAKE_NCCL_VERSION;
  return 0;
}
