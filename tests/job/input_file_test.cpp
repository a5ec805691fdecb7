// Input files that the test writes itself through HDF5's C interface, good and bad ones.

#include <gmock/gmock.h>
#include <hdf5.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "src/job/input.hpp"

namespace hcp {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

using Extents = std::vector<hsize_t>;

class InputFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(folder_);
    file_ = H5Fcreate(path().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    ASSERT_GE(file_, 0);
  }
  void TearDown() override {
    close();
    std::filesystem::remove_all(folder_);
  }

  [[nodiscard]] std::string path() const { return (folder_ / "input.h5").string(); }
  void close() {
    if (file_ >= 0) {
      ASSERT_GE(H5Fclose(file_), 0);
    }
    file_ = -1;
  }

  template <typename Number>
  void write(const char* name, hid_t stored, hid_t given, const Extents& extents,
             const std::vector<Number>& values) {
    const hid_t space = H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr);
    const hid_t dataset = H5Dcreate2(file_, name, stored, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    ASSERT_GE(dataset, 0);
    if (!values.empty()) {
      ASSERT_GE(H5Dwrite(dataset, given, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
    }
    H5Dclose(dataset);
    H5Sclose(space);
  }

  /// Values 0, 1, 2, ... times a quarter, from `first` on.
  void write_tensor(const char* name, const Extents& extents, float first, hid_t stored = H5T_IEEE_F32LE) {
    std::vector<float> values(
        std::accumulate(extents.begin(), extents.end(), std::size_t{1}, std::multiplies{}));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = 0.25F * (first + static_cast<float>(i));
    }
    write(name, stored, H5T_NATIVE_FLOAT, extents, values);
  }
  void write_qkv() {
    write_tensor("q", {6, 4, 8}, 0);
    write_tensor("k", {6, 2, 8}, 1000);
    write_tensor("v", {6, 2, 16}, 2000);
  }
  void write_doc_lengths(const std::vector<std::int64_t>& lengths) {
    write("doc_lengths", H5T_STD_I64LE, H5T_NATIVE_INT64, {lengths.size()}, lengths);
  }

  static std::vector<float> values(const InputSource& source, InputTensor tensor, const PositionSet& rows,
                                   std::int64_t first_head, std::int64_t heads, std::int64_t dim,
                                   DataType type = DataType::fp32, int layer = 0) {
    TensorView view{nullptr, type, count_of(rows), heads, dim};
    std::vector<std::byte> bytes(static_cast<std::size_t>(view.bytes()));
    view.data = bytes.data();
    source.fill(tensor, rows, first_head, layer, view);
    std::vector<float> wide(static_cast<std::size_t>(view.rows * view.row_elements()));
    widen(type, bytes.data(), wide.data(), wide.size());
    return wide;
  }

  void expect_refused(const std::string& because) {
    close();
    EXPECT_THAT([this] { static_cast<void>(open_input_file(path(), 0)); },
                ThrowsMessage<std::invalid_argument>(AllOf(HasSubstr(path()), HasSubstr(because))));
  }

  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("hcp_input_file_test_" + std::to_string(getpid()));
  hid_t file_ = H5I_INVALID_HID;
};

TEST_F(InputFileTest, TellsTheShapeAndReadsRowsAndHeads) {
  write_qkv();
  write_tensor("dout", {6, 4, 16}, 3000);
  write_tensor("out", {6, 4, 16}, 4000);
  write_doc_lengths({2, 0, 4});
  close();
  const InputFile file = open_input_file(path(), 0);
  EXPECT_EQ(file.shape, (ProblemShape{.seq_length = 6,
                                      .micro_batch_size = 1,
                                      .doc_lengths = {2, 0, 4},
                                      .kv_seq_length = 6,
                                      .kv_doc_lengths = {},
                                      .query_heads = 4,
                                      .kv_heads = 2,
                                      .kv_channels = 8,
                                      .v_channels = 16}));
  EXPECT_TRUE(file.source->has_out());

  const std::vector<float> q = values(*file.source, InputTensor::q, {{1, 2}, {4, 6}}, 1, 2, 8);
  ASSERT_EQ(q.size(), 3U * 2 * 8);
  const std::vector<int> rows{1, 4, 5};
  for (std::size_t i = 0; i < q.size(); ++i) {
    const int head = 1 + static_cast<int>(i / 8 % 2);
    EXPECT_EQ(q[i], 0.25F * static_cast<float>((rows[i / 16] * 4 + head) * 8 + static_cast<int>(i % 8)));
  }
  EXPECT_EQ(values(*file.source, InputTensor::k, {{0, 1}}, 1, 1, 8).front(), 0.25F * 1008);
  EXPECT_EQ(values(*file.source, InputTensor::v, {{5, 6}}, 1, 1, 16).back(), 0.25F * 2191);
  EXPECT_EQ(values(*file.source, InputTensor::dout, {{5, 6}}, 3, 1, 16).back(), 0.25F * 3383);
  EXPECT_EQ(values(*file.source, InputTensor::out, {{0, 1}}, 0, 1, 16).front(), 0.25F * 4000);
  EXPECT_EQ(values(*file.source, InputTensor::q, {{0, 6}}, 0, 4, 8, DataType::fp32, 3),
            values(*file.source, InputTensor::q, {{0, 6}}, 0, 4, 8))
      << "one layer stands for all";
  EXPECT_TRUE(values(*file.source, InputTensor::q, {}, 0, 4, 8).empty());
}

TEST_F(InputFileTest, WithoutDoutTheSyntheticOneIsTaken) {
  write_qkv();
  close();
  const InputFile file = open_input_file(path(), 11);
  EXPECT_FALSE(file.source->has_out());
  EXPECT_TRUE(file.shape.doc_lengths.empty());
  EXPECT_EQ(values(*file.source, InputTensor::dout, {{2, 4}}, 1, 2, 16),
            values(*make_synthetic_input(11), InputTensor::dout, {{2, 4}}, 1, 2, 16));
  EXPECT_THROW(values(*file.source, InputTensor::out, {{2, 4}}, 1, 2, 16), std::logic_error);
}

TEST_F(InputFileTest, Fp16IsReadAndEveryTypeIsRoundedOnce) {
  hid_t half = H5Tcopy(H5T_IEEE_F32LE);
  ASSERT_GE(H5Tset_fields(half, 15, 10, 5, 0, 10), 0);
  ASSERT_GE(H5Tset_size(half, 2), 0);
  ASSERT_GE(H5Tset_ebias(half, 15), 0);
  write("q", half, H5T_NATIVE_FLOAT, {1, 1, 8},
        std::vector<float>{0.1F, -2.0F, 65504.0F, 6e-8F, 0.0F, 1.0F, 3.0F, 4.0F});
  H5Tclose(half);
  write_tensor("k", {1, 1, 8}, 0);
  write_tensor("v", {1, 1, 8}, 1);
  close();
  const InputFile file = open_input_file(path(), 0);
  EXPECT_THAT(values(*file.source, InputTensor::q, {{0, 1}}, 0, 1, 8),
              ElementsAre(0x1.998p-4F, -2.0F, 65504.0F, 0x1p-24F, 0.0F, 1.0F, 3.0F, 4.0F));
  EXPECT_THAT(values(*file.source, InputTensor::q, {{0, 1}}, 0, 1, 8, DataType::bf16),
              ElementsAre(0x1.9ap-4F, -2.0F, 65536.0F, 0x1p-24F, 0.0F, 1.0F, 3.0F, 4.0F));
}

TEST_F(InputFileTest, RefusesFilesThatAreNone) {
  close();
  const auto refused = [](const std::string& path, const std::string& because) {
    EXPECT_THAT([&] { static_cast<void>(open_input_file(path, 0)); },
                ThrowsMessage<std::invalid_argument>(AllOf(HasSubstr(path), HasSubstr(because))));
  };
  refused((folder_ / "absent.h5").string(), "no such file");
  refused(folder_.string(), "not a file");
  const std::string text = (folder_ / "text.h5").string();
  std::ofstream{text} << "q, k, v\n";
  refused(text, "not an HDF5 file");
  const std::string empty = (folder_ / "empty.h5").string();
  std::ofstream{empty}.flush();
  refused(empty, "not an HDF5 file");
}

TEST_F(InputFileTest, RefusesATruncatedFile) {
  write_qkv();
  close();
  const auto size = std::filesystem::file_size(path());
  for (const auto kept : {size - 1, size / 2, std::uintmax_t{600}}) {
    std::filesystem::resize_file(path(), kept);
    expect_refused("truncated");
  }
}

TEST_F(InputFileTest, RefusesMissingDatasets) {
  write_tensor("q", {6, 4, 8}, 0);
  write_tensor("v", {6, 2, 16}, 0);
  expect_refused("no dataset k");
}

TEST_F(InputFileTest, RefusesAGroupInPlaceOfADataset) {
  write_qkv();
  H5Gclose(H5Gcreate2(file_, "dout", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  expect_refused("dataset dout is not a dataset");
}

TEST_F(InputFileTest, RefusesDatasetsOfAnotherRank) {
  write_tensor("q", {6, 32}, 0);
  write_tensor("k", {6, 2, 8}, 0);
  write_tensor("v", {6, 2, 16}, 0);
  expect_refused("dataset q has the shape [6, 32]; it has to be [tokens, heads, dim]");
}

TEST_F(InputFileTest, RefusesNoTokens) {
  write_tensor("q", {0, 4, 8}, 0);
  write_tensor("k", {0, 2, 8}, 0);
  write_tensor("v", {0, 2, 16}, 0);
  expect_refused("dataset q has the shape [0, 4, 8]");
}

TEST_F(InputFileTest, RefusesShapesThatDoNotBelongTogether) {
  write_tensor("q", {6, 4, 8}, 0);
  write_tensor("k", {6, 2, 16}, 0);
  write_tensor("v", {6, 2, 16}, 0);
  expect_refused(
      "dataset k has the shape [6, 2, 16]; with the other datasets it has to be [kv tokens, kv heads, dim "
      "of q] = [6, 2, 8]");
}

TEST_F(InputFileTest, RefusesValuesOfOtherTokens) {
  write_tensor("q", {6, 4, 8}, 0);
  write_tensor("k", {6, 2, 8}, 0);
  write_tensor("v", {5, 2, 16}, 0);
  expect_refused("dataset v has the shape [5, 2, 16]");
}

TEST_F(InputFileTest, KeysMayBeOtherTokensThanQueries) {
  write_tensor("q", {6, 4, 8}, 0);
  write_tensor("k", {9, 2, 8}, 1000);
  write_tensor("v", {9, 2, 16}, 2000);
  write_doc_lengths({2, 4});
  write("kv_doc_lengths", H5T_STD_I64LE, H5T_NATIVE_INT64, {2}, std::vector<std::int64_t>{0, 9});
  close();
  const InputFile file = open_input_file(path(), 0);
  EXPECT_EQ(file.shape, (ProblemShape{.seq_length = 6,
                                      .micro_batch_size = 1,
                                      .doc_lengths = {2, 4},
                                      .kv_seq_length = 9,
                                      .kv_doc_lengths = {0, 9},
                                      .query_heads = 4,
                                      .kv_heads = 2,
                                      .kv_channels = 8,
                                      .v_channels = 16}));
  EXPECT_EQ(values(*file.source, InputTensor::k, {{8, 9}}, 1, 1, 8).front(), 0.25F * (1000 + 17 * 8));
}

TEST_F(InputFileTest, RefusesDocumentsOfKeysThatAreNotTheKeys) {
  write_qkv();
  write("kv_doc_lengths", H5T_STD_I64LE, H5T_NATIVE_INT64, {2}, std::vector<std::int64_t>{2, 3});
  expect_refused("kv_doc_lengths sums to 5; the tensors have 6 tokens");
}

TEST_F(InputFileTest, RefusesAnOutOfAnotherShape) {
  write_qkv();
  write_tensor("out", {6, 2, 16}, 0);
  expect_refused("dataset out has the shape [6, 2, 16]");
}

TEST_F(InputFileTest, RefusesOtherTypes) {
  write_tensor("q", {6, 4, 8}, 0, H5T_IEEE_F64LE);
  write_tensor("k", {6, 2, 8}, 0);
  write_tensor("v", {6, 2, 16}, 0);
  expect_refused("dataset q has elements of another type (8 bytes each); use floating point of 2 or 4 bytes");
}

TEST_F(InputFileTest, RefusesIntegers) {
  write_tensor("q", {6, 4, 8}, 0);
  write_tensor("k", {6, 2, 8}, 0, H5T_STD_I32LE);
  write_tensor("v", {6, 2, 16}, 0);
  expect_refused("dataset k has elements of another type");
}

TEST_F(InputFileTest, RefusesDocumentsThatAreNotTheTokens) {
  write_qkv();
  write_doc_lengths({2, 3});
  expect_refused("doc_lengths sums to 5; the tensors have 6 tokens");
}

TEST_F(InputFileTest, RefusesDocumentsOfNegativeLength) {
  write_qkv();
  write_doc_lengths({4, -1, 3});
  expect_refused("holds the length -1");
}

TEST_F(InputFileTest, RefusesDocumentsWhoseLengthsOverflow) {
  write_qkv();
  write_doc_lengths({std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::max(), 8});
  expect_refused("holds the length 9223372036854775807");
}

TEST_F(InputFileTest, RefusesNaNAndInfinityInTheRowsThatAreRead) {
  std::vector<float> q(6 * 4 * 8, 1.0F);
  q[(3 * 4 + 2) * 8 + 5] = std::nanf("");
  q[(5 * 4 + 0) * 8 + 1] = -std::numeric_limits<float>::infinity();
  write("q", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, {6, 4, 8}, q);
  write_tensor("k", {6, 2, 8}, 0);
  write_tensor("v", {6, 2, 16}, 0);
  close();
  const InputFile file = open_input_file(path(), 0);
  EXPECT_NO_THROW(values(*file.source, InputTensor::q, {{0, 3}, {4, 5}}, 0, 4, 8));
  EXPECT_NO_THROW(values(*file.source, InputTensor::q, {{3, 4}}, 0, 2, 8));
  EXPECT_THAT(
      [&] {
        values(*file.source, InputTensor::q, {{2, 5}}, 1, 3, 8);
      },
      ThrowsMessage<std::invalid_argument>(AllOf(HasSubstr("nan at [3, 2, 5]"), HasSubstr(path()))));
  EXPECT_THAT(
      [&] {
        values(*file.source, InputTensor::q, {{4, 6}}, 0, 4, 8);
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("-inf at [5, 0, 1]")));
}

TEST_F(InputFileTest, RefusesValuesBeyondTheStorageType) {
  write_tensor("q", {6, 4, 8}, 4.0F * 70000);
  write_tensor("k", {6, 2, 8}, 0);
  write_tensor("v", {6, 2, 16}, 0);
  close();
  const InputFile file = open_input_file(path(), 0);
  EXPECT_NO_THROW(values(*file.source, InputTensor::q, {{0, 1}}, 0, 4, 8, DataType::bf16));
  EXPECT_THAT(
      [&] {
        values(*file.source, InputTensor::q, {{0, 1}}, 0, 4, 8, DataType::fp16);
      },
      ThrowsMessage<std::invalid_argument>(AllOf(HasSubstr("70000"), HasSubstr("finite in fp16"))));
}

TEST_F(InputFileTest, ADamagedChunkIsAnInputError) {
  const Extents extents{64, 4, 8};
  const Extents chunk{16, 4, 8};
  const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
  ASSERT_GE(H5Pset_chunk(creation, 3, chunk.data()), 0);
  ASSERT_GE(H5Pset_fletcher32(creation), 0);
  const hid_t space = H5Screate_simple(3, extents.data(), nullptr);
  const hid_t dataset = H5Dcreate2(file_, "q", H5T_IEEE_F32LE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  const std::vector<float> ones(64 * 4 * 8, 1.0F);
  ASSERT_GE(H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, ones.data()), 0);
  const Extents last_chunk{48, 0, 0};
  haddr_t address = 0;
  hsize_t bytes = 0;
  ASSERT_GE(H5Dget_chunk_info_by_coord(dataset, last_chunk.data(), nullptr, &address, &bytes), 0);
  H5Dclose(dataset);
  H5Sclose(space);
  H5Pclose(creation);
  write_tensor("k", extents, 0);
  write_tensor("v", extents, 0);
  close();
  std::fstream damaged{path(), std::ios::in | std::ios::out | std::ios::binary};
  damaged.seekp(static_cast<std::streamoff>(address + 5));
  damaged.put('x');
  damaged.close();
  const InputFile file = open_input_file(path(), 0);
  EXPECT_NO_THROW(values(*file.source, InputTensor::q, {{0, 48}}, 0, 4, 8));
  EXPECT_THAT(
      [&] {
        values(*file.source, InputTensor::q, {{50, 51}}, 0, 4, 8);
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("cannot be read from row 50 on")));
}

TEST_F(InputFileTest, ATensorThatDoesNotFitIsAnErrorOfTheProgram) {
  write_qkv();
  close();
  const InputFile file = open_input_file(path(), 0);
  EXPECT_THROW(values(*file.source, InputTensor::k, {{0, 1}}, 1, 2, 8), std::logic_error);
  EXPECT_THROW(values(*file.source, InputTensor::q, {{0, 1}}, 0, 4, 16), std::logic_error);
}

}  // namespace
}  // namespace hcp
