#include "parts.hpp"

namespace translator {

// On the CPU these keywords have no effect, except that each .cu file has its own copy of a
// variable.
void DeviceDeclarations::translate_device(std::size_t i) {
    erase(i);
    enter_device_code(i);
    if (tokens_[i].is("__constant__")) choose_constant_section(i);
    if (!is_namespace(tokens_.enclosing_brace(i))) return;
    const Range declaration{declaration_begin(i), tokens_.size()};
    const std::size_t name = variable_name(declaration);
    if (name == kNone && own_device_variables_) tell_of_function_elsewhere(i);
    if (name == kNone || is_shared({declaration.begin, name})) return;
    note_device_variable({declaration.begin, name});
    variables_.insert({declaration.begin, name});
    // "used": a program may access the variable by name, as that of a module, which the compiler
    // cannot see.
    for (std::size_t p = declaration.begin; p < name; ++p) {
        if (text_[p].find("static __attribute__") != std::string::npos) return;  // by an earlier __device__
        if (tokens_[p].is("static")) {
            text_[i] = "__attribute__((used))";
            return;
        }
    }
    if (own_device_variables_ && !is_declared_extern(tokens_[name].text))
        text_[i] = "static __attribute__((used))";
}

// `__device__ int f(int);`, and the file calls f, but does not define it.
void DeviceDeclarations::tell_of_function_elsewhere(std::size_t word) {
    static constexpr std::array<std::string_view, 5> kOthers = {"template", "inline", "friend", "operator",
                                                                "__global__"};
    const std::size_t end = end_of_statement(word);
    std::size_t open = declaration_begin(word);
    for (; open < end && !tokens_[open].is("("); ++open) {
        if (one_of(tokens_[open].text, kOthers)) return;
        if (is_decoration(open)) open = closing(tokens_.next(open));
    }
    if (open >= end || end >= tokens_.size() || opens_body(open)) return;
    const std::size_t name = tokens_.previous(open);
    if (tokens_[name].kind != TokenKind::identifier || tokens_.is(tokens_.previous(name), ":")) return;
    std::size_t call = kNone;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
        const std::size_t arguments = tokens_.next(i);
        if (!tokens_[i].is(tokens_[name].text) || is_member(i) || !tokens_.is(arguments, "(")) continue;
        if (opens_body(arguments)) return;
        if (call == kNone && in_function(i)) call = i;
    }
    if (call == kNone || !told_of_.insert(tokens_[name].text).second) return;
    warn(call, "this file does not define the __device__ function '" + std::string(tokens_[name].text) +
                   "': a GPU's code calls functions of other files only if all are compiled with -rdc=true");
}

// Does a function's body follow these parameters, and what may stand behind them?
bool DeviceDeclarations::opens_body(std::size_t parameters) const {
    std::size_t i = tokens_.next(closing(parameters));
    while (i != kNone &&
           (tokens_[i].kind == TokenKind::identifier || tokens_.is(i, "-") || tokens_.is(i, ">")))
        i = is_decoration(i) && tokens_.is(tokens_.next(i), "(") ? tokens_.next(closing(tokens_.next(i)))
                                                                 : tokens_.next(i);
    return tokens_.is(i, "{");
}

// `__device__ __shared__ int x;`: each block has its own.
bool DeviceDeclarations::is_shared(Range declaration) const {
    for (std::size_t i = declaration.begin; i < declaration.end; ++i) {
        if (tokens_[i].is("__shared__")) return true;
    }
    return false;
}

// Constants have the same value on host and device, and a managed variable is one variable for
// both.
void DeviceDeclarations::note_device_variable(Range before_name) {
    static constexpr std::array<std::string_view, 3> kCommon = {"const", "constexpr", "__managed__"};
    for (std::size_t p = before_name.begin; p < before_name.end; ++p) {
        if (one_of(tokens_[p].text, kCommon)) return;
    }
    device_variables_.insert(tokens_[before_name.end].text);
}

// A section cannot hold both writable and read-only variables. The macro __constant__ leaves
// __attribute__((section("cuda_on_cpu_constant"))) after the word.
void DeviceDeclarations::choose_constant_section(std::size_t word) {
    const std::size_t begin = declaration_begin(word);
    if (begin == kNone || !is_const_variable(begin)) return;
    for (std::size_t i = begin; i < tokens_.size() && !tokens_[i].is(";") && !tokens_[i].is("="); ++i) {
        if (!is_decoration(i)) continue;
        const std::size_t end = closing(tokens_.next(i));
        for (; i < end; ++i)
            if (tokens_[i].is("\"cuda_on_cpu_constant\"")) text_[i] = "\"cuda_on_cpu_const\"";
    }
}

