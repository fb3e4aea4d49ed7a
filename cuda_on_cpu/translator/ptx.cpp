#include "ptx.hpp"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <map>
#include <optional>

#include "ptx_instructions.hpp"

namespace translator {
namespace {

using namespace std::string_literals;

bool is_blank(char c) {
    return std::isspace(static_cast<unsigned char>(c)) != 0;
}
bool is_digit(char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
}
bool starts_name(char c) {
    return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$';
}
bool continues_name(char c) {
    return starts_name(c) || is_digit(c);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(separator, begin), text.size());
        if (end > begin) parts.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return parts;
}

std::string quoted(std::string_view text) {
    return "\"" + std::string(text) + "\"";
}

std::string unsigned_of(unsigned bits) {
    return bits == 1 ? "bool"s : "std::uint" + std::to_string(bits) + "_t";
}

// ---- The elements of the text ------------------------------------------------------------------

enum class OperandKind { name, special, statement, integer, real, sink, address, list };

// An operand as it is written. `parts` are the elements of a list, or the base, offsets and
// coordinates of an address.
struct Operand {
    OperandKind kind = OperandKind::sink;
    std::string text;
    std::size_t index = 0;    // of an operand of the statement, %0
    std::uint64_t value = 0;  // of an integer, or the bits of a double
    unsigned real_bits = 0;   // 32: given as 0f..., 64: as 0d... or as a decimal number
    bool negated = false;
    std::vector<Operand> parts;
    std::vector<Operand> coordinates;
    std::vector<Operand> second;  // p in d|p
};

class Scanner {
  public:
    explicit Scanner(std::string_view text) : text_(text) {}

    void skip_blanks() {
        while (at_ < text_.size()) {
            if (is_blank(text_[at_])) {
                ++at_;
            } else if (text_.substr(at_, 2) == "//") {
                at_ = std::min(text_.find('\n', at_), text_.size());
            } else if (text_.substr(at_, 2) == "/*") {
                const std::size_t end = text_.find("*/", at_ + 2);
                at_ = end == std::string_view::npos ? text_.size() : end + 2;
            } else {
                break;
            }
        }
    }
    bool at_end() {
        skip_blanks();
        return at_ == text_.size();
    }
    char peek() {
        skip_blanks();
        return at_ < text_.size() ? text_[at_] : '\0';
    }
    char peek_second() const { return at_ + 1 < text_.size() ? text_[at_ + 1] : '\0'; }
    bool take(char c) {
        if (peek() != c) return false;
        ++at_;
        return true;
    }
    void expect(char c, const std::string& where) {
        if (!take(c))
            throw PtxError("PTX: " + (peek() == '\0' ? "the text ends"s : "'"s + peek() + "'") + " " + where +
                           "; expected '" + c + "'");
    }
    template <class Belongs>
    std::string take_while(Belongs belongs) {
        const std::size_t begin = at_;
        while (at_ < text_.size() && belongs(text_[at_]))
            ++at_;
        return std::string(text_.substr(begin, at_ - begin));
    }
    std::string take_name() {
        skip_blanks();
        return take_while(continues_name);
    }
    std::size_t position() const { return at_; }
    void go_back(std::size_t position) { at_ = position; }

  private:
    std::string_view text_;
    std::size_t at_ = 0;
};

// Decimal, 0x, 0b, octal, 0f and 0d numbers, with a fraction or an exponent or not.
Operand number(const std::string& text) {
    Operand result;
    result.kind = OperandKind::integer;
    result.text = text;
    const auto has_prefix = [&](const char* prefix) {
        return text.size() > 2 && text[0] == '0' &&
               std::tolower(static_cast<unsigned char>(text[1])) == *prefix;
    };
    std::string digits = text;
    int base = 10;
    if (has_prefix("f") || has_prefix("d")) {
        result.kind = OperandKind::real;
        result.real_bits = has_prefix("f") ? 32 : 64;
        digits = text.substr(2);
        base = 16;
        if (digits.size() != result.real_bits / 4)
            throw PtxError("PTX: the number " + text + " is not of " + std::to_string(result.real_bits / 4) +
                           " hexadecimal digits");
    } else if (has_prefix("x")) {
        digits = text.substr(2);
        base = 16;
    } else if (has_prefix("b")) {
        digits = text.substr(2);
        base = 2;
    } else if (text.find_first_of(".eE") != std::string::npos) {
        char* end = nullptr;
        const double value = std::strtod(text.c_str(), &end);
        if (*end != '\0') throw PtxError("PTX: " + quoted(text) + " is no number");
        result.kind = OperandKind::real;
        result.real_bits = 64;
        result.value = std::bit_cast<std::uint64_t>(value);
        return result;
    } else if (text.size() > 1 && text[0] == '0') {
        base = 8;
    }
    if (!digits.empty() && (digits.back() == 'U' || digits.back() == 'u')) digits.pop_back();
    char* end = nullptr;
    result.value = std::strtoull(digits.c_str(), &end, base);
    if (digits.empty() || *end != '\0') throw PtxError("PTX: " + quoted(text) + " is no number");
    return result;
}

// ---- Registers ----------------------------------------------------------------------------------

struct Register {
    std::string variable;
    unsigned bits;
    bool constant = false;  // of an operand "n": an expression, not a variable
    bool result = false;    // an operand that is a result of the statement
};

// An operand as C++.
struct Value {
    std::string text;
    unsigned bits;
};

class Translation {
  public:
    explicit Translation(const PtxStatement& statement) : statement_(statement), scan_(statement.text) {}

