#include "tests/ptx/decode_kernel.hpp"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "tests/ptx/kernel_builder.hpp"
#include "tests/ptx/opcode_table.hpp"

namespace hcp::ptx {

namespace {

std::int64_t bytes_of(const VariableSyntax& variable) {
  return variable.elements * ptx::bytes_of(variable.type);
}

std::int64_t alignment_of(const VariableSyntax& variable) {
  return variable.alignment > 0 ? variable.alignment : std::max(1, ptx::bytes_of(variable.type));
}

void no_operation(Warp&, const Instruction&, LaneMask) {}

// The names between two braces.
struct Scope {
  std::map<std::string, Symbol> symbols;
  std::map<std::string, int> labels;  // index into the code
  std::size_t parent = 0;
};

/// Decodes one function into a kernel: the entry itself or a function that it calls.
class FunctionDecoder : public SymbolTable {
 public:
  FunctionDecoder(const FunctionSyntax& function, const ModuleNames& names, KernelBuilder& kernel,
                  std::map<std::string, std::uint32_t>& module_shared, std::set<std::string> callers)
      : function_{function},
        names_{names},
        kernel_{kernel},
        module_shared_{module_shared},
        callers_{std::move(callers)},
        scopes_(1) {
    callers_.insert(function.name);
  }

  /// Where each result and parameter of a called function lies in the frame of the thread.
  void bind(const std::vector<VariableSyntax>& formal, const std::vector<Symbol>& actual, int line) {
    if (formal.size() != actual.size()) {
      refuse(line, "a call of " + function_.name + " with " + std::to_string(actual.size()) + " arguments");
    }
    for (std::size_t i = 0; i < formal.size(); ++i) {
      scopes_[0].symbols[formal[i].name] = actual[i];
    }
  }

  void bind_kernel_parameters() {
    std::int64_t end = 0;
    for (const VariableSyntax& parameter : function_.parameters) {
      const std::int64_t alignment = alignment_of(parameter);
      const std::int64_t begin = (end + alignment - 1) / alignment * alignment;
      end = begin + bytes_of(parameter);
      scopes_[0].symbols[parameter.name] = {
          Symbol::Kind::kernel_param, {}, 0, static_cast<std::uint64_t>(begin)};
      kernel_.kernel().parameters.push_back({parameter.name, static_cast<std::uint32_t>(begin),
                                             static_cast<std::uint32_t>(bytes_of(parameter))});
    }
    kernel_.kernel().parameter_bytes = static_cast<std::uint32_t>(end);
  }

  void decode() {
    for (const StatementSyntax& statement : function_.body) {
      std::visit([this](const auto& one) { take(one); }, statement);
    }
    for (const auto& [index, target] : branches_) {
      code()[static_cast<std::size_t>(index)].target = label(target.first, target.second, index);
    }
  }

  [[nodiscard]] const Symbol* find(const std::string& name) const override {
    for (std::size_t scope = scope_;; scope = scopes_[scope].parent) {
      const auto found = scopes_[scope].symbols.find(name);
      if (found != scopes_[scope].symbols.end()) {
        return &found->second;
      }
      if (scope == 0) {
        break;
      }
    }
    const auto variable = names_.variables.find(name);
    return variable != names_.variables.end() ? &variable->second : module_shared(name);
  }

 private:
  std::vector<Instruction>& code() { return kernel_.kernel().code; }
  [[nodiscard]] int next_index() { return static_cast<int>(code().size()); }

  const Symbol* module_shared(const std::string& name) const {
    const auto found = names_.shared.find(name);
    if (found == names_.shared.end()) {
      return nullptr;
    }
    const VariableSyntax& variable = *found->second;
    Symbol& symbol = shared_symbols_[name];
    if (variable.elements == 0) {
      symbol = {Symbol::Kind::dynamic_shared, {}, 0, static_cast<std::uint64_t>(alignment_of(variable))};
    } else {
      const auto [place, is_new] = module_shared_.try_emplace(name);
      if (is_new) {
        place->second = kernel_.add_static_shared(bytes_of(variable), alignment_of(variable));
      }
      symbol = {Symbol::Kind::shared, {}, 0, place->second};
    }
    return &symbol;
  }

  void take(const ScopeSyntax& scope) {
    if (scope.opens) {
      scopes_.push_back({{}, {}, scope_});
      scope_ = scopes_.size() - 1;
    } else {
      scope_ = scopes_[scope_].parent;
    }
  }

  void take(const LabelSyntax& label) {
    if (!scopes_[scope_].labels.emplace(label.name, next_index()).second) {
      refuse(label.line, "label '" + label.name + "' stands twice");
    }
  }

  void take(const VariableSyntax& variable) {
    if (variable.space == StateSpace::reg) {
      for (std::int64_t i = 0; i < variable.elements; ++i) {
        const int bytes = variable.type == ScalarType::pred ? 0 : std::max(2, ptx::bytes_of(variable.type));
        const std::string name = variable.name + (variable.is_range ? std::to_string(i) : "");
        declare(variable.line, name, {Symbol::Kind::register_, kernel_.add_register(bytes), bytes, 0});
      }
      return;
    }
    const std::int64_t bytes = bytes_of(variable);
    const std::int64_t alignment = alignment_of(variable);
    switch (variable.space) {
      case StateSpace::local:
        declare(variable.line, variable.name,
                {Symbol::Kind::local, {}, 0, kernel_.add_local(bytes, alignment)});
        break;
      case StateSpace::param:  // of a call: in the frame of the thread
        declare(variable.line, variable.name,
                {Symbol::Kind::call_param, {}, 0, kernel_.add_local(bytes, alignment)});
        break;
      case StateSpace::shared:
        declare(variable.line, variable.name,
                {Symbol::Kind::shared, {}, 0, kernel_.add_static_shared(bytes, alignment)});
        break;
      default:
        refuse(variable.line, "variable '" + variable.name + "' inside of a function");
    }
  }

