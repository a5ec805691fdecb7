#include "tests/kernels/cuda/flash_attention_2.hpp"

#include <string>

namespace hcp::test {
namespace {

constexpr double element_bytes = 2.0;
constexpr double matrix_load_bytes = 512.0;  // of ldmatrix.x4: 16 x 16 elements

/// A product c[m, n] += a[m, k] b[k, n] of a block.
struct Product {
  int m;
  int n;
  int k;
  int warps_m;
  int warps_n;
  bool a_in_registers = false;
};

/// For each 16 of k a warp loads the rows of a and the columns of b that its part of c needs, 16 by 16. Warps
/// side by side load the same a, those above each other the same b.
double matrix_loads(const Product& product) {
  const double a = product.a_in_registers ? 0.0 : product.m / product.warps_m / 16;
  const double b = product.n / product.warps_n / 16;
  return (a + b) * (product.k / 16) * product.warps_m * product.warps_n;
}

double flops(const Product& product) {
  return 2.0 * product.m * product.n * product.k;
}

void add(KernelWork& work, const Product& product) {
  work.useful_flops += flops(product);
  work.executed_flops += flops(product);
  work.mma += flops(product) / flops_per_mma;
  work.matrix_loads += matrix_loads(product);
  work.shared_bytes += matrix_loads(product) * matrix_load_bytes;
}

/// cp.async: the bytes come from global memory and go to shared memory.
void add_copies(KernelWork& work, double bytes) {
  work.global_bytes += bytes;
  work.shared_bytes += bytes;
}

KernelProxy proxy(std::string kernel, int dim, int owned, int visited, int warps, double shared_bytes,
                  KernelWork work) {
  work.shared_phases = work.shared_bytes / 128;
  return {
      std::move(kernel),
      "d " + std::to_string(dim),
      {std::to_string(owned) + " x " + std::to_string(visited), 32 * warps, static_cast<int>(shared_bytes)},
      work};
}

/// A warp has all columns of its rows; P stays in registers.
KernelProxy forward(int dim, int queries, int keys, int warps) {
  KernelWork work{.exponentials = 1.0 * queries * keys};
  add(work, {queries, keys, dim, warps, 1});
  add(work, {queries, dim, keys, warps, 1, true});
  add_copies(work, 2 * element_bytes * keys * dim);
  return proxy("FA2 forward", dim, queries, keys, warps, element_bytes * dim * (queries + 2 * keys), work);
}

/// A block owns keys. P and dS go through shared memory, dq is added to global memory in fp32.
/// @param warps_sdp  of the warps over the queries of S and dP; warps_dkv over the keys of dk and dv;
/// warps_dq over the queries of dq
KernelProxy backward(int dim, int queries, int keys, int warps, int warps_sdp, int warps_dkv, int warps_dq) {
  KernelWork work{.exponentials = 1.0 * queries * keys};
  add(work, {queries, keys, dim, warps_sdp, warps / warps_sdp});
  add(work, {queries, keys, dim, warps_sdp, warps / warps_sdp});
  add(work, {keys, dim, queries, warps_dkv, warps / warps_dkv});
  add(work, {keys, dim, queries, warps_dkv, warps / warps_dkv});
  add(work, {queries, dim, keys, warps_dq, warps / warps_dq});
  work.shared_bytes += 2 * element_bytes * queries * keys;
  add_copies(work, 2 * element_bytes * queries * dim);
  work.global_bytes += 4.0 * queries * dim;
  return proxy("FA2 backward", dim, keys, queries, warps,
               element_bytes * (3 * queries * dim + 2 * keys * dim + 2 * queries * keys), work);
}

}  // namespace

std::vector<KernelProxy> flash_attention_2() {
  return {forward(64, 128, 128, 4),           forward(128, 128, 64, 4),
          forward(192, 128, 64, 8),           forward(256, 64, 64, 4),
          backward(64, 128, 128, 8, 4, 4, 4), backward(128, 64, 128, 8, 2, 4, 2),
          backward(192, 64, 64, 8, 4, 2, 2),  backward(256, 64, 64, 8, 4, 2, 2)};
}

}  // namespace hcp::test
