#include "tests/mutation/kernel_instance.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string_view>

namespace hcp::mutation {
namespace {

constexpr std::string_view home = "hcp::cuda::";

/// Without the namespace: "void forward<Bf16, 64, 64, false>(ForwardParameters)".
std::string demangled(const std::string& mangled) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name{
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), &std::free};
  std::string text = status == 0 ? name.get() : "";
  if (text.find(home) == std::string::npos) {
    throw std::invalid_argument{"'" + mangled + "' is no kernel of " + std::string{home}};
  }
  for (std::size_t at = 0; (at = text.find(home)) != std::string::npos;) {
    text.erase(at, home.size());
  }
  return text;
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find(", ", begin), list.size());
    parts.push_back(list.substr(begin, end - begin));
    begin = end + 2;
  }
  return parts;
}

/// KernelEntry tells kernels for one gradient apart by their names.
std::string entry_of(const std::string& family, const std::vector<std::string>& arguments) {
  const std::string last = arguments.empty() ? "" : arguments.back();
  return last == "(KeyGradients)1" ? family + "_dk" : last == "(KeyGradients)2" ? family + "_dv" : family;
}

}  // namespace

KernelInstance instance_of(const std::string& mangled) {
  std::string text = demangled(mangled);
  text.erase(text.rfind('('));
  text.erase(0, text.starts_with("void ") ? 5 : 0);
  const std::size_t open = std::min(text.find('<'), text.size());
  KernelInstance instance{.family = text.substr(0, open), .arguments = {}, .entry = {}};
  if (open < text.size()) {
    instance.arguments = split(text.substr(open + 1, text.size() - open - 2));
  }
  instance.entry = entry_of(instance.family, instance.arguments);
  return instance;
}

std::string KernelInstance::name() const {
  std::string text = entry;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    text += (i == 0 ? "<" : ", ") + arguments[i];
  }
  return text + (arguments.empty() ? "" : ">");
}

DataType KernelInstance::type(std::size_t argument) const {
  const std::string& word = arguments.at(argument);
  return word == "Bf16" ? DataType::bf16 : word == "Fp16" ? DataType::fp16 : parse_data_type("fp32");
}

int KernelInstance::number(std::size_t argument) const {
  return std::stoi(arguments.at(argument));
}

bool KernelInstance::flag(std::size_t argument) const {
  return arguments.at(argument) == "true";
}

}  // namespace hcp::mutation
