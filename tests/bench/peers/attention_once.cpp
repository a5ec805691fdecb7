/// Attention on one rank, run when asked to: the half of tests/bench/peers/compare.py that is ours. It stays
/// alive between the runs, so that they can alternate with those of another library.
///
///   bench_attention_once THREADS
///
/// First prints the instruction set, then answers each line that it reads with one:
///   case HEADS DIM TOKENS fp32|bf16|fp16 no_mask|causal fwd|fwdbwd   -> ready
///   run CALLS                                                        -> the seconds that all of them took
///   write FILE                                                       -> written
/// A file holds out and, after fwdbwd, dq, dk and dv, one after the other, each [tokens, heads, dim] in fp32.
#include <array>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/attention_kernel.hpp"
#include "kernels/attention_mask.hpp"
#include "kernels/buffer.hpp"
#include "kernels/cpu/cpu_isa.hpp"
#include "kernels/data_type.hpp"
#include "kernels/stopwatch.hpp"

namespace {

using namespace hcp;

struct Case {
  std::int64_t heads = 0;
  std::int64_t dim = 0;
  std::int64_t tokens = 0;
  DataType type = DataType::fp32;
  bool causal = false;
  bool backward = false;
};

/// Element `index` of operand `number`: uniform in [-1, 1), exact in fp32, the same in torch_attention.py,
/// where a period makes long operands quickly.
/// @source the finaliser of MurmurHash3 (A. Appleby, public domain), constants 0x85ebca6b and 0xc2b2ae35
float element(std::uint32_t number, std::uint32_t index) {
  constexpr std::uint32_t period = 1U << 20U;
  std::uint32_t bits = (index % period) ^ (number << 28U);
  bits = (bits ^ (bits >> 16U)) * 0x85ebca6bU;
  bits = (bits ^ (bits >> 13U)) * 0xc2b2ae35U;
  bits ^= bits >> 16U;
  return static_cast<float>(bits >> 8U) * 0x1p-23F - 1.0F;
}

/// One case with its operands and results. A run does what a rank with the whole sequence does: from q, k, v
/// (and dout) in the storage type to out (and dq, dk, dv) in the storage type.
class Attention {
 public:
  Attention(const Case& setup, int threads)
      : setup_{setup},
        offsets_{0, setup.tokens},
        positions_{0, setup.tokens},
        mask_{setup.causal ? AttentionMask::causal(offsets_) : AttentionMask::no_mask(offsets_)},
        rule_{&mask_, {}, 1.0F / std::sqrt(static_cast<float>(setup.dim))},
        kernel_{make_cpu_attention_kernel(threads)} {
    for (std::uint32_t number = 0; number < operands; ++number) {
      stored_.push_back(make_buffer(elements(), setup.type));
      fill_operand(number);
    }
    for (int i = 0; i < results; ++i) {
      sums_.push_back(make_buffer(elements(), DataType::fp32));
      stored_.push_back(make_buffer(elements(), setup.type));
    }
    for (int i = 0; i < row_values; ++i) {
      rows_.push_back(make_buffer(setup.tokens * setup.heads, DataType::fp32));
    }
  }

  void run() {
    forward();
    if (setup_.backward) {
      backward();
    }
  }

  void write(const std::string& path) const {
    std::ofstream file{path, std::ios::binary};
    std::vector<float> values(static_cast<std::size_t>(elements()));
    for (int i = 0; i < (setup_.backward ? results : 1); ++i) {
      widen(setup_.type, stored_[static_cast<std::size_t>(operands + i)].data(), values.data(),
            values.size());
      file.write(reinterpret_cast<const char*>(values.data()),
                 static_cast<std::streamsize>(values.size() * sizeof(float)));
    }
    if (!file.flush()) {
      throw std::runtime_error("cannot write " + path);
    }
  }

 private:
  static constexpr int operands = 4;    // q, k, v, dout
  static constexpr int results = 4;     // out, dq, dk, dv
  static constexpr int row_values = 4;  // max, sum, lse, delta

  [[nodiscard]] std::int64_t elements() const { return setup_.tokens * setup_.heads * setup_.dim; }

  [[nodiscard]] Buffer make_buffer(std::int64_t count, DataType type) {
    return {ledger_, MemoryCategory::result, count * static_cast<std::int64_t>(size_of(type))};
  }