  void declare(int line, const std::string& name, const Symbol& symbol) {
    if (!scopes_[scope_].symbols.emplace(name, symbol).second) {
      refuse(line, "'" + name + "' is declared twice");
    }
  }

  void take(const InstructionSyntax& syntax) {
    if (syntax.opcode == "call") {
      call(syntax);
      return;
    }
    const DecodeFunction decode = opcode_table().find(syntax);
    if (decode == nullptr) {
      refuse(syntax.line, "instruction is not known: " + syntax.text);
    }
    Decoding decoding{syntax, *this, kernel_};
    decode(decoding);
    decoding.expect_end();
    if (decoding.result.flow == Flow::branch) {
      branch(decoding.result, syntax);
    } else if (syntax.opcode == "ret" && callers_.size() > 1) {
      decoding.result.flow = Flow::branch;
      returns_.push_back(next_index());
      append(decoding.result, syntax);
    } else {
      append(decoding.result, syntax);
    }
  }

  void append(const Instruction& instruction, const InstructionSyntax& syntax) {
    code().push_back(instruction);
    kernel_.kernel().texts.push_back(syntax.text);
    kernel_.kernel().places.push_back(syntax.place);
  }

  void branch(const Instruction& instruction, const InstructionSyntax& syntax) {
    branches_.push_back({next_index(), {scope_, syntax.operands.at(0).word}});
    append(instruction, syntax);
  }

  [[nodiscard]] int label(std::size_t scope, const std::string& name, int index) {
    for (;; scope = scopes_[scope].parent) {
      const auto found = scopes_[scope].labels.find(name);
      if (found != scopes_[scope].labels.end()) {
        return found->second;
      }
      if (scope == 0) {
        refuse(code()[static_cast<std::size_t>(index)].line, "label '" + name + "'");
      }
    }
  }

  // call{.uni} {(results),} function {, (parameters)};
  void call(const InstructionSyntax& syntax) {
    const auto is_list = [&](std::size_t i) {
      return i < syntax.operands.size() && syntax.operands[i].kind == OperandSyntax::Kind::list;
    };
    const std::size_t name_at = is_list(0) ? 1 : 0;
    const std::string name = name_at < syntax.operands.size() ? syntax.operands[name_at].word : "";
    const auto function = names_.functions.find(name);
    const bool known_form = syntax.guard.empty() && syntax.operands.size() <= name_at + 2 &&
                            (syntax.modifiers.empty() || syntax.modifiers == std::vector<std::string>{"uni"});
    if (!known_form || function == names_.functions.end()) {
      refuse(syntax.line, "call is not known or guarded: " + syntax.text);
    }
    if (callers_.contains(name)) {
      refuse(syntax.line, "recursion: " + syntax.text);
    }
    FunctionDecoder callee{*function->second, names_, kernel_, module_shared_, callers_};
    callee.bind(function->second->results, name_at == 1 ? arguments(syntax, 0) : std::vector<Symbol>{},
                syntax.line);
    callee.bind(function->second->parameters,
                is_list(name_at + 1) ? arguments(syntax, name_at + 1) : std::vector<Symbol>{}, syntax.line);
    callee.decode();
    for (const int index : callee.returns_) {
      code()[static_cast<std::size_t>(index)].target = next_index();
    }
  }

  [[nodiscard]] std::vector<Symbol> arguments(const InstructionSyntax& syntax, std::size_t index) const {
    std::vector<Symbol> symbols;
    for (const OperandSyntax& operand : syntax.operands[index].elements) {
      const Symbol* symbol = find(operand.word);
      if (symbol == nullptr || symbol->kind != Symbol::Kind::call_param) {
        refuse(syntax.line, "argument '" + operand.word + "' is no .param variable");
      }
      symbols.push_back(*symbol);
    }
    return symbols;
  }

  const FunctionSyntax& function_;
  const ModuleNames& names_;
  KernelBuilder& kernel_;
  std::map<std::string, std::uint32_t>& module_shared_;  // addresses given so far
  mutable std::map<std::string, Symbol> shared_symbols_;
  std::set<std::string> callers_;
  std::vector<Scope> scopes_;
  std::size_t scope_ = 0;
  std::vector<std::pair<int, std::pair<std::size_t, std::string>>>
      branches_;  // code index -> scope and label
  std::vector<int> returns_;
};

}  // namespace

Kernel decode_kernel(const FunctionSyntax& entry, const ModuleNames& names) {
  KernelBuilder builder;
  builder.kernel().name = entry.name;
  if (entry.max_threads > 0) {
    builder.kernel().max_threads = static_cast<std::uint32_t>(entry.max_threads);
  }
  std::map<std::string, std::uint32_t> module_shared;
  FunctionDecoder decoder{entry, names, builder, module_shared, {}};
  decoder.bind_kernel_parameters();
  decoder.decode();
  // Falling off the end is an exit; a label may stand there.
  Instruction end;
  end.execute = no_operation;
  end.guard = builder.always();
  end.flow = Flow::exit;
  end.line = entry.line;
  builder.kernel().code.push_back(end);
  builder.kernel().texts.emplace_back("(end of the kernel)");
  builder.kernel().places.emplace_back();
  return builder.finish();
}

}  // namespace hcp::ptx