    std::string run() {
        for (const PtxOperand& output : statement_.outputs)
            add_output(output);
        for (const PtxOperand& input : statement_.inputs)
            add_input(input);
        const std::string body = scope(true);
        std::string before = "{ namespace isa_ = ::cuda_on_cpu::ptx::isa;";
        std::string after;
        for (std::size_t i = 0; i < statement_.outputs.size(); ++i)
            declare_output(i, before, after);
        for (std::size_t i = 0; i < statement_.inputs.size(); ++i)
            declare_input(statement_.outputs.size() + i, statement_.inputs[i], before);
        return before + " " + body + after + " }";
    }

  private:
    [[noreturn]] void fail(const std::string& message) const {
        throw PtxError("PTX instruction " + quoted(instruction_) + ": " + message);
    }

    // --- Operands of the statement ---------------------------------------------------------------

    static unsigned bits_of_constraint(char letter) {
        switch (letter) {
            case 'h':
                return 16;
            case 'r':
            case 'f':
                return 32;
            case 'l':
            case 'd':
                return 64;
            default:
                return 0;
        }
    }
    unsigned bits_of(std::size_t index, const PtxOperand& operand, std::size_t letter) const {
        const unsigned bits =
            operand.constraint.size() == letter + 1 ? bits_of_constraint(operand.constraint[letter]) : 0;
        if (bits == 0)
            throw PtxError("PTX: operand %" + std::to_string(index) + " has the constraint " +
                           quoted(operand.constraint) +
                           "; expected \"h\", \"r\", \"l\", \"f\" or \"d\", \"n\" for a constant, with = or "
                           "+ for results");
        return bits;
    }
    static bool is_constant(const PtxOperand& input) {
        return input.constraint == "n" || input.constraint == "i";
    }
    // "0": the input is in the register of an output.
    static bool is_same(const PtxOperand& input) {
        return !input.constraint.empty() &&
               std::all_of(input.constraint.begin(), input.constraint.end(), is_digit);
    }
    void add_output(const PtxOperand& output) {
        const std::size_t index = operands_.size();
        const std::string& constraint = output.constraint;
        const bool is_result = !constraint.empty() && (constraint[0] == '=' || constraint[0] == '+');
        const std::size_t letter = constraint.size() > 1 && constraint[1] == '&' ? 2 : 1;
        const unsigned bits = bits_of(index, output, is_result ? letter : constraint.size());
        operands_.push_back({"ptx_" + std::to_string(index), bits, false, true});
    }
    void add_input(const PtxOperand& input) {
        const std::size_t index = operands_.size();
        const std::string variable = "ptx_" + std::to_string(index);
        if (is_constant(input)) {
            operands_.push_back({variable, 64, true});
        } else if (is_same(input)) {
            const std::size_t output = std::strtoul(input.constraint.c_str(), nullptr, 10);
            if (output >= statement_.outputs.size()) bits_of(index, input, input.constraint.size());
            operands_.push_back(operands_[output]);
        } else {
            operands_.push_back({variable, bits_of(index, input, 0)});
        }
    }

    // "=r" and "r" are <'r'>.
    static std::string type_argument(const std::string& constraint) {
        return "<'" + std::string(1, constraint.back()) + "'>";
    }
    void declare_output(std::size_t index, std::string& before, std::string& after) const {
        const PtxOperand& output = statement_.outputs[index];
        const auto& [variable, bits, constant, result] = operands_[index];
        const std::string of_type = type_argument(output.constraint);
        before += " auto&& " + variable + "_ = (" + output.expression + ");";
        if (std::find(in_place_.begin(), in_place_.end(), index) != in_place_.end()) return;
        before += " [[maybe_unused]] " + unsigned_of(bits) + " " + variable + " = isa_::" +
                  (output.constraint[0] == '+' ? "read" + of_type + "(" + variable + "_);"
                                               : "undefined<" + std::to_string(bits) + ">();");
        after += " isa_::write" + of_type + "(" + variable + "_, " + variable + ");";
    }
    void declare_input(std::size_t index, const PtxOperand& input, std::string& before) const {
        const auto& [variable, bits, constant, result] = operands_[index];
        if (constant) {
            before += " [[maybe_unused]] constexpr auto " + variable + " = (" + input.expression + ");";
            return;
        }
        const std::string& constraint =
            is_same(input)
                ? statement_.outputs[std::strtoul(input.constraint.c_str(), nullptr, 10)].constraint
                : input.constraint;
        const std::string value = " = isa_::read" + type_argument(constraint) + "(" + input.expression + ");";
        before += is_same(input) ? " " + variable + value
                                 : " [[maybe_unused]] " + unsigned_of(bits) + " " + variable + value;
    }

