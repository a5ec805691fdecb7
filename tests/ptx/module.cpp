#include "tests/ptx/module.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "tests/ptx/decode_kernel.hpp"
#include "tests/ptx/syntax.hpp"

namespace hcp::ptx {

namespace {

std::unique_ptr<ModuleVariable> make_variable(const VariableSyntax& syntax) {
  auto variable = std::make_unique<ModuleVariable>();
  variable->name = syntax.name;
  variable->writable = syntax.space == StateSpace::global;
  const auto bytes = static_cast<std::size_t>(syntax.elements * bytes_of(syntax.type));
  if (syntax.initial_bytes.size() > bytes) {
    refuse(syntax.line, "more initial values than '" + syntax.name + "' has elements");
  }
  variable->storage.resize(std::max<std::size_t>(bytes, 1));
  std::ranges::transform(syntax.initial_bytes, variable->storage.begin(),
                         [](std::uint8_t byte) { return std::byte{byte}; });
  return variable;
}

}  // namespace

Module Module::load(std::string_view text) {
  const ModuleSyntax syntax = parse_ptx(text);
  Module module;
  ModuleNames names;
  for (const VariableSyntax& variable : syntax.variables) {
    if (variable.space == StateSpace::shared) {
      names.shared[variable.name] = &variable;
    } else if (variable.space == StateSpace::global || variable.space == StateSpace::constant) {
      module.variables_.push_back(make_variable(variable));
      const bool is_global = variable.space == StateSpace::global;
      const auto address = reinterpret_cast<std::uintptr_t>(module.variables_.back()->storage.data());
      names.variables[variable.name] = {
          is_global ? Symbol::Kind::global : Symbol::Kind::constant, {}, 0, address};
    } else {
      refuse(variable.line, "variable '" + variable.name + "' outside of a function");
    }
  }
  for (const FunctionSyntax& function : syntax.functions) {
    if (!function.is_entry) {
      names.functions[function.name] = &function;
    }
  }
  for (const FunctionSyntax& function : syntax.functions) {
    if (function.is_entry) {
      module.kernels_.emplace(function.name, decode_kernel(function, names));
    }
  }
  return module;
}

const Kernel& Module::kernel(const std::string& name) const {
  const auto found = kernels_.find(name);
  if (found == kernels_.end()) {
    std::string known;
    for (const auto& [other, kernel] : kernels_) {
      known += " " + other;
    }
    throw std::invalid_argument{"no kernel '" + name + "' in this PTX, which has:" + known};
  }
  return found->second;
}

std::vector<std::string> Module::kernel_names() const {
  std::vector<std::string> names;
  for (const auto& [name, kernel] : kernels_) {
    names.push_back(name);
  }
  return names;
}

std::span<std::byte> Module::variable(const std::string& name) {
  const auto found = std::ranges::find_if(variables_, [&](const auto& one) { return one->name == name; });
  if (found == variables_.end()) {
    throw std::invalid_argument{"no variable '" + name + "' in this PTX"};
  }
  return (*found)->storage;
}

}  // namespace hcp::ptx