bool DeviceDeclarations::is_const_variable(std::size_t begin) const {
    static constexpr std::array<std::string_view, 5> kEnds = {";", "=", "[", "{", ","};
    bool is_const = false;
    for (std::size_t i = begin; i < tokens_.size(); ++i) {
        const Token& token = tokens_[i];
        if (is_decoration(i)) {
            i = closing(tokens_.next(i));
        } else if (token.is("<")) {
            // Template arguments: a const in there belongs to another type.
            int depth = 1;
            while (depth > 0 && ++i < tokens_.size())
                depth += tokens_[i].is("<") ? 1 : tokens_[i].is(">") ? -1 : tokens_[i].is(">>") ? -2 : 0;
        } else if (token.is("const") || token.is("constexpr")) {
            is_const = true;
        } else if (token.is("*")) {  // a pointer to const is itself writable
            is_const = false;
        } else if (one_of(token.text, kEnds)) {
            break;
        }
    }
    return is_const;
}

// The name of the first variable that the declaration declares; kNone if it declares none, or a
// member of a class, or if its linkage is not internal to the file.
std::size_t DeviceDeclarations::variable_name(Range declaration) const {
    static constexpr std::array<std::string_view, 9> kOthers = {
        "extern", "inline", "using", "typedef", "friend", "operator", "namespace", "concept", "template"};
    static constexpr std::array<std::string_view, 5> kEnds = {";", "=", "[", "{", ","};
    static constexpr std::array<std::string_view, 4> kTypes = {"struct", "class", "union", "enum"};
    std::size_t name = kNone;
    int angle = 0;
    bool defines_type = false;
    for (std::size_t i = declaration.begin; i < declaration.end; ++i) {
        const Token& token = tokens_[i];
        if (!token.significant()) continue;
        if (is_decoration(i)) {
            if (const std::size_t open = tokens_.next(i); tokens_.is(open, "(")) i = closing(open);
        } else if (token.is("<") || token.is(">")) {
            angle += token.is("<") ? 1 : -1;
        } else if (angle > 0) {
            continue;
        } else if (token.is("[") && tokens_.is(tokens_.next(i), "[")) {
            i = closing(i);
        } else if (token.is("{") && defines_type) {
            i = closing(i);
            name = kNone;
        } else if (one_of(token.text, kEnds)) {
            return tokens_.is(tokens_.previous(name), ":") ? kNone : name;
        } else if (token.is("(")) {
            const std::size_t inner = tokens_.next(i);
            return tokens_.is(inner, "*") || tokens_.is(inner, "&") ? tokens_.next(inner) : kNone;
        } else if (one_of(token.text, kOthers)) {
            return kNone;
        } else if (is_attribute_word(token.text)) {
            if (one_of(text_before(i), kTypes)) return kNone;
        } else if (token.kind == TokenKind::identifier) {
            defines_type = defines_type || one_of(token.text, kTypes);
            name = i;
        }
    }
    return kNone;
}

// With `extern __constant__ float c[];` in a header the definition must not be static.
bool DeviceDeclarations::is_declared_extern(std::string_view name) const {
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
        if (!tokens_[i].is(name)) continue;
        for (std::size_t p = declaration_begin(i); p < i; ++p) {
            if (tokens_[p].is("extern")) return true;
        }
    }
    return false;
}

// An index past the end of an array reaches the next variable. So each array, and each object of a
// class, gets unused bytes on both sides, which the runtime knows (cuda_on_cpu/variable_gaps.h).
void DeviceDeclarations::place_in_gaps() {
    for (const auto& [begin, name] : variables_)
        place_in_gaps(begin, name);
}