    // --- Scopes, declarations, labels ------------------------------------------------------------

    using Names = std::map<std::string, Register>;

    std::string scope(bool outermost) {
        names_.emplace_back();
        labels_.push_back(labels_ahead());
        std::string declarations;
        for (const std::string& label : labels_.back())
            declarations += " __label__ " + label_variable(label) + ";";
        std::string registers;
        std::string statements;
        for (;;) {
            if (scan_.at_end()) {
                if (!outermost) throw PtxError("PTX: the text ends in a block; expected '}'");
                break;
            }
            if (scan_.peek() == '}') {
                if (outermost) throw PtxError("PTX: '}' without '{'");
                scan_.take('}');
                scan_.take(';');
                break;
            }
            if (scan_.take(';')) continue;
            if (scan_.take('{')) {
                statements += " " + scope(false);
            } else if (scan_.peek() == '.') {
                registers += directive();
            } else if (const std::string label = take_label(); !label.empty()) {
                statements += " " + label_variable(label) + ": __attribute__((unused));";
            } else {
                statements += " " + instruction();
            }
        }
        names_.pop_back();
        labels_.pop_back();
        return "{" + declarations + registers + statements + " }";
    }

    static std::string label_variable(const std::string& label) { return "label_" + plain(label); }
    static std::string plain(const std::string& name) {
        std::string result;
        for (const char c : name)
            result += c == '%' ? "p_"s : c == '$' ? "d_"s : std::string(1, c);
        return result;
    }

    std::string take_label() {
        const std::size_t begin = scan_.position();
        const std::string name = scan_.take_name();
        if (!name.empty() && scan_.peek() == ':' && scan_.peek_second() != ':') {
            scan_.take(':');
            return name;
        }
        scan_.go_back(begin);
        return "";
    }

    // The labels of the scope that begins here, which branches before them need.
    std::vector<std::string> labels_ahead() {
        const std::size_t begin = scan_.position();
        std::vector<std::string> labels;
        int depth = 0;
        bool at_statement = true;
        while (!scan_.at_end() && depth >= 0) {
            if (at_statement) {
                if (const std::string label = take_label(); !label.empty()) {
                    if (depth == 0) labels.push_back(label);
                    continue;
                }
            }
            const char c = scan_.peek();
            scan_.take(c);
            // Braces within a statement are lists.
            if (c == '{' && at_statement) {
                ++depth;
            } else if (c == '}' && at_statement) {
                --depth;
            } else {
                at_statement = c == ';';
            }
        }
        scan_.go_back(begin);
        return labels;
    }

    std::string directive() {
        scan_.take('.');
        const std::string word = scan_.take_name();
        if (word == "pragma" || word == "loc") {
            scan_.take_while([](char c) { return c != ';'; });
            scan_.expect(';', "after ." + word);
            return "";
        }
        if (word != "reg")
            throw PtxError("PTX directive ." + word + " is not provided on the CPU; expected .reg");
        scan_.expect('.', "after .reg");
        const std::string type_name = scan_.take_name();
        const std::optional<PtxType> type = ptx_type(type_name);
        if (!type) throw PtxError("PTX: .reg ." + type_name + " is not provided on the CPU");
        std::string text;
        do {
            std::string name;
            while (scan_.take('%'))  // %% in an asm statement with operands
                name = "%";
            name += scan_.take_name();
            if (name.empty() || name == "%") throw PtxError("PTX: .reg ." + type_name + " without a name");
            if (scan_.take('<')) {
                const std::uint64_t count = number(scan_.take_name()).value;
                scan_.expect('>', "after .reg ." + type_name + " " + name + "<" + std::to_string(count));
                if (count > 1024)
                    throw PtxError("PTX: .reg of " + std::to_string(count) +
                                   " registers; expected at most 1024");
                for (std::uint64_t i = 0; i < count; ++i)
                    text += declare_register(name + std::to_string(i), type->bits);
            } else {
                text += declare_register(name, type->bits);
            }
        } while (scan_.take(','));
        scan_.expect(';', "after .reg");
        return text;
    }
    std::string declare_register(const std::string& name, unsigned bits) {
        const std::string variable = "r_" + plain(name);
        names_.back()[name] = {variable, bits};
        return " [[maybe_unused]] " + unsigned_of(bits) + " " + variable + " = isa_::undefined<" +
               std::to_string(bits) + ">();";
    }
    const Register* find_register(const std::string& name) const {
        for (auto scope = names_.rbegin(); scope != names_.rend(); ++scope) {
            if (const auto found = scope->find(name); found != scope->end()) return &found->second;
        }
        return nullptr;
    }

    // --- Instructions ----------------------------------------------------------------------------