  void fill_operand(std::uint32_t number) {
    std::vector<float> values(static_cast<std::size_t>(elements()));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = element(number, static_cast<std::uint32_t>(i));
    }
    round_to(setup_.type, values.data(), stored_[number].data(), values.size());
  }

  [[nodiscard]] ConstTensorView view(int i) const {
    return {stored_[static_cast<std::size_t>(i)].data(), setup_.type, setup_.tokens, setup_.heads,
            setup_.dim};
  }
  [[nodiscard]] float* sum(int i) const {
    return reinterpret_cast<float*>(sums_[static_cast<std::size_t>(i)].data());
  }
  [[nodiscard]] float* row_value(int i) const {
    return reinterpret_cast<float*>(rows_[static_cast<std::size_t>(i)].data());
  }
  [[nodiscard]] QueryBlock query() const { return {view(0), {&positions_, 1}}; }
  [[nodiscard]] KvBlock kv() const { return {view(1), view(2), {&positions_, 1}}; }

  void store(int result) {
    const std::int64_t width = setup_.heads * setup_.dim;
    kernel_->copy_rows({sums_[static_cast<std::size_t>(result)].data(), DataType::fp32, width},
                       {stored_[static_cast<std::size_t>(operands + result)].data(), setup_.type, width},
                       setup_.tokens, width);
  }

  void forward() {
    const RunningOutput running{sum(0), row_value(0), row_value(1)};
    const std::int64_t rows = setup_.tokens * setup_.heads;
    kernel_->fill(running.out, elements(), 0.0F);
    kernel_->fill(running.max, rows, -std::numeric_limits<float>::infinity());
    kernel_->fill(running.sum, rows, 0.0F);
    kernel_->forward_block(rule_, query(), kv(), running);
    kernel_->finish_forward(running, setup_.tokens, setup_.heads, setup_.dim, row_value(2));
    store(0);
  }

  void backward() {
    const ConstTensorView dout = view(3);
    kernel_->row_dot(view(operands), dout, row_value(3));
    for (int i = 1; i < results; ++i) {
      kernel_->fill(sum(i), elements(), 0.0F);
    }
    kernel_->backward_block(rule_, {query(), dout, row_value(2), row_value(3), sum(1)}, kv(),
                            {sum(2), sum(3)});
    for (int i = 1; i < results; ++i) {
      store(i);
    }
  }

  Case setup_;
  std::array<std::int64_t, 2> offsets_;
  PositionRange positions_;
  AttentionMask mask_;
  BlockRule rule_;
  std::unique_ptr<AttentionKernel> kernel_;
  MemoryLedger ledger_;
  std::vector<Buffer> stored_;  ///< operands, then results, each [tokens, heads, dim] in the storage type
  std::vector<Buffer> sums_;    ///< the results in fp32
  std::vector<Buffer> rows_;    ///< [tokens, heads] each
};

Case parse_case(std::istream& words) {
  Case setup;
  std::string type, mask, pass;
  if (!(words >> setup.heads >> setup.dim >> setup.tokens >> type >> mask >> pass) || setup.heads < 1 ||
      setup.tokens < 1) {
    throw std::invalid_argument("expected: case HEADS DIM TOKENS fp32|bf16|fp16 no_mask|causal fwd|fwdbwd");
  }
  setup.type = parse_data_type(type);
  setup.causal = mask == "causal";
  setup.backward = pass == "fwdbwd";
  return setup;
}

double run_calls(Attention& attention, int calls) {
  const double begin = now_s();
  for (int i = 0; i < calls; ++i) {
    attention.run();
  }
  return now_s() - begin;
}

void answer(int threads) {
  std::cout << cpu_isa_name() << std::endl;
  std::optional<Attention> attention;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words{line};
    std::string command, file;
    int calls = 0;
    words >> command;
    if (command == "case") {
      attention.reset();  // first, so that two cases never share the memory
      attention.emplace(parse_case(words), threads);
      std::cout << "ready" << std::endl;
    } else if (command == "run" && attention && words >> calls) {
      std::cout << std::setprecision(9) << run_calls(*attention, calls) << std::endl;
    } else if (command == "write" && attention && words >> file) {
      attention->write(file);
      std::cout << "written" << std::endl;
    } else {
      throw std::invalid_argument("cannot do '" + line + "'; first a case, then run CALLS or write FILE");
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 2) {
      throw std::invalid_argument("usage: bench_attention_once THREADS");
    }
    answer(std::stoi(argv[1]));
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "bench_attention_once: " << error.what() << '\n';
    return 1;
  }
}
