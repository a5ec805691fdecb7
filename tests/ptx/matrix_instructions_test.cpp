// The fragments, against the layouts that CUTLASS publishes: a second description, in another form.
#include <gmock/gmock.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/ptx/ptx_case.hpp"

namespace hcp::ptx {
namespace {

using testing::IsEmpty;

/// A CuTe layout (thread, value) -> index into a matrix that is stored column by column: thread and value are
/// taken apart by the shape, the first part running fastest, and each part has its stride.
struct FragmentLayout {
  std::vector<int> thread_shape, value_shape, thread_stride, value_stride;

  [[nodiscard]] int index(int thread, int value) const {
    return part(thread, thread_shape, thread_stride) + part(value, value_shape, value_stride);
  }

 private:
  static int part(int position, const std::vector<int>& shape, const std::vector<int>& stride) {
    int index = 0;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      index += position % shape[i] * stride[i];
      position /= shape[i];
    }
    return index;
  }
};

// CUTLASS, include/cute/atom/mma_traits_sm80.hpp: SM80_16x8x16_F32F16F16F32_TN and
// SM80_16x8x8_F32F16F16F32_TN. A is [16, k], B is [8, k], C is [16, 8].
const FragmentLayout a_k16{{4, 8}, {2, 2, 2}, {32, 1}, {16, 8, 128}};
const FragmentLayout b_k16{{4, 8}, {2, 2}, {16, 1}, {8, 64}};
const FragmentLayout a_k8{{4, 8}, {2, 2}, {32, 1}, {16, 8}};
const FragmentLayout b_k8{{4, 8}, {2}, {16, 1}, {8}};
const FragmentLayout c_layout{{4, 8}, {2, 2}, {32, 1}, {16, 8}};

/// Small whole numbers have the same bits after the point in every format: exact in all of them.
std::uint16_t half_of(int value, bool bf16) {
  if (bf16) {
    return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16);
  }
  return std::bit_cast<std::uint16_t>(static_cast<_Float16>(value));
}

void expect_product(int k, bool bf16) {
  std::mt19937 random{3};
  const auto small = [&] { return static_cast<int>(random() % 17) - 8; };
  const FragmentLayout& a_layout = k == 16 ? a_k16 : a_k8;
  const FragmentLayout& b_layout = k == 16 ? b_k16 : b_k8;
  std::vector<int> a(static_cast<std::size_t>(16 * k));
  std::vector<int> b(static_cast<std::size_t>(8 * k));
  std::vector<int> c(16 * 8);
  std::ranges::generate(a, small);
  std::ranges::generate(b, small);
  std::ranges::generate(c, small);

  // in: for each lane the registers of A, B and C
  const int registers_a = k / 4;
  const int registers_b = k / 8;
  const int words = registers_a + registers_b + 4;
  std::vector<std::uint32_t> in;
  const auto pair = [&](const std::vector<int>& matrix, const FragmentLayout& layout, int lane, int r) {
    const auto half = [&](int value) -> std::uint32_t {
      return half_of(matrix[static_cast<std::size_t>(layout.index(lane, value))], bf16);
    };
    return half(2 * r) | half(2 * r + 1) << 16;
  };
  for (int lane = 0; lane < 32; ++lane) {
    for (int r = 0; r < registers_a; ++r) {
      in.push_back(pair(a, a_layout, lane, r));
    }
    for (int r = 0; r < registers_b; ++r) {
      in.push_back(pair(b, b_layout, lane, r));
    }
    for (int v = 0; v < 4; ++v) {
      in.push_back(std::bit_cast<std::uint32_t>(
          static_cast<float>(c[static_cast<std::size_t>(c_layout.index(lane, v))])));
    }
  }
  std::string body = "mad.wide.u32 %d0, %r39, " + std::to_string(4 * words) + ", %d8;";
  for (int i = 0; i < words; ++i) {
    body += "ld.global.u32 %r" + std::to_string(i) + ", [%d0+" + std::to_string(4 * i) + "];";
  }
  const std::string type = bf16 ? "bf16" : "f16";
  body += "mma.sync.aligned.m16n8k" + std::to_string(k) + ".row.col.f32." + type + "." + type + ".f32";
  body += k == 16 ? "{%r20, %r21, %r22, %r23}, {%r0, %r1, %r2, %r3}, {%r4, %r5}, {%r6, %r7, %r8, %r9};"
                  : "{%r20, %r21, %r22, %r23}, {%r0, %r1}, {%r2}, {%r3, %r4, %r5, %r6};";
  body += "mad.wide.u32 %d1, %r39, 16, %d9; st.global.v4.f32 [%d1], {%r20, %r21, %r22, %r23};";
  std::vector<std::uint32_t> out(32 * 4);
  ASSERT_THAT(run_case(body, in, out).findings, IsEmpty());
  for (int lane = 0; lane < 32; ++lane) {
    for (int v = 0; v < 4; ++v) {
      const int index = c_layout.index(lane, v);
      const int row = index % 16;
      const int column = index / 16;
      int expected = c[static_cast<std::size_t>(index)];
      for (int i = 0; i < k; ++i) {
        expected += a[static_cast<std::size_t>(row + 16 * i)] * b[static_cast<std::size_t>(column + 8 * i)];
      }
      EXPECT_EQ(std::bit_cast<float>(out[static_cast<std::size_t>(4 * lane + v)]),
                static_cast<float>(expected))
          << "k " << k << ", lane " << lane << ", value " << v;
    }
  }
}

