#include "tests/software_gpu/kernels.hpp"

#include <utility>

namespace hcp::software_gpu {

const std::string* Kernels::name_of(const void* function) const {
  const auto found = names_.find(function);
  return found == names_.end() ? nullptr : &found->second;
}

void Kernels::load(std::string text) {
  const auto source = std::make_shared<Source>();
  source->module = ptx::Module::load(text);
  for (const std::string& kernel : source->module->kernel_names()) {
    sources_[kernel] = source;
  }
}

void Kernels::load_later(std::string text) {
  const auto source = std::make_shared<Source>();
  source->text = std::move(text);
  constexpr std::string_view entry = ".entry ";
  for (std::size_t at = source->text.find(entry); at != std::string::npos;
       at = source->text.find(entry, at + 1)) {
    const std::size_t begin = at + entry.size();
    sources_[source->text.substr(begin, source->text.find('(', begin) - begin)] = source;
  }
}

Kernels::Loaded Kernels::find(const std::string& kernel) {
  const auto found = sources_.find(kernel);
  if (found == sources_.end()) {
    return {};
  }
  Source& source = *found->second;
  if (!source.module) {
    source.module = ptx::Module::load(source.text);
    source.text.clear();
  }
  return {{found->second, &*source.module}, &source.module->kernel(kernel)};
}

}  // namespace hcp::software_gpu