    std::string instruction() {
        std::string guard;
        instruction_ = "@";
        if (scan_.take('@')) {
            const bool negated = scan_.take('!');
            const Value predicate = source(operand(), {1, false}, false, "the predicate");
            guard = "if (" + std::string(negated ? "!" : "") + predicate.text + ") ";
        }
        scan_.skip_blanks();
        instruction_ = scan_.take_while([](char c) { return continues_name(c) || c == '.' || c == ':'; });
        if (instruction_.empty())
            throw PtxError("PTX: '"s + scan_.peek() + "' where an instruction should begin");
        std::vector<Operand> operands;
        if (scan_.peek() != ';') {
            do {
                operands.push_back(operand());
                if (scan_.take('|')) {
                    const Operand second = operand();
                    operands.back().second.push_back(second);
                }
            } while (scan_.take(','));
        }
        if (!scan_.take(';'))
            fail(scan_.peek() == '\0' ? "the text ends before it does; expected ';'"
                                      : "'"s + scan_.peek() + "' in its operands; expected ',' or ';'");
        return guard + "{ " + statement_of(operands) + " }";
    }

    std::string statement_of(const std::vector<Operand>& operands) {
        if (instruction_ == "bra" || instruction_ == "bra.uni") return branch(operands);
        if (instruction_ == "ret" || instruction_ == "ret.uni")
            fail("a function is not left from within asm; use return");
        const std::vector<const PtxForm*> forms = ptx_forms(instruction_);
        if (forms.empty())
            fail(
                "not provided on the CPU. Use a function of CUDA's in its place, or put it between #ifndef "
                "CUDA_ON_CPU and #endif");
        std::string error;
        std::size_t error_rank = 0;
        for (const PtxForm* form : forms) {
            bound_.clear();
            flags_.clear();
            std::size_t rank = 0;
            std::string why = match_modifiers(*form, rank);
            if (why.empty()) {
                const std::vector<std::string_view> wanted = split(form->operands, ',');
                rank = 1000;
                if (wanted.size() == operands.size()) {
                    try {
                        return call(*form, wanted, operands);
                    } catch (const PtxError& mismatch) {
                        rank = 1001;
                        why = mismatch.what();
                    }
                } else {
                    why = std::to_string(operands.size()) + " operands; expected " +
                          std::to_string(wanted.size());
                }
            }
            if (error.empty() || rank > error_rank) {
                error = why;
                error_rank = rank;
            }
        }
        if (error.starts_with("PTX")) throw PtxError(error);
        fail(error);
    }

    // A loop in asm may wait for other threads.
    std::string branch(const std::vector<Operand>& operands) {
        if (operands.size() != 1 || operands[0].kind != OperandKind::name) fail("expected a label");
        const std::string& label = operands[0].text;
        for (auto known = labels_.rbegin(); known != labels_.rend(); ++known) {
            if (std::find(known->begin(), known->end(), label) == known->end()) continue;
            return "::cuda_on_cpu::poll(); goto " + label_variable(label) + ";";
        }
        fail("the label " + label + " is not in this asm statement");
    }

    // --- Modifiers -------------------------------------------------------------------------------

    struct Slot {
        bool optional = false;
        bool anywhere = false;
        char letter = '\0';
        std::vector<std::string_view> alternatives;
        bool used = false;

        // Returns the modifier if it is one of the alternatives; for m64n#k16 the number. Otherwise
        // returns "".
        std::string_view meant_by(std::string_view modifier) const {
            for (const std::string_view alternative : alternatives) {
                if (alternative == modifier) return modifier;
                const std::size_t number_at = alternative.find('#');
                if (number_at == std::string_view::npos) continue;
                const std::string_view after = alternative.substr(number_at + 1);
                if (modifier.size() < alternative.size() ||
                    modifier.substr(0, number_at) != alternative.substr(0, number_at) ||
                    !modifier.ends_with(after))
                    continue;
                const std::string_view number =
                    modifier.substr(number_at, modifier.size() - after.size() - number_at);
                if (std::all_of(number.begin(), number.end(), is_digit)) return number;
            }
            return "";
        }
    };
    static Slot slot_of(std::string_view text) {
        Slot slot;
        if (text[0] == '?' || text[0] == '!') {
            slot.optional = text[0] == '?';
            slot.anywhere = true;
            text.remove_prefix(1);
        }
        if (text.size() > 2 && text[1] == ':' && text[2] != ':') {
            slot.letter = text[0];
            text.remove_prefix(2);
        }
        slot.alternatives = split(text, '|');
        return slot;
    }

