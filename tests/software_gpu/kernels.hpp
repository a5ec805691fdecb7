/// The kernels that the software GPU can launch: the host's functions that stand for them, and their PTX.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tests/ptx/module.hpp"

namespace hcp::software_gpu {

class Kernels {
 public:
  /// The host launches the kernel by the address of a function.
  void add_function(const void* function, std::string kernel) { names_[function] = std::move(kernel); }
  /// nullptr for any other address.
  [[nodiscard]] const std::string* name_of(const void* function) const;

  /// Kernels of the same name are replaced.
  /// @throws std::invalid_argument as ptx::Module::load
  void load(std::string text);
  /// As load(), but only names are looked for: the rest comes with the first launch.
  void load_later(std::string text);

  struct Loaded {
    std::shared_ptr<ptx::Module> module;  ///< holds the kernel, also when another of its name has come
    const ptx::Kernel* kernel = nullptr;  ///< nullptr if there is no such kernel
  };
  /// @throws std::invalid_argument as ptx::Module::load
  [[nodiscard]] Loaded find(const std::string& kernel);

 private:
  struct Source {
    std::string text;
    std::optional<ptx::Module> module;
  };
  std::map<const void*, std::string> names_;
  std::map<std::string, std::shared_ptr<Source>> sources_;  // by kernel; one that holds no kernel more goes
};

}  // namespace hcp::software_gpu
