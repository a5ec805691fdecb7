#include "tests/ptx/decoding.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

namespace hcp::ptx {

namespace {

const std::map<std::string_view, SpecialRegister>& special_registers() {
  static const std::map<std::string_view, SpecialRegister> names{
      {"%tid.x", SpecialRegister::tid_x},
      {"%tid.y", SpecialRegister::tid_y},
      {"%tid.z", SpecialRegister::tid_z},
      {"%ntid.x", SpecialRegister::ntid_x},
      {"%ntid.y", SpecialRegister::ntid_y},
      {"%ntid.z", SpecialRegister::ntid_z},
      {"%ctaid.x", SpecialRegister::ctaid_x},
      {"%ctaid.y", SpecialRegister::ctaid_y},
      {"%ctaid.z", SpecialRegister::ctaid_z},
      {"%nctaid.x", SpecialRegister::nctaid_x},
      {"%nctaid.y", SpecialRegister::nctaid_y},
      {"%nctaid.z", SpecialRegister::nctaid_z},
      {"%laneid", SpecialRegister::laneid},
      {"%warpid", SpecialRegister::warpid},
      {"%nwarpid", SpecialRegister::nwarpid},
      {"%lanemask_eq", SpecialRegister::lanemask_eq},
      {"%lanemask_le", SpecialRegister::lanemask_le},
      {"%lanemask_lt", SpecialRegister::lanemask_lt},
      {"%lanemask_ge", SpecialRegister::lanemask_ge},
      {"%lanemask_gt", SpecialRegister::lanemask_gt},
      {"%dynamic_smem_size", SpecialRegister::dynamic_smem_size},
      {"%total_smem_size", SpecialRegister::total_smem_size},
  };
  return names;
}

// "0f3F800000", "0d3FF0000000000000": the bits.
std::optional<std::uint64_t> float_bits(const std::string& word, int bytes) {
  const std::string_view prefixes = bytes == 4 ? "fF" : "dD";
  const std::size_t digits = 2 * static_cast<std::size_t>(bytes);
  if (word.size() != digits + 2 || word[0] != '0' || prefixes.find(word[1]) == std::string_view::npos) {
    return std::nullopt;
  }
  return std::stoull(word.substr(2), nullptr, 16);
}

std::optional<std::uint64_t> integer_bits(std::string_view word) {
  const bool negative = word.starts_with("-");
  word.remove_prefix(negative ? 1 : 0);
  int base = 10;
  if (word.starts_with("0x") || word.starts_with("0X")) {
    base = 16;
    word.remove_prefix(2);
  }
  if (word.ends_with("U")) {
    word.remove_suffix(1);
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value, base);
  if (error != std::errc{} || end != word.data() + word.size()) {
    return std::nullopt;
  }
  return negative ? ~value + 1 : value;
}

}  // namespace

Decoding::Decoding(const InstructionSyntax& syntax, const SymbolTable& symbols, KernelBuilder& kernel)
    : syntax_{syntax}, symbols_{symbols}, kernel_{kernel} {
  result.line = syntax.line;
  result.guard = kernel.always();
  if (!syntax.guard.empty()) {
    result.guard = predicate(syntax.guard);
    result.guard_flip = syntax.guard_negated ? all_lanes : 0;
  }
}

bool Decoding::take(std::string_view modifier) {
  const bool found =
      next_modifier_ < syntax_.modifiers.size() && syntax_.modifiers[next_modifier_] == modifier;
  next_modifier_ += found ? 1 : 0;
  return found;
}

std::string Decoding::take_one_of(std::initializer_list<std::string_view> choices) {
  const auto* const found =
      std::ranges::find_if(choices, [&](std::string_view choice) { return take(choice); });
  return found == choices.end() ? "" : std::string{*found};
}

void Decoding::require(std::string_view modifier) {
  if (!take(modifier)) {
    refuse("modifier ." + std::string{modifier} + " is due");
  }
}

ScalarType Decoding::type() {
  const auto found = next_modifier_ < syntax_.modifiers.size()
                         ? scalar_type(syntax_.modifiers[next_modifier_])
                         : std::nullopt;
  if (!found) {
    refuse("a type is due");
  }
  ++next_modifier_;
  return *found;
}

ScalarType Decoding::type_of(std::initializer_list<ScalarType> allowed) {
  const ScalarType found = type();
  if (std::ranges::find(allowed, found) == allowed.end()) {
    refuse("type");
  }
  return found;
}

void Decoding::expect_operands(std::size_t count) const {
  if (operand_count() != count) {
    refuse(std::to_string(operand_count()) + " operands where " + std::to_string(count) + " are due");
  }
}

const OperandSyntax& Decoding::operand(std::size_t index) const {
  if (index >= operand_count()) {
    refuse("operand " + std::to_string(index) + " is missing");
  }
  return syntax_.operands[index];
}

Operand Decoding::destination(std::size_t index, ScalarType type) {
  return destination(operand(index), type);
}

Operand Decoding::destination(const OperandSyntax& operand, ScalarType type) {
  int bytes = 0;
  const Operand place = wide_register(operand, type, bytes);
  if (bytes != std::max(2, bytes_of(type))) {
    refuse("register " + operand.word + " is not as wide as the type");
  }
  return place;
}

Operand Decoding::wide_register(const OperandSyntax& operand, ScalarType type, int& bytes) {
  const Symbol* found = operand.kind == OperandSyntax::Kind::word ? symbols_.find(operand.word) : nullptr;
  if (operand.word == "_") {  // a result that nobody reads
    bytes = std::max(2, bytes_of(type));
    return kernel_.add_register(bytes);
  }
  if (found == nullptr || found->kind != Symbol::Kind::register_ || found->bytes == 0 || operand.negated ||
      !operand.second.empty()) {
    refuse("operand '" + operand.word + "' where a register is due");
  }
  bytes = found->bytes;
  if (bytes < bytes_of(type)) {
    refuse("register " + operand.word + " is narrower than the type");
  }
  return found->place;
}

Operand Decoding::source(std::size_t index, ScalarType type) {
  return source(operand(index), type);
}

Operand Decoding::source(const OperandSyntax& operand, ScalarType type) {
  int bytes = 0;
  const Operand place = wide_source(operand, type, bytes);
  if (bytes != std::max(2, bytes_of(type))) {
    refuse("operand " + operand.word + " is not as wide as the type");
  }
  return place;
}

Operand Decoding::wide_source(const OperandSyntax& operand, ScalarType type, int& bytes) {
  if (operand.kind != OperandSyntax::Kind::word || operand.negated || !operand.second.empty()) {
    refuse("operand '" + operand.word + "'");
  }
  bytes = std::max(2, bytes_of(type));
  const std::string& word = operand.word;
  const Symbol* found = symbols_.find(word);
  if (found != nullptr && found->kind == Symbol::Kind::register_) {
    return wide_register(operand, type, bytes);
  }
  if (found != nullptr) {
    return symbol_value(*found, bytes);
  }
  if (word.starts_with("%")) {
    const auto special = special_registers().find(word);
    if (special == special_registers().end()) {
      refuse("register " + word);
    }
    bytes = 4;
    return kernel_.special(special->second);
  }
  return kernel_.constant(number(word, type), bytes);
}

std::uint64_t Decoding::number(const std::string& word, ScalarType type) const {
  if (word == "WARP_SZ") {
    return warp_lanes;
  }
  const bool may_be_float = bytes_of(type) == 4 || bytes_of(type) == 8;
  if (const auto bits = may_be_float ? float_bits(word, bytes_of(type)) : std::nullopt) {
    return *bits;
  }
  const auto bits = integer_bits(word);
  if (!bits || type == ScalarType::f32 || type == ScalarType::f64) {
    refuse("operand '" + word + "'");
  }
  return *bits;
}

Operand Decoding::symbol_value(const Symbol& symbol, int bytes) {
  if (symbol.kind == Symbol::Kind::dynamic_shared) {
    return kernel_.dynamic_shared(bytes, static_cast<std::int64_t>(symbol.value));
  }
  if (symbol.kind == Symbol::Kind::call_param) {
    refuse("the address of a parameter of a called function");
  }
  return kernel_.constant(symbol.value, bytes);
}

Operand Decoding::predicate(std::size_t index) {
  const OperandSyntax& found = operand(index);
  if (found.kind != OperandSyntax::Kind::word || !found.second.empty()) {
    refuse("operand '" + found.word + "' where a predicate is due");
  }
  const Operand place = predicate(found.word);
  return found.negated ? place.negated() : place;
}

Operand Decoding::predicate(const std::string& word) {
  const Symbol* found = symbols_.find(word);
  if (word == "_") {
    return kernel_.add_register(0);
  }
  if (found == nullptr || found->kind != Symbol::Kind::register_ || found->bytes != 0) {
    refuse("operand '" + word + "' where a predicate is due");
  }
  return found->place;
}

const std::vector<OperandSyntax>& Decoding::list(std::size_t index, std::size_t count) const {
  const OperandSyntax& found = operand(index);
  if (found.kind != OperandSyntax::Kind::list || found.elements.size() != count) {
    refuse("a list of " + std::to_string(count) + " operands is due");
  }
  return found.elements;
}

std::uint64_t Decoding::immediate(std::size_t index) const {
  const OperandSyntax& found = operand(index);
  const auto bits = found.kind == OperandSyntax::Kind::word ? integer_bits(found.word) : std::nullopt;
  if (!bits) {
    refuse("operand '" + found.word + "' where a number is due");
  }
  return *bits;
}

const Symbol* Decoding::variable(const OperandSyntax& operand) const {
  const Symbol* found = operand.word.empty() ? nullptr : symbols_.find(operand.word);
  return found != nullptr && found->kind != Symbol::Kind::register_ ? found : nullptr;
}

Address Decoding::address(std::size_t index) {
  const OperandSyntax& found = operand(index);
  if (found.kind != OperandSyntax::Kind::address) {
    refuse("operand '" + found.word + "' where an address is due");
  }
  if (found.word.empty()) {
    return {kernel_.constant(0, 8), found.displacement, false};
  }
  if (const Symbol* named = variable(found)) {
    const bool is_call_param = named->kind == Symbol::Kind::call_param;
    return {is_call_param ? kernel_.constant(named->value, 8) : symbol_value(*named, 8), found.displacement,
            false};
  }
  const Symbol* base = symbols_.find(found.word);
  if (base == nullptr || (base->bytes != 4 && base->bytes != 8)) {
    refuse("address base '" + found.word + "'");
  }
  return {base->place, found.displacement, base->bytes == 4};
}

void Decoding::expect_end() const {
  if (next_modifier_ < syntax_.modifiers.size()) {
    refuse("modifier ." + syntax_.modifiers[next_modifier_]);
  }
}

void Decoding::refuse(const std::string& what) const {
  ptx::refuse(syntax_.line, what + " is not known or not right here: " + syntax_.text);
}

}  // namespace hcp::ptx
