/// Text inside a row of the trace file.
///
/// A file that is read while it is written cannot hold text of variable length, so every text column has a
/// fixed number of bytes, filled up with zeros.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

namespace hcp {

/// At most `Capacity` bytes of UTF-8. Trivially copyable, so that rows travel between ranks as bytes.
template <std::size_t Capacity>
class FixedString {
 public:
  constexpr FixedString() = default;

  /// @throws std::invalid_argument if `text` is longer than `Capacity` bytes
  constexpr FixedString(
      std::string_view text) {  // NOLINT(google-explicit-constructor): a row reads as its text
    if (text.size() > Capacity) {
      throw std::invalid_argument{"text of " + std::to_string(text.size()) + " bytes does not fit the " +
                                  std::to_string(Capacity) + " bytes of its column in the trace file: \"" +
                                  std::string{text.substr(0, 40)} + "...\""};
    }
    std::copy(text.begin(), text.end(), bytes_.begin());
  }
  constexpr FixedString(const char* text) : FixedString{std::string_view{text}} {}         // NOLINT
  constexpr FixedString(const std::string& text) : FixedString{std::string_view{text}} {}  // NOLINT

  /// `text`, or as much of it as fits before "...", never half a UTF-8 character.
  [[nodiscard]] static constexpr FixedString truncated(std::string_view text) {
    static_assert(Capacity > 3);
    if (text.size() <= Capacity) return FixedString{text};
    std::size_t end = Capacity - 3;
    const auto continues_character = [&](std::size_t at) { return (text[at] & 0xC0) == 0x80; };
    while (end > 0 && continues_character(end)) --end;
    FixedString result{text.substr(0, end)};
    std::fill_n(result.bytes_.begin() + static_cast<std::ptrdiff_t>(end), 3, '.');
    return result;
  }

  [[nodiscard]] constexpr std::string_view view() const {
    const auto end = std::find(bytes_.begin(), bytes_.end(), '\0');
    return {bytes_.data(), static_cast<std::size_t>(end - bytes_.begin())};
  }
  friend constexpr bool operator==(const FixedString&, const FixedString&) = default;

 private:
  std::array<char, Capacity> bytes_{};
};

}  // namespace hcp