TEST(MatrixInstructions, FragmentsOfProductsAreThoseOfCutlass) {
  expect_product(16, true);
  expect_product(16, false);
  expect_product(8, true);
  expect_product(8, false);
}

TEST(MatrixInstructions, ProductsAreExactAndInfinitiesTravel) {
  // A and B of ones times 2^-100 and 2^100, C of infinity in lane 0.
  std::vector<std::uint32_t> out(128);
  const Report report = run_case(
      "mov.u32 %r0, 0x0d800d80; mov.u32 %r1, 0x71807180; mov.u32 %r2, 0; setp.eq.u32 %p0, %r39, 0;"
      "selp.b32 %r3, 0x7f800000, 0, %p0;"
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%r4, %r5, %r6, %r7}, {%r0, %r0, %r0, %r0}, {%r1, "
      "%r1},"
      "{%r3, %r2, %r2, %r2}; mad.wide.u32 %d1, %r39, 16, %d9; st.global.v4.f32 [%d1], {%r4, %r5, %r6, %r7};",
      {}, out);
  EXPECT_THAT(report.findings, IsEmpty());
  EXPECT_EQ(std::bit_cast<float>(out[0]), std::numeric_limits<float>::infinity());
  EXPECT_EQ(std::bit_cast<float>(out[1]), 16.0F);
  EXPECT_EQ(std::bit_cast<float>(out[127]), 16.0F);
}

/// ldmatrix gives lane l the elements (l / 4, 2 (l % 4)) and the next of each 8 x 8 matrix; .trans of its
/// transpose. Rows are 16 bytes, here in reversed order so that addresses count.
void expect_loaded(int matrices, bool trans) {
  std::string body =
      "mov.u32 %r0, dynamic; mad.lo.u32 %r1, %r39, 16, %r0;";  // element (row, column) is 8 row + column
  for (int word = 0; word < 4; ++word) {
    body += "mad.lo.u32 %r2, %r39, 8, " + std::to_string(2 * word) + "; add.u32 %r3, %r2, 1;" +
            "shl.b32 %r3, %r3, 16; or.b32 %r3, %r3, %r2; st.shared.u32 [%r1+" + std::to_string(4 * word) +
            "], %r3;";
  }
  body += "bar.warp.sync -1; sub.u32 %r4, 31, %r39; mad.lo.u32 %r4, %r4, 16, %r0;";
  std::string list = "{%r10";
  for (int i = 1; i < matrices; ++i) {
    list += ", %r1" + std::to_string(i);
  }
  body += "ldmatrix.sync.aligned.m8n8.x" + std::to_string(matrices) + (trans ? ".trans" : "") +
          ".shared.b16 " + list + "}, [%r4]; mad.wide.u32 %d1, %r39, " + std::to_string(4 * matrices) +
          ", %d9;";
  for (int i = 0; i < matrices; ++i) {
    body += "st.global.u32 [%d1+" + std::to_string(4 * i) + "], %r1" + std::to_string(i) + ";";
  }
  std::vector<std::uint32_t> out(static_cast<std::size_t>(32 * matrices));
  CaseSetup setup;
  setup.dynamic_shared_bytes = 512;
  ASSERT_THAT(run_case(body, {}, out, setup).findings, IsEmpty());
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < matrices; ++i) {
      const auto element = [&](int row, int column) {
        const int stored_row = 31 - (8 * i + row);
        return static_cast<std::uint32_t>(8 * stored_row + column);
      };
      const int row = lane / 4;
      const int column = 2 * (lane % 4);
      const std::uint32_t low = trans ? element(column, row) : element(row, column);
      const std::uint32_t high = trans ? element(column + 1, row) : element(row, column + 1);
      EXPECT_EQ(out[static_cast<std::size_t>(lane * matrices + i)], low | high << 16)
          << lane << " " << i << trans;
    }
  }
}

TEST(MatrixInstructions, MatricesAreLoaded) {
  for (const int matrices : {1, 2, 4}) {
    expect_loaded(matrices, false);
    expect_loaded(matrices, true);
  }
}

TEST(MatrixInstructions, StoredMatricesComeBack) {
  for (const std::string trans : {"", ".trans"}) {
    std::vector<std::uint32_t> out(64);
    CaseSetup setup;
    setup.dynamic_shared_bytes = 512;
    const Report report = run_case(
        "mov.u32 %r0, dynamic; mad.lo.u32 %r0, %r39, 16, %r0; mad.lo.u32 %r1, %r39, 3, 7; mad.lo.u32 %r2, "
        "%r39, 5, 9;"
        "stmatrix.sync.aligned.m8n8.x2" +
            trans +
            ".shared.b16 [%r0], {%r1, %r2}; bar.warp.sync -1;"
            "ldmatrix.sync.aligned.m8n8.x2" +
            trans +
            ".shared.b16 {%r3, %r4}, [%r0];"
            "mad.wide.u32 %d1, %r39, 8, %d9; st.global.v2.u32 [%d1], {%r3, %r4};",
        {}, out, setup);
    EXPECT_THAT(report.findings, IsEmpty());
    for (std::uint32_t lane = 0; lane < 32; ++lane) {
      EXPECT_EQ(out[2 * lane], 3 * lane + 7);
      EXPECT_EQ(out[2 * lane + 1], 5 * lane + 9);
    }
  }
}

}  // namespace
}  // namespace hcp::ptx
