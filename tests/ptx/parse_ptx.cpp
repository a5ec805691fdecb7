#include <cstddef>
#include <map>
#include <stdexcept>
#include <utility>

#include "tests/ptx/parse_parts.hpp"
#include "tests/ptx/syntax.hpp"
#include "tests/ptx/token_reader.hpp"

namespace hcp::ptx {

void refuse(int line, const std::string& what) {
  throw std::invalid_argument{"PTX line " + std::to_string(line) + ": " + what};
}

namespace {

class Parser : private TokenReader {
 public:
  explicit Parser(std::string_view text) : TokenReader{text} { note_files(); }

  ModuleSyntax module() {
    ModuleSyntax result;
    while (!peek().is("")) {
      module_item(result);
    }
    return result;
  }

 private:
  // .file lines stand at the end, after their use.
  void note_files() {
    for (std::size_t i = 0; i + 2 < tokens().size(); ++i) {
      if (tokens()[i].is(".file")) {
        const std::string& name = tokens()[i + 2].text;
        files_[tokens()[i + 1].text] = name.substr(1, name.size() - 2);
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
      VariableSyntax variable = parse_declaration(*this);
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
      parameters.push_back(parse_declaration(*this));
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
      InstructionSyntax one = parse_instruction(*this);
      one.place = place_;
      body.emplace_back(std::move(one));
    }
    return 0;
  }

  void declarations(std::vector<StatementSyntax>& body) {
    VariableSyntax first = parse_declaration(*this);
    body.emplace_back(first);
    while (take(",")) {
      first.name = next().text;
      first.elements = 1;
      first.is_range = false;
      parse_extent(*this, first);
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

  std::map<std::string, std::string> files_;
  SourcePlace place_;
};

}  // namespace

ModuleSyntax parse_ptx(std::string_view text) {
  return Parser{text}.module();
}

}  // namespace hcp::ptx