    // Returns what is wrong with the modifiers, or ""; `rank` is the number of correct ones.
    std::string match_modifiers(const PtxForm& form, std::size_t& rank) {
        std::vector<Slot> slots;
        for (const std::string_view text : split(form.modifiers, ' '))
            slots.push_back(slot_of(text));
        for (const std::string_view modifier :
             split(std::string_view(instruction_).substr(form.name.size()), '.')) {
            bool found = false;
            bool ordered_passed = false;
            std::string expected;
            for (Slot& slot : slots) {
                if (slot.used || (!slot.anywhere && ordered_passed)) continue;
                if (!slot.anywhere) ordered_passed = true;
                for (const std::string_view alternative : slot.alternatives)
                    expected += (expected.empty() ? "." : ", .") + std::string(alternative);
                const std::string_view meant = slot.meant_by(modifier);
                if (meant.empty()) continue;
                slot.used = found = true;
                if (slot.letter == 'F') {
                    flags_.push_back(meant);
                } else if (slot.letter != '\0') {
                    bound_[slot.letter] = meant;
                }
                break;
            }
            if (!found)
                return "the modifier ." + std::string(modifier) + " is not provided here" +
                       (expected.empty() ? "" : "; expected one of " + expected);
            ++rank;
        }
        for (const Slot& slot : slots) {
            if (slot.used || slot.optional) continue;
            std::string expected;
            for (const std::string_view alternative : slot.alternatives)
                expected += (expected.empty() ? "." : ", .") + std::string(alternative);
            return "one of the modifiers " + expected + " is missing, or this combination is not provided";
        }
        return "";
    }

    // --- Calls -----------------------------------------------------------------------------------

    // The C++ name of a modifier: in isa_, in the enumeration of the letter to which it is bound,
    // or a number for v4, x2 and similar.
    static std::string constant_of(char letter, std::string_view modifier) {
        if (is_digit(modifier[0])) return std::string(modifier);
        if ((modifier[0] == 'v' || modifier[0] == 'x') && modifier.size() == 2 && is_digit(modifier[1]))
            return std::string(1, modifier[1]);
        static constexpr std::string_view kWords[] = {"and", "or", "xor", "volatile", "const"};
        const bool is_word = std::find(std::begin(kWords), std::end(kWords), modifier) != std::end(kWords);
        const std::string name = std::string(modifier.substr(0, modifier.find(':'))) + (is_word ? "_" : "");
        if (ptx_type(modifier)) return "isa_::" + name;
        switch (letter) {
            case 'F':
                return "isa_::flag::" + name;
            case 'S':
                return "isa_::Space::" + name;
            case 'G':
                return "isa_::Scope::" + name;
            case 'O':
            case 'L':
                return "isa_::Op::" + name;
            case 'C':
                return "isa_::Compare::" + name;
            case 'M':
            case 'N':
                return "isa_::Mode::" + name;
            default:
                return "isa_::" + name;
        }
    }
    std::string template_argument(std::string_view text) const {
        if (text == "F") {
            std::string flags;
            for (const std::string_view flag : flags_)
                flags += (flags.empty() ? "" : " | ") + constant_of('F', flag);
            return flags.empty() ? "0" : flags;
        }
        if (text.size() == 1 && std::isupper(static_cast<unsigned char>(text[0])) != 0) {
            const auto found = bound_.find(text[0]);
            if (found != bound_.end()) return constant_of(text[0], found->second);
            return text == "S" ? "isa_::Space::generic" : "isa_::Scope::gpu";
        }
        return is_digit(text[0]) ? std::string(text) : constant_of('\0', text);
    }
    std::string function_of(std::string_view call) const {
        const std::size_t open = call.find('<');
        std::string text = "isa_::" + std::string(call.substr(0, open));
        if (open == std::string_view::npos) return text;
        std::string arguments;
        for (const std::string_view argument : split(call.substr(open + 1, call.size() - open - 2), ','))
            arguments += (arguments.empty() ? "" : ", ") + template_argument(argument);
        return text + "<" + arguments + ">";
    }

    PtxType type_of(std::string_view text) const {
        std::string_view name = text;
        if (text.size() == 1) {
            const auto found = bound_.find(text[0]);
            if (found != bound_.end()) name = found->second;
        }
        const std::optional<PtxType> type = ptx_type(name);
        if (!type) fail("the type ." + std::string(name) + " is not provided here");
        return *type;
    }
    std::string type_name(std::string_view text) const {
        return text.size() == 1 ? std::string(bound_.at(text[0])) : std::string(text);
    }

    struct Destination {
        std::string variable;  // empty: _
        unsigned bits;
        PtxType type;
        std::string type_name;
    };

    std::string call(const PtxForm& form, const std::vector<std::string_view>& wanted,
                     const std::vector<Operand>& operands) {
        std::vector<Destination> destinations;
        std::string list;  // of destinations, if there is one
        std::string arguments;
        const auto argue = [&](const std::string& text) {
            arguments += (arguments.empty() ? "" : ", ") + text;
        };
        for (std::size_t i = 0; i < wanted.size(); ++i) {
            const std::string_view want = wanted[i];
            const Operand& given = operands[i];
            const std::string where = "operand " + std::to_string(i + 1);
            const std::size_t bar = want.find('|');
            if (!given.second.empty() != (bar != std::string_view::npos))
                fail(where + (bar == std::string_view::npos ? " is a pair; expected one register"
                                                            : ": expected a pair, such as d|p"));
            if (want[0] == '[') {
                for (const std::string& text : address(given, want, where))
                    argue(text);
            } else if (want[0] == '{') {
                elements(given, want.substr(1, want.size() - 2), where, destinations, list, arguments);
            } else if (bar != std::string_view::npos) {
                destinations.push_back(destination(given, want.substr(0, bar), where));
                destinations.push_back(destination(given.second[0], want.substr(bar + 1), where));
            } else if (want[0] == '=' || want[0] == '~') {
                destinations.push_back(destination(given, want, where));
            } else {
                const bool wide = want[0] == '*';
                argue(source(given, type_of(want.substr(wide ? 1 : 0)), wide, where).text);
            }
        }
        const std::string function = function_of(form.call);
        if (destinations.empty()) return function + "(" + arguments + ");";
        if (destinations.size() == 1 && list.empty())
            return assigned(destinations[0], function + "(" + arguments + ")");
        return call_with_several(destinations, list, function, arguments);
    }

