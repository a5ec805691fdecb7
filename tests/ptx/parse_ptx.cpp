#include <algorithm>
#include <charconv>
#include <cstddef>
#include <map>
#include <stdexcept>
#include <utility>

#include "tests/ptx/syntax.hpp"
#include "tests/ptx/token.hpp"

namespace hcp::ptx {

void refuse(int line, const std::string& what) {
  throw std::invalid_argument{"PTX line " + std::to_string(line) + ": " + what};
}

namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_{text}, tokens_{tokens_of(text)} { note_files(); }

  ModuleSyntax module() {
    ModuleSyntax result;
    while (!peek().is("")) {
      module_item(result);
    }
    return result;
  }

 private:
  [[nodiscard]] const Token& peek(std::size_t ahead = 0) const {
    return tokens_.at(std::min(position_ + ahead, tokens_.size() - 1));
  }

  const Token& next() {
    if (peek().is("")) {
      refuse(peek().line, "the text ends too early");
    }
    return tokens_.at(position_++);
  }

  bool take(std::string_view text) {
    if (!peek().is(text)) {
      return false;
    }
    ++position_;
    return true;
  }

  void expect(std::string_view text) {
    const Token& token = next();
    if (!token.is(text)) {
      refuse(token.line, "'" + token.text + "' where '" + std::string{text} + "' is due");
    }
  }

  std::int64_t integer() {
    const bool negative = take("-");
    const Token& token = next();
    std::int64_t value = 0;
    const auto [end, error] =
        std::from_chars(token.text.data(), token.text.data() + token.text.size(), value);
    if (error != std::errc{} || end != token.text.data() + token.text.size()) {
      refuse(token.line, "'" + token.text + "' where an integer is due");
    }
    return negative ? -value : value;
  }

  // .file lines stand at the end, after their use.
  void note_files() {
    for (std::size_t i = 0; i + 2 < tokens_.size(); ++i) {
      if (tokens_[i].is(".file")) {
        const std::string& name = tokens_[i + 2].text;
        files_[tokens_[i + 1].text] = name.substr(1, name.size() - 2);
      }
    }
  }

  void module_item(ModuleSyntax& result) {
    const Token& token = peek();
    if (take(".version") || take(".address_size")) {
      const std::string value = next().text;
      if (token.is(".address_size") && value != "64") {
        refuse(token.line, ".address_size " + value + ": only 64 is known");
      }
    } else if (take(".target")) {
      do {
        next();
      } while (take(","));
    } else if (take(".file")) {
      next();
      next();
      while (take(",")) {  // time and size
        next();
      }
    } else if (take(".section")) {
      next();
      skip_braces();
    } else {
      linked_item(result);
    }
  }

  void linked_item(ModuleSyntax& result) {
    bool external = false;
    while (peek().is(".visible") || peek().is(".extern") || peek().is(".weak")) {
      external = next().is(".extern");
    }
    const int line = peek().line;
    if (take(".entry")) {
      result.functions.push_back(function(line, true));
    } else if (take(".func")) {
      result.functions.push_back(function(line, false));
    } else {
      VariableSyntax variable = declaration();
      expect(";");
      if (external && variable.space != StateSpace::shared) {
        refuse(line, "'" + variable.name + "' is defined in another module");
      }
      result.variables.push_back(std::move(variable));
    }
  }

  void skip_braces() {
    expect("{");
    for (int depth = 1; depth > 0;) {
      const Token& token = next();
      depth += token.is("{") ? 1 : token.is("}") ? -1 : 0;
    }
  }

  FunctionSyntax function(int line, bool is_entry) {
    FunctionSyntax result;
    result.line = line;
    result.is_entry = is_entry;
    if (!is_entry && peek().is("(")) {
      result.results = parameter_list();
    }
    result.name = next().text;
    if (peek().is("(")) {
      result.parameters = parameter_list();
    }
    while (!peek().is("{")) {
      performance_directive(result);
    }
    expect("{");
    place_ = {};
    for (int depth = 1; depth > 0;) {
      depth += statement(result.body);
    }
    return result;
  }

  std::vector<VariableSyntax> parameter_list() {
    std::vector<VariableSyntax> parameters;
    expect("(");
    while (!take(")")) {
      parameters.push_back(declaration());
      take(",");
    }
    return parameters;
  }

  void performance_directive(FunctionSyntax& result) {
    const Token& directive = next();
    if (!directive.is(".maxntid") && !directive.is(".reqntid") && !directive.is(".minnctapersm") &&
        !directive.is(".maxnreg") && !directive.is(".noreturn")) {
      refuse(directive.line, "directive '" + directive.text + "'");
    }
    if (directive.is(".noreturn")) {
      return;
    }
    std::int64_t product = 1;
    do {
      product *= integer();
    } while (take(","));
    if (directive.is(".maxntid") || directive.is(".reqntid")) {
      result.max_threads = product;
    }
  }

  // .space {.align n} .type name{<n>}{[n]...}{= values}, without the semicolon
  VariableSyntax declaration() {
    static const std::map<std::string_view, StateSpace> spaces{
        {".reg", StateSpace::reg},       {".global", StateSpace::global}, {".const", StateSpace::constant},
        {".shared", StateSpace::shared}, {".local", StateSpace::local},   {".param", StateSpace::param}};
    VariableSyntax result;
    const Token& space = next();
    result.line = space.line;
    const auto found = spaces.find(space.text);
    if (found == spaces.end()) {
      refuse(space.line, "directive '" + space.text + "'");
    }
    result.space = found->second;
    while (true) {
      if (take(".align")) {
        result.alignment = integer();
      } else if (take(".ptr")) {  // says only where a pointer points to
        take(".global");
      } else {
        break;
      }
    }
    const Token& type = next();
    const auto known =
        scalar_type(std::string_view{type.text}.substr(std::min<std::size_t>(1, type.text.size())));
    if (!known) {
      refuse(type.line, "type '" + type.text + "'");
    }
    result.type = *known;
    while (take(".ptr") || take(".global")) {
    }
    if (take(".align")) {  // of the memory that the pointer points to
      integer();
    }
    result.name = next().text;
    extent(result);
    if (take("=")) {
      initialiser(result);
    }
    return result;
  }

