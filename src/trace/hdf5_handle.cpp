#include "src/trace/hdf5_handle.hpp"

#include <algorithm>
#include <string_view>

#include "src/trace/trace_file.hpp"

namespace hcp {
namespace {

// The library's clean-up at exit closes what is still open, and crashes (1.10.8) on a file that could not be
// written. It must be switched off before the first use of the library, hence not in a function.
[[maybe_unused]] const herr_t no_clean_up_at_exit = H5dont_atexit();

/// "H5Dwrite: can't write data; H5FD__sec2_write: file write failed: ...". Each entry once: a failed flush
/// tells the same story for every chunk.
std::string error_stack_text() {
  std::string text;
  const H5E_walk2_t append_entry = [](unsigned, const H5E_error2_t* entry, void* target) -> herr_t {
    auto& all = *static_cast<std::string*>(target);
    const std::string function = std::string{entry->func_name} + ": ";
    if (all.find(function) != std::string::npos) return 0;
    if (!all.empty()) all += "; ";
    all += function + entry->desc;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, append_entry, &text);
  std::replace(text.begin(), text.end(), '\n', ' ');  // ctime() inside a description ends its line
  return text;
}

/// What the operating system said, quoted deep in the stack ("No space left on device"); else empty.
std::string operating_system_reason(std::string_view stack) {
  constexpr std::string_view opening = "error message = '";
  const auto found = stack.find(opening);
  if (found == std::string_view::npos) return {};
  const auto begin = found + opening.size();
  return std::string{stack.substr(begin, stack.find('\'', begin) - begin)};
}

}  // namespace

void silence_hdf5() {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

hid_t check_hdf5(hid_t result, const std::string& call) {
  if (result >= 0) [[likely]] {
    return result;
  }
  const std::string stack = error_stack_text();
  const std::string reason = operating_system_reason(stack);
  // A full disk needs no thirty lines about the library's insides.
  throw TraceError{call + " failed: " + (reason.empty() ? stack : reason)};
}

}  // namespace hcp