    static std::string assigned(const Destination& to, const std::string& value) {
        if (to.variable.empty()) return "static_cast<void>(" + value + ");";
        if (to.bits == to.type.bits) return to.variable + " = " + value + ";";
        return "isa_::widen<isa_::" + to.type_name + ">(" + to.variable + ", " + value + ");";
    }

    static std::string call_with_several(const std::vector<Destination>& destinations,
                                         const std::string& list, const std::string& function,
                                         const std::string& arguments) {
        std::string text;
        std::string first;
        std::string after;
        if (!list.empty()) {
            text =
                unsigned_of(destinations[0].type.bits) + " d_[" + std::to_string(destinations.size()) + "]; ";
            first = "d_";
        }
        for (std::size_t k = 0; k < destinations.size(); ++k) {
            const std::string number = std::to_string(k);
            const std::string own = list.empty() ? "d" + number + "_" : "d_[" + number + "]";
            if (list.empty()) {
                text += unsigned_of(destinations[k].type.bits) + " " + own + "; ";
                first += (first.empty() ? "" : ", ") + own;
            }
            if (!destinations[k].variable.empty()) after += " " + assigned(destinations[k], own);
        }
        return text + function + "(" + first + (arguments.empty() ? "" : ", ") + arguments + ");" + after;
    }

    // {a, b}; one register may stand without braces.
    void elements(const Operand& given, std::string_view want, const std::string& where,
                  std::vector<Destination>& destinations, std::string& list, std::string& arguments) {
        const std::size_t star = want.rfind('*');
        const std::string_view count_text = want.substr(star + 1);
        const std::string count_name = is_digit(count_text[0])
                                           ? std::string(count_text)
                                           : constant_of(count_text[0], bound_.at(count_text[0]));
        const std::size_t divisor = count_text.ends_with("/2") ? 2 : 1;
        const std::size_t count = std::strtoul(count_name.c_str(), nullptr, 10) / divisor;
        std::string_view element = want.substr(0, star);
        const std::vector<Operand> single = {given};
        const bool is_list = given.kind == OperandKind::list;
        if (!is_list && count > 1)
            fail(where + ": expected " + std::to_string(count) + " registers in braces");
        const std::vector<Operand>& parts = is_list ? given.parts : single;
        if (parts.size() != count)
            fail(where + " has " + std::to_string(parts.size()) + " elements; expected " +
                 std::to_string(count));
        if (element[0] == '&') {
            arguments += (arguments.empty() ? "" : ", ") + in_place(parts, element.substr(1), where);
            return;
        }
        if (element[0] == '=' || element[0] == '~') {
            list = "d_";
            for (const Operand& part : parts)
                destinations.push_back(destination(part, element, where));
            return;
        }
        const bool wide = element[0] == '*';
        if (wide) element.remove_prefix(1);
        const PtxType type = type_of(element);
        std::string values;
        for (const Operand& part : parts)
            values += (values.empty() ? "" : ", ") + source(part, type, wide, where).text;
        arguments += (arguments.empty() ? "" : ", ") + "isa_::List<"s + unsigned_of(type.bits) + ", " +
                     count_name + ">{{" + values + "}}";
    }

    // The locations of results of the statement, for an instruction that changes them after the
    // statement.
    std::string in_place(const std::vector<Operand>& parts, std::string_view type, const std::string& where) {
        std::string places;
        for (const Operand& part : parts) {
            if (part.kind != OperandKind::statement || !operands_[part.index].result)
                fail(where + ", " + quoted(part.text) + ", is no result of the asm statement");
            check_bits(operands_[part.index].bits, type_of(type), false, part, where);
            in_place_.push_back(part.index);
            places += (places.empty() ? "&" : ", &") + operands_[part.index].variable + "_";
        }
        return "isa_::Places<" + std::to_string(parts.size()) + ">{{" + places + "}}";
    }

    // `want` begins with =, or with ~ for a register that may be wider than the type.
    Destination destination(const Operand& given, std::string_view want, const std::string& where) const {
        const bool wide = want[0] == '~';
        want.remove_prefix(1);
        const PtxType type = type_of(want);
        Destination result{"", type.bits, type, type_name(want)};
        if (given.kind == OperandKind::sink) return result;
        const Register* const known = given.kind == OperandKind::statement ? &operands_[given.index]
                                      : given.kind == OperandKind::name    ? find_register(given.text)
                                                                           : nullptr;
        if (known == nullptr || known->constant || given.negated)
            fail(where + ", " + quoted(given.text) + ", is no register of this asm statement");
        check_bits(known->bits, type, wide, given, where);
        result.variable = known->variable;
        result.bits = known->bits;
        return result;
    }

