#include "tests/software_gpu/nccl/data_type.hpp"

#include <cstring>
#include <iterator>
#include <stdexcept>
#include <string>

namespace hcp::software_gpu {
namespace {

struct DataType {
  std::size_t bytes;
  std::string_view name;
};

/// By ncclDataType_t.
constexpr DataType types[] = {{1, "int8"},    {1, "uint8"},    {4, "int32"},      {4, "uint32"},
                              {8, "int64"},   {8, "uint64"},   {2, "float16"},    {4, "float32"},
                              {8, "float64"}, {2, "bfloat16"}, {1, "float8e4m3"}, {1, "float8e5m2"}};

bool is_type(ncclDataType_t type) {
  return type >= 0 && type < std::ssize(types);
}

template <typename Element>
void add_elements(std::span<std::byte> sum, std::span<const std::byte> terms) {
  for (std::size_t at = 0; at < sum.size(); at += sizeof(Element)) {
    Element a{};
    Element b{};
    std::memcpy(&a, &sum[at], sizeof a);
    std::memcpy(&b, &terms[at], sizeof b);
    a = static_cast<Element>(a + b);
    std::memcpy(&sum[at], &a, sizeof a);
  }
}

}  // namespace

std::size_t bytes_of(ncclDataType_t type) {
  return is_type(type) ? types[type].bytes : 0;
}

std::string_view name_of(ncclDataType_t type) {
  return is_type(type) ? types[type].name : "no type";
}

bool can_add(ncclDataType_t type) {
  return type == ncclFloat32 || type == ncclFloat64;
}

void add(ncclDataType_t type, std::span<std::byte> sum, std::span<const std::byte> terms) {
  switch (type) {
    case ncclFloat32:
      return add_elements<float>(sum, terms);
    case ncclFloat64:
      return add_elements<double>(sum, terms);
    default:
      throw std::invalid_argument{"cannot add " + std::string{name_of(type)}};
  }
}

}  // namespace hcp::software_gpu
