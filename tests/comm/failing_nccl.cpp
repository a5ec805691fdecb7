// An NCCL of one rank whose network fails as soon as it is asked, and that is too old to order its launches.

#include <nccl.h>

#include <atomic>

namespace {

std::atomic<int> made = 0;
std::atomic<int> aborted = 0;  // by several threads
std::atomic<int> destroyed = 0;

}  // namespace

extern "C" {

/// Communicators that are neither aborted nor destroyed; how many were aborted.
int failing_nccl_open() {
  return made - aborted - destroyed;
}
int failing_nccl_aborted() {
  return aborted;
}

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION(2, 25, 1);
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote process exited" : "something else";
}
const char* ncclGetLastError(ncclComm_t /*comm*/) {
  return "a cable was pulled";
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* /*id*/) {
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int /*size*/, ncclUniqueId /*id*/, int /*rank*/,
                                    ncclConfig_t* /*config*/) {
  *comm = reinterpret_cast<ncclComm_t>(&made);
  ++made;
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t /*comm*/, ncclResult_t* state) {
  *state = ncclRemoteError;
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t /*comm*/) {
  ++destroyed;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t /*comm*/) {
  ++aborted;
  return ncclSuccess;
}
ncclResult_t ncclGroupStart() {
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  return ncclSuccess;
}
ncclResult_t ncclSend(const void* /*data*/, size_t /*count*/, ncclDataType_t /*type*/, int /*peer*/,
                      ncclComm_t /*comm*/, cudaStream_t /*stream*/) {
  return ncclSuccess;
}
ncclResult_t ncclRecv(void* /*data*/, size_t /*count*/, ncclDataType_t /*type*/, int /*peer*/,
                      ncclComm_t /*comm*/, cudaStream_t /*stream*/) {
  return ncclSuccess;
}
ncclResult_t ncclAllGather(const void* /*own*/, void* /*all*/, size_t /*count*/, ncclDataType_t /*type*/,
                           ncclComm_t /*comm*/, cudaStream_t /*stream*/) {
  return ncclSuccess;
}

}  // extern "C"