    void check_bits(unsigned bits, PtxType type, bool wide, const Operand& given,
                    const std::string& where) const {
        if (bits == type.bits || (wide && bits > type.bits && type.bits > 1)) return;
        const auto text = [](unsigned count) {
            return count == 1 ? "is a predicate"s : "has " + std::to_string(count) + " bits";
        };
        fail(where + ", " + quoted(given.text) + ", " + text(bits) + "; expected " +
             (type.bits == 1 ? "a predicate"
                             : std::to_string(type.bits) + (wide ? " bits or more" : " bits")));
    }

    Value source(const Operand& given, PtxType type, bool wide, const std::string& where) const {
        switch (given.kind) {
            case OperandKind::integer:
                return integer(given, type, where);
            case OperandKind::real:
                return real(given, type, where);
            case OperandKind::special:
                return special(given, type, where);
            case OperandKind::statement:
                return of_register(operands_[given.index], given, type, wide, where);
            case OperandKind::name:
                if (const Register* known = find_register(given.text); known != nullptr)
                    return of_register(*known, given, type, wide, where);
                if (given.text == "WARP_SZ") return {"32", 32};
                fail(where + ", " + quoted(given.text) + ", is no register of this asm statement");
            default:
                fail(where + ", " + quoted(given.text) + ", is not a register or a number");
        }
    }
    Value of_register(const Register& known, const Operand& given, PtxType type, bool wide,
                      const std::string& where) const {
        if (known.constant) {
            if (type.bits == 1) return {"(" + known.variable + " != 0)", 1};
            return {"static_cast<" + unsigned_of(type.bits) + ">(" + (given.negated ? "-" : "") +
                        known.variable + ")",
                    type.bits};
        }
        check_bits(known.bits, type, wide, given, where);
        if (given.negated && type.bits != 1)
            fail(where + ", " + quoted(given.text) + ": only predicates can be negated");
        const std::string text = (given.negated ? "!" : "") + known.variable;
        if (known.bits == type.bits) return {text, type.bits};
        return {"static_cast<" + unsigned_of(type.bits) + ">(" + text + ")", type.bits};
    }
    static std::string literal(std::uint64_t value, unsigned bits) {
        if (bits < 64) value &= (std::uint64_t{1} << bits) - 1;
        return std::to_string(value) + (bits == 64 ? "ull" : "u");
    }
    Value integer(const Operand& given, PtxType type, const std::string& where) const {
        if (type.bits == 1) return {(given.value != 0) != given.negated ? "true" : "false", 1};
        if (type.floating && type.bits >= 32)
            fail(where + ", " + given.text +
                 ", is an integer; expected a floating-point number, such as 1.0 or "
                 "0f3F800000");
        const std::uint64_t value = given.negated ? 0 - given.value : given.value;
        return {literal(value, type.bits), type.bits};
    }
    Value real(const Operand& given, PtxType type, const std::string& where) const {
        const std::uint64_t sign = given.negated ? std::uint64_t{1} << (given.real_bits - 1) : 0;
        const std::uint64_t bits = given.value ^ sign;
        if (type.bits == given.real_bits) return {literal(bits, type.bits), type.bits};
        if (!type.floating || type.bits < 32)
            fail(where + ", " + given.text + ", is a floating-point number; expected an integer");
        if (type.bits == 32)
            return {
                literal(std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(bits))), 32),
                32};
        const double value = static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
        return {literal(std::bit_cast<std::uint64_t>(value), 64), 64};
    }
    Value special(const Operand& given, PtxType type, const std::string& where) const {
        const PtxSpecialRegister* const known = ptx_special_register(given.text);
        if (known == nullptr) {
            // A register that was declared with a % in its name.
            if (const Register* own = find_register("%" + given.text); own != nullptr)
                return of_register(*own, given, type, false, where);
            fail("the register %" + given.text + " is not provided on the CPU");
        }
        check_bits(known->bits, type, false, given, where);
        return {"isa_::" + std::string(known->function) + "()", known->bits};
    }

    // A 64-bit number that is an address; for a tensor map its coordinates, too, as one argument.
    std::vector<std::string> address(const Operand& given, std::string_view want,
                                     const std::string& where) const {
        if (given.kind != OperandKind::address) fail(where + ": expected an address, such as [%0]");
        std::string sum;
        for (const Operand& part : given.parts) {
            const bool is_register =
                (part.kind == OperandKind::statement && !operands_[part.index].constant) ||
                part.kind == OperandKind::name || part.kind == OperandKind::special;
            std::string term;
            if (!is_register) {
                term = source(part, {64, false}, false, where).text;
            } else {
                const Register* known = part.kind == OperandKind::statement ? &operands_[part.index]
                                        : part.kind == OperandKind::name    ? find_register(part.text)
                                                                            : find_register("%" + part.text);
                if (known == nullptr)
                    fail(where + ", " + quoted(part.text) + ", is no register of this asm statement");
                if (known->bits != 32 && known->bits != 64)
                    fail(where + ", " + quoted(part.text) + ", has " + std::to_string(known->bits) +
                         " bits; expected an address of 32 or 64 bits");
                term = known->variable;
            }
            sum += (sum.empty() ? "" : " + ") + term;
        }
        std::vector<std::string> result = {"std::uint64_t{" + sum + "}"};
        const std::string_view coordinates = want.substr(1, want.size() - 2);
        const std::size_t count = coordinates.empty() ? 0 : std::strtoul(coordinates.data(), nullptr, 10);
        if (given.coordinates.size() != count)
            fail(where + " has " + std::to_string(given.coordinates.size()) + " coordinates; expected " +
                 std::to_string(count));
        if (count == 0) return result;
        std::string values;
        for (const Operand& part : given.coordinates)
            values += (values.empty() ? "" : ", ") + source(part, {32, false}, false, where).text;
        result.push_back("isa_::List<std::uint32_t, " + std::to_string(count) + ">{{" + values + "}}");
        return result;
    }

    // --- Operands as they are written ------------------------------------------------------------

    Operand operand() {
        Operand result;
        if (scan_.take('!') || scan_.take('-')) {
            result = operand();
            result.negated = !result.negated;
            return result;
        }
        if (scan_.take('{')) {
            result.kind = OperandKind::list;
            result.text = "{...}";
            do {
                result.parts.push_back(operand());
            } while (scan_.take(','));
            scan_.expect('}', "in a list of " + quoted(instruction_));
            return result;
        }
        if (scan_.take('[')) return address_operand();
        if (scan_.take('%')) return percent_operand();
        if (scan_.take('(')) {
            result = operand();
            scan_.expect(')', "in an operand of " + quoted(instruction_));
            return result;
        }
        const char c = scan_.peek();
        if (is_digit(c) || c == '.')
            return number(scan_.take_while([](char d) { return continues_name(d) || d == '.'; }));
        result.text = scan_.take_name();
        if (result.text.empty())
            fail(c == '\0' ? "the text ends in its operands" : "'"s + c + "' in its operands");
        result.kind = result.text == "_" ? OperandKind::sink : OperandKind::name;
        return result;
    }

    // %0, %%laneid, %laneid, %r1.
    Operand percent_operand() {
        Operand result;
        scan_.take('%');
        if (is_digit(scan_.peek())) {
            result.text = scan_.take_while(is_digit);
            result.index = std::strtoul(result.text.c_str(), nullptr, 10);
            result.text.insert(0, "%");
            if (result.index >= operands_.size())
                fail("there is no operand " + result.text + "; the asm statement has " +
                     std::to_string(operands_.size()));
            result.kind = OperandKind::statement;
            return result;
        }
        result.text = scan_.take_while([](char c) { return continues_name(c) || c == '.'; });
        result.kind = OperandKind::special;
        if (find_register("%" + result.text) != nullptr) {
            result.kind = OperandKind::name;
            result.text.insert(0, "%");
        }
        return result;
    }

    // [a], [a + 16], [a, {x, y}]
    Operand address_operand() {
        Operand result;
        result.kind = OperandKind::address;
        result.text = "[...]";
        result.parts.push_back(operand());
        for (;;) {
            if (scan_.take('+')) {
                result.parts.push_back(operand());
            } else if (scan_.peek() == '-') {
                result.parts.push_back(operand());
            } else {
                break;
            }
        }
        if (scan_.take(',')) {
            const Operand coordinates = operand();
            result.coordinates =
                coordinates.kind == OperandKind::list ? coordinates.parts : std::vector<Operand>{coordinates};
        }
        scan_.expect(']', "in an address of " + quoted(instruction_));
        return result;
    }

    const PtxStatement& statement_;
    Scanner scan_;
    std::vector<Register> operands_;
    // Results that instructions change after the statement.
    std::vector<std::size_t> in_place_;
    std::vector<Names> names_;
    std::vector<std::vector<std::string>> labels_;
    std::string instruction_;
    std::map<char, std::string_view> bound_;
    std::vector<std::string_view> flags_;
};

}  // namespace

bool is_ptx(std::string_view text) {
    const auto is_letter = [&](std::size_t i) {
        return i < text.size() && std::islower(static_cast<unsigned char>(text[i])) != 0;
    };
    for (std::size_t dot = text.find('.'); dot != std::string_view::npos; dot = text.find('.', dot + 1)) {
        const bool follows_word = dot > 0 && std::isalnum(static_cast<unsigned char>(text[dot - 1])) != 0;
        if (follows_word && is_letter(dot + 1)) return true;
    }
    std::string dense;
    std::copy_if(text.begin(), text.end(), std::back_inserter(dense), [](char c) { return !is_blank(c); });
    return dense == "trap;" || dense == "exit;" || dense == "brkpt;";
}

std::string translate_ptx(const PtxStatement& statement) {
    return Translation(statement).run();
}

}  // namespace translator