  void extent(VariableSyntax& result) {
    if (take("<")) {
      result.is_range = true;
      result.elements = integer();
      expect(">");
    }
    while (take("[")) {
      result.elements *= peek().is("]") ? 0 : integer();
      expect("]");
    }
  }

  void initialiser(VariableSyntax& result) {
    const bool braces = take("{");
    do {
      const int line = peek().line;
      std::uint64_t bits = 0;
      const std::string& word = peek().text;
      if (word.size() > 2 && word[0] == '0' &&
          std::string_view{"fFdD"}.find(word[1]) != std::string_view::npos) {
        bits = std::stoull(next().text.substr(2), nullptr, 16);
      } else if (is_float(result.type)) {
        refuse(line, "initial value '" + word + "' of a floating-point variable");
      } else {
        bits = static_cast<std::uint64_t>(integer());
      }
      for (int byte = 0; byte < bytes_of(result.type); ++byte) {
        result.initial_bytes.push_back(static_cast<std::uint8_t>(bits >> (8 * byte)));
      }
    } while (braces && take(","));
    if (braces) {
      expect("}");
    }
  }

  // Returns by how much the depth of braces changes.
  int statement(std::vector<StatementSyntax>& body) {
    const Token& token = peek();
    if (take("{")) {
      body.emplace_back(ScopeSyntax{true});
      return 1;
    }
    if (take("}")) {
      body.emplace_back(ScopeSyntax{false});
      return -1;
    }
    if (take(";")) {  // inline assembly leaves empty statements
      return 0;
    }
    if (peek(1).is(":")) {
      body.emplace_back(LabelSyntax{token.line, next().text});
      expect(":");
    } else if (take(".loc")) {
      location();
    } else if (take(".pragma")) {
      next();
      expect(";");
    } else if (token.text.starts_with(".")) {
      declarations(body);
    } else {
      body.emplace_back(instruction());
    }
    return 0;
  }

  void declarations(std::vector<StatementSyntax>& body) {
    VariableSyntax first = declaration();
    body.emplace_back(first);
    while (take(",")) {
      first.name = next().text;
      first.elements = 1;
      first.is_range = false;
      extent(first);
      body.emplace_back(first);
    }
    expect(";");
  }

  // .loc file line column {, function_name label {+ n}, inlined_at file line column}
  void location() {
    const std::string file = next().text;
    place_ = {files_[file], static_cast<int>(integer())};
    integer();
    while (take(",")) {
      const bool inlined = next().is("inlined_at");
      next();
      if (inlined) {
        integer();
        integer();
      } else if (take("+")) {
        integer();
      }
    }
  }

  InstructionSyntax instruction() {
    InstructionSyntax result;
    result.line = peek().line;
    result.place = place_;
    const std::size_t begin = peek().offset;
    if (take("@")) {
      result.guard_negated = take("!");
      result.guard = next().text;
    }
    split_opcode(next().text, result);
    while (!peek().is(";")) {
      result.operands.push_back(operand());
      take(",");
    }
    result.text = text_.substr(begin, peek().offset - begin);
    std::ranges::replace(result.text, '\t', ' ');
    std::ranges::replace(result.text, '\n', ' ');
    expect(";");
    return result;
  }

  static void split_opcode(const std::string& word, InstructionSyntax& result) {
    std::size_t dot = word.find('.');
    result.opcode = word.substr(0, dot);
    while (dot != std::string::npos) {
      const std::size_t end = word.find('.', dot + 1);
      result.modifiers.push_back(word.substr(dot + 1, end == std::string::npos ? end : end - dot - 1));
      dot = end;
    }
  }

  OperandSyntax operand() {
    OperandSyntax result;
    if (take("[")) {
      result.kind = OperandSyntax::Kind::address;
      address(result);
    } else if (peek().is("{") || peek().is("(")) {
      const bool brace = next().is("{");
      result.kind = OperandSyntax::Kind::list;
      while (!take(brace ? "}" : ")")) {
        result.elements.push_back(operand());
        take(",");
      }
    } else {
      result.negated = take("!");
      result.word = take("-") ? "-" : "";
      result.word += next().text;
      if (take("|")) {
        result.second = next().text;
      }
    }
    return result;
  }

  void address(OperandSyntax& result) {
    const bool begins_with_digit = peek().is("-") || (peek().text[0] >= '0' && peek().text[0] <= '9');
    if (begins_with_digit) {
      result.displacement = integer();
    } else {
      result.word = next().text;
      if (take("+")) {
        result.displacement = integer();
      } else if (peek().is("-")) {
        result.displacement = integer();
      }
    }
    expect("]");
  }

  std::string_view text_;
  std::vector<Token> tokens_;
  std::size_t position_ = 0;
  std::map<std::string, std::string> files_;
  SourcePlace place_;
};

}  // namespace

ModuleSyntax parse_ptx(std::string_view text) {
  return Parser{text}.module();
}

}  // namespace hcp::ptx