void DeviceDeclarations::place_in_gaps(std::size_t begin, std::size_t name) {
    const std::size_t end = end_of_statement(name);
    if (end == kNone || end >= tokens_.size() || !tokens_[end].is(";")) return;
    std::vector<std::size_t> names = {name};
    const std::vector<Range> parts = split({name, end});
    for (std::size_t i = 1; i < parts.size(); ++i) {
        names.push_back(next_in(parts[i]));
        if (tokens_[names.back()].kind != TokenKind::identifier) return;  // `int a[4], *b;`
    }
    const bool has_array =
        std::ranges::any_of(names, [&](std::size_t each) { return tokens_.is(tokens_.next(each), "["); });
    if (!needs_gaps({begin, name}, has_array)) return;
    const bool is_const = is_const_variable(begin);
    std::string specifiers, section;
    for (std::size_t i = begin; i < name; ++i) {
        if (names.size() > 1 && (tokens_[i].is("*") || tokens_[i].is("&"))) return;  // `int *a[4], b[4];`
        specifiers += tokens_[i].significant() ? text_[i] : " ";
        if (tokens_[i].text.starts_with("\"cuda_on_cpu_const"))
            section = " __attribute__((section(" + text_[i] + ")))";
    }
    const std::string gap_type = "::cuda_on_cpu::VariableGap<" + std::string(watched_ ? "4096>" : "256>");
    for (std::size_t i = 0; i < names.size(); ++i) {
        const std::string number = std::to_string(names[i]);
        const auto gap = [&](const std::string& side) {
            const bool filled = is_const || has_value(names[i], parts[i].end);
            return "static __attribute__((used))" + section + (is_const ? " const " : " ") + gap_type +
                   " gap_" + number + side + (filled ? "{::cuda_on_cpu::kVariableCanary}; " : "; ");
        };
        const std::string variable(tokens_[names[i]].text);
        const std::string behind = "; " + gap("_behind_") +
                                   "static const ::cuda_on_cpu::NotedVariable noted_" + number + "_(" +
                                   variable + ", \"" + variable + "\", gap_" + number + "_before_, gap_" +
                                   number + "_behind_, " + (is_const ? "false" : "true") + ")";
        if (i == 0) {
            text_[begin].insert(0, gap("_before_"));
        } else {
            after_[parts[i].begin - 1] += gap("_before_") + specifiers;
        }
        // Between two variables of one declaration there was a comma.
        text_[parts[i].end] = behind + ";" + (i + 1 < names.size() ? " " : "");
    }
}

// Not scalars, references, pointers, and variables of a type that the declaration defines.
bool DeviceDeclarations::needs_gaps(Range before_name, bool is_array) const {
    static constexpr std::array<std::string_view, 16> kScalars = {
        "auto",   "bool",     "char", "short",  "int",    "long",    "float",    "double",
        "signed", "unsigned", "half", "__half", "size_t", "uint8_t", "uint32_t", "uint64_t"};
    static constexpr std::array<std::string_view, 4> kOthers = {"*", "&", "(", "{"};
    for (std::size_t i = before_name.begin; i < before_name.end; ++i) {
        if (is_decoration(i)) {
            i = closing(tokens_.next(i));
        } else if (const std::size_t close = end_of_angle(i); close != kNone) {
            i = close;
        } else if (one_of(tokens_[i].text, kOthers) && !(is_array && tokens_[i].is("*"))) {
            return false;
        } else if (!is_array && one_of(tokens_[i].text, kScalars)) {
            return false;
        }
    }
    return true;
}

// Does the variable begin with a value other than zero? The compiler places those elsewhere.
bool DeviceDeclarations::has_value(std::size_t name, std::size_t end) const {
    std::size_t i = name;
    while (i < end && !tokens_[i].is("=") && !tokens_[i].is("{"))
        i = tokens_.is(i, "[") ? closing(i) + 1 : i + 1;
    for (; i < end; ++i) {
        if (tokens_[i].kind == TokenKind::number) {
            if (tokens_[i].text.find_first_not_of("0.xfFuUlL") != std::string_view::npos) return true;
        } else if (tokens_[i].significant() && tokens_[i].kind != TokenKind::punctuation) {
            return true;
        }
    }
    return false;
}

// Host code that reads or writes a __device__ variable by name would use the host's copy of it on a
// GPU. An argument of a function may be a symbol, as in cudaMemcpyToSymbol.
void DeviceDeclarations::tell_of_device_variable(std::size_t name) {
    if (name < device_code_end_ || is_namespace(tokens_.enclosing_brace(name)) || may_be_declared(name) ||
        is_member(name) || tokens_.is(tokens_.previous(name), ":") || is_argument(name) ||
        is_declared_without(name, {"__device__", "__constant__"}) ||
        !told_of_.insert(tokens_[name].text).second)
        return;
    warn(name, "host code uses the __device__ variable '" + std::string(tokens_[name].text) +
                   "' by its name: on a GPU that is another variable. Use cudaMemcpyFromSymbol and "
                   "cudaMemcpyToSymbol");
}

// An argument of a function other than printf.
bool DeviceDeclarations::is_argument(std::size_t i) const {
    static constexpr std::array<std::string_view, 7> kNoCalls = {"if",     "while",  "for",    "switch",
                                                                 "return", "printf", "fprintf"};
    for (std::size_t p = tokens_.previous(i); p != kNone; p = tokens_.previous(p)) {
        const Token& token = tokens_[p];
        if (token.is(";") || token.is("{") || token.is("}")) return false;
        if (token.is("(")) {
            const std::size_t function = tokens_.previous(p);
            if (function == kNone) return false;
            const bool is_name = tokens_[function].kind == TokenKind::identifier;
            if (tokens_[function].is(">") || (is_name && !one_of(tokens_[function].text, kNoCalls)))
                return true;
        }
        if ((token.is(")") || token.is("]")) && tokens_.match(p) != kNone) p = tokens_.match(p);
    }
    return false;
}

}  // namespace translator
