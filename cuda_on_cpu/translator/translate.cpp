#include "translate.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>
#include <optional>
#include <set>
#include <vector>

#include "ptx.hpp"
#include "tokens.hpp"

namespace translator {
namespace {

using namespace std::string_literals;

template <std::size_t N>
bool one_of(std::string_view word, const std::array<std::string_view, N>& words) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

// A half-open range of tokens.
struct Range {
    std::size_t begin;
    std::size_t end;
};

const std::string kGap = "256";  // bytes

// Where a kernel says that it may poll memory, in a file that does.
const std::string kMark = "\x01";
const std::string kMayPoll = "cuda_on_cpu_kernel_.may_poll(); ";

// `extern __shared__ T name[]...;` outside functions: declared again in each function that uses the
// name.
struct GlobalShared {
    std::string name;
    std::string declaration;
};

// Something declared volatile, known in one function (the brace that opens it) or, if kNone,
// everywhere.
struct VolatileName {
    std::string_view text;
    std::size_t function;
};

// A function that loads with a hint for the cache, and the brace that opens it.
struct LoadingFunction {
    std::string_view name;
    std::size_t brace;
};

class Translation {
  public:
    Translation(std::string_view input, Dialect dialect, SharedArrays shared_arrays,
                DeviceVariables device_variables, std::vector<Warning>* warnings)
        : tokens_(input),
          dialect_(dialect),
          gaps_(shared_arrays == SharedArrays::in_gaps),
          own_device_variables_(device_variables == DeviceVariables::own),
          warnings_(warnings) {
        text_.reserve(tokens_.size());
        for (std::size_t i = 0; i < tokens_.size(); ++i)
            text_.emplace_back(tokens_[i].text);
        after_.resize(tokens_.size());
    }

    std::string run() {
        find_volatile_names();
        find_warp_synchronous_code();
        for (std::size_t i = 0; i < tokens_.size(); ++i) {
            const Token& token = tokens_[i];
            if (token.kind == TokenKind::directive) {
                if (token.text.find("unroll") != std::string_view::npos) translate_unroll(i);
            } else if (token.kind == TokenKind::identifier) {
                translate_word(i);
            } else if (token.is("<") && is_launch_bracket(i, "<") &&
                       !tokens_.is(tokens_.previous(i), "operator")) {
                translate_launch(i);
            } else if ((token.is("<") || token.is(">")) && i < device_code_end_ &&
                       tokens_.is_run(i, token.text, 2)) {
                translate_shift(i);
            }
        }
        declare_global_shared();
        for (std::size_t i = 0; i < tokens_.size(); ++i) {
            if (is_asm(tokens_[i])) translate_asm(i);
        }
        std::string result;
        for (std::size_t i = 0; i < tokens_.size(); ++i) {
            result += text_[i];
            result += after_[i];
        }
        return with_marks(result);
    }

  private:
    // Which kernel it is that a loop is called from is not known, so all of a file that polls are
    // said to poll.
    static std::string with_marks(const std::string& text) {
        // The last ones are of loads by inline PTX.
        static constexpr std::string_view kPolls[] = {"::cuda_on_cpu::empty_loop()", "::cuda_on_cpu::poll()",
                                                      "isa_::flag::volatile_",       "isa_::flag::relaxed",
                                                      "isa_::flag::acquire",         "isa_::flag::cv"};
        const bool polls = std::any_of(std::begin(kPolls), std::end(kPolls), [&](std::string_view words) {
            return text.find(words) != std::string::npos;
        });
        std::string result;
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t mark = std::min(text.find(kMark, at), text.size());
            result.append(text, at, mark - at);
            if (mark < text.size() && polls) result += kMayPoll;
            at = mark + kMark.size();
        }
        return result;
    }

    // --- Editing ---------------------------------------------------------------------------------

    // Removes a token; line ends (a raw string may hold some) and directives stay, so that the line
    // structure does.
    void erase(std::size_t i) {
        if (tokens_[i].significant()) text_[i] = line_ends(tokens_[i].text);
    }
    static std::string line_ends(std::string_view text) {
        return std::string(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')), '\n');
    }
    void erase(Range range) {
        for (std::size_t i = range.begin; i < range.end; ++i)
            erase(i);
    }
    // The text of some tokens, on one line.
    std::string flat(Range range) const {
        std::string result;
        for (std::size_t i = range.begin; i < range.end; ++i) {
            if (tokens_[i].significant()) {
                if (tokens_[i].text.find('\n') != std::string_view::npos)
                    fail(i, "a literal of several lines in here");
                result += tokens_[i].text;
            } else if (!result.empty() && result.back() != ' ') {
                result += ' ';
            }
        }
        while (!result.empty() && result.back() == ' ')
            result.pop_back();
        return result;
    }
    std::size_t closing(std::size_t open) const {
        const std::size_t close = tokens_.match(open);
        if (close == kNone) fail(open, "this bracket is never closed");
        return close;
    }
    // The name in the last line marker, `# line "file" flags`, before token `i`.
    std::string file_of(std::size_t i) const {
        for (std::size_t at = i + 1; at-- > 0;) {
            const std::string_view text = tokens_[at].text;
            if (tokens_[at].kind != TokenKind::directive || !text.starts_with("# ")) continue;
            const std::size_t open = text.find('"');
            if (open == std::string_view::npos) continue;
            return std::string(text.substr(open + 1, text.rfind('"') - open - 1));
        }
        return "";
    }
    std::string place_of(std::size_t i) const {
        const std::string file = file_of(i);
        return (file.empty() ? "line " : file + ":") + std::to_string(tokens_[i].line);
    }
    void warn(std::size_t i, const std::string& message) const {
        if (warnings_ != nullptr) warnings_->push_back({file_of(i), tokens_[i].line, message});
    }
    [[noreturn]] void fail(std::size_t i, const std::string& message) const {
        const std::size_t place = std::min(i, tokens_.size() - 1);
        throw TranslationError(file_of(place), tokens_[place].line, message);
    }

    void translate_word(std::size_t i) {
        const Token& word = tokens_[i];
        if (word.is("__device__") || word.is("__constant__") || word.is("__managed__")) {
            translate_device(i);
        } else if (word.is("__host__") || word.is("__grid_constant__")) {
            erase(i);
        } else if (word.is("__global__")) {
            translate_kernel(i);
        } else if (word.is("__shared__")) {
            translate_shared(i);
        } else if (word.is("__launch_bounds__") || word.is("__cluster_dims__") || word.is("__maxnreg__")) {
            erase(i);
            if (const std::size_t open = tokens_.next(i); tokens_.is(open, "("))
                erase({open, closing(open) + 1});
        } else if (word.is("__noinline__")) {
            // Inside __attribute__((...)) it is the compiler's own word.
            if (!tokens_.is(tokens_.previous(i), "(") && !tokens_.is(tokens_.previous(i), ",")) {
                text_[i] = "__attribute__((noinline))";
            }
        } else if (word.is("while") || word.is("for")) {
            if (!translate_empty_loop(i)) translate_waiting_loop(i);
        } else if (word.is("goto")) {
            translate_goto(i);
        } else if (is_removed_property(word.text)) {
            tell_of_removed_property(i);
        } else if (word.is("texture") || word.text.starts_with("cudaBindTexture")) {
            tell_of_texture_reference(i);
        } else if (word.is("main")) {
            return_from_main(i);
        } else if (takes_kernel(word.text)) {
            remove_casts_of_kernels(i);
        } else if (is_atomic_sum(word.text)) {
            mark_unused_result(i);
        } else if ((word.is("new") || word.is("malloc")) && i < device_code_end_) {
            tell_of_allocation(i);
        } else if (kernels_.contains(word.text)) {
            require_configuration(i);
        } else if (device_variables_.contains(word.text)) {
            tell_of_device_variable(i);
        } else if (i < device_code_end_ && tokens_.is(tokens_.next(i), "(")) {
            tell_of_host_function(i);
        }
    }

    // --- Atomic functions whose result is not used -----------------------------------------------

    static bool is_atomic_sum(std::string_view word) {
        static constexpr std::array<std::string_view, 7> kNames = {
            "atomicAdd", "atomicSub", "atomicMin", "atomicMax", "atomicAnd", "atomicOr", "atomicXor"};
        for (const std::string_view scope : {"_block", "_system"}) {
            if (word.ends_with(scope)) word.remove_suffix(scope.size());
        }
        return one_of(word, kNames);
    }

    // `atomicAdd(p, x);` may run in any order of threads and gives the same, unlike `i =
    // atomicAdd(p, x);`.
    void mark_unused_result(std::size_t name) {
        const std::size_t open = tokens_.next(name);
        if (!tokens_.is(open, "(")) return;
        const std::size_t close = closing(open);
        if (!tokens_.is(tokens_.next(close), ";") || !begins_statement(name)) return;
        // A function among the arguments might use an atomic function, or let other threads run.
        for (std::size_t i = open + 1; i < close; ++i) {
            if (tokens_[i].kind == TokenKind::identifier && tokens_.is(tokens_.next(i), "(") &&
                !computes_only(tokens_[i].text))
                return;
        }
        text_[name].insert(0, "::cuda_on_cpu::result_unused = true, ");
        after_[close] += ", ::cuda_on_cpu::result_unused = false";
    }
    static bool computes_only(std::string_view function) {
        static constexpr std::array<std::string_view, 24> kNames = {
            "min",   "max",    "abs",  "fabsf",    "fabs",   "fminf",  "fmaxf",  "int",
            "float", "exp",    "expf", "unsigned", "double", "sqrt",   "sqrtf",  "__float2int_rn",
            "floor", "floorf", "pow",  "powf",     "__popc", "sizeof", "__expf", "__float_as_int"};
        return one_of(function, kNames);
    }
    bool begins_statement(std::size_t i) const {
        const std::size_t before = tokens_.previous(i);
        for (const std::string_view end : {";", "{", "}", "else", "do"}) {
            if (tokens_.is(before, end)) return true;
        }
        if (!tokens_.is(before, ")")) return false;
        std::size_t head = tokens_.previous(tokens_.match(before));
        if (tokens_.is(head, "constexpr")) head = tokens_.previous(head);
        return tokens_.is(head, "if") || tokens_.is(head, "for") || tokens_.is(head, "while");
    }

    // Which thread gets which address depends on the order of threads by right (order_check.hpp).
    void tell_of_allocation(std::size_t i) {
        static const std::string kMayShow = " ::cuda_on_cpu::order_may_show = true;";
        const std::size_t body = outermost_function(i);
        if (body == kNone || after_[body].ends_with(kMayShow)) return;
        for (std::size_t p = declaration_begin(body); p < body; ++p)
            if (tokens_[p].is("constexpr")) return;
        after_[body] += kMayShow;
    }

    // texture<float, 2, cudaReadModeElementType> name; and what is done with it. Programs may have
    // a class of that name.
    void tell_of_texture_reference(std::size_t word) const {
        std::size_t i = tokens_.next(word);
        if (tokens_[word].is("texture")) {
            if (!tokens_.is(i, "<")) return;
            while (i < tokens_.size() && !tokens_[i].is(";") && !tokens_[i].text.starts_with("cudaReadMode"))
                ++i;
            if (i >= tokens_.size() || tokens_[i].is(";")) return;
        } else if (!tokens_.is(i, "(")) {
            return;
        }
        fail(word,
             "texture references were removed in CUDA 12: make a cudaTextureObject_t with "
             "cudaCreateTextureObject(), hand it to the kernel and read it with tex2D<float>(object, x, y)");
    }

    // --- asm(...) --------------------------------------------------------------------------------

    // PTX becomes calls of functions. What there is no function for is an error where the compiler
    // makes code of it: headers may have more asm statements than a program uses.
    static bool is_asm(const Token& token) {
        return token.is("asm") || token.is("__asm__") || token.is("__asm");
    }
    void translate_asm(std::size_t word) {
        std::size_t open = tokens_.next(word);
        while (open != kNone && tokens_[open].kind == TokenKind::identifier)  // volatile
            open = tokens_.next(open);
        if (!tokens_.is(open, "(") || tokens_.match(open) == kNone) return;
        const std::size_t close = tokens_.match(open);
        std::vector<Range> sections = {{open + 1, open + 1}};
        for (std::size_t i = open + 1; i < close; ++i) {
            if (tokens_[i].is(":")) {
                sections.push_back({i + 1, i + 1});
                continue;
            }
            if (tokens_.match(i) != kNone && tokens_.match(i) > i) i = tokens_.match(i);
            sections.back().end = i + 1;
        }
        PtxStatement statement;
        statement.text = joined_literals(sections[0]);
        if (!is_ptx(statement.text)) return;
        const std::size_t end = tokens_.next(close);
        if (!tokens_.is(end, ";")) fail(word, "asm with PTX is not followed by a semicolon");
        std::string text;
        try {
            if (sections.size() > 1) statement.outputs = asm_operands(sections[1]);
            if (sections.size() > 2) statement.inputs = asm_operands(sections[2]);
            text = translate_ptx(statement);
        } catch (const PtxError& error) {
            const std::string function = "cuda_on_cpu_refuses_ptx_" + std::to_string(word);
            text = "{ extern void " + function + "() __attribute__((error(" + string_literal(error.what()) +
                   "))); " + function + "(); }";
        }
        erase({word, end});
        for (std::size_t i = word; i < end; ++i)
            after_[i].clear();
        text_[word] = text;
        text_[end].erase(0, 1);  // the semicolon
    }

    // What has become of some tokens, on one line.
    std::string translated(Range range) const {
        std::string result;
        for (std::size_t i = range.begin; i < range.end; ++i) {
            if (tokens_[i].significant() && tokens_[i].text.find('\n') != std::string_view::npos)
                fail(i, "a literal of several lines in here");
            if (tokens_[i].significant()) {
                result += text_[i];
            } else if (!result.empty() && result.back() != ' ') {
                result += ' ';
            }
            result += after_[i];
        }
        return result;
    }

    // The characters of literals side by side.
    std::string joined_literals(Range range) const {
        std::string text;
        for (std::size_t i = range.begin; i < range.end; ++i) {
            if (tokens_[i].kind == TokenKind::literal) text += characters_of(tokens_[i].text);
        }
        return text;
    }
    static std::string characters_of(std::string_view literal) {
        const std::size_t quote = literal.find('"');
        if (quote == std::string_view::npos || literal.size() < quote + 2) return "";
        if (quote > 0 && literal[quote - 1] == 'R') {
            const std::size_t begin = literal.find('(') + 1;
            return std::string(literal.substr(begin, literal.rfind(')') - begin));
        }
        static constexpr std::string_view kEscapes = "ntrvfab0";
        static constexpr std::string_view kMeant = "\n\t\r\v\f\a\b ";
        std::string text;
        for (std::size_t i = quote + 1; i + 1 < literal.size(); ++i) {
            if (literal[i] != '\\' || i + 2 >= literal.size()) {
                text += literal[i];
                continue;
            }
            ++i;
            const std::size_t escape = kEscapes.find(literal[i]);
            if (literal[i] == '\n') continue;
            text += escape == std::string_view::npos ? literal[i] : kMeant[escape];
        }
        return text;
    }
    static std::string string_literal(std::string_view text) {
        std::string result = "\"";
        for (const char c : text) {
            if (c == '"' || c == '\\') result += '\\';
            result += c == '\n' || c == '\t' ? ' ' : c;
        }
        return result + "\"";
    }

    // "=r"(x), "r"(y)
    std::vector<PtxOperand> asm_operands(Range section) const {
        std::vector<PtxOperand> operands;
        for (std::size_t i = next_in(section); i != kNone; i = next_in({i, section.end})) {
            if (tokens_[i].is("["))
                throw PtxError("PTX: operands with names are not provided; expected %0, %1, ...");
            std::string constraint;
            while (i != kNone && tokens_[i].kind == TokenKind::literal) {
                constraint += characters_of(tokens_[i].text);
                i = tokens_.next(i);
            }
            if (!tokens_.is(i, "(") || constraint.empty())
                fail(section.begin, "asm: expected \"constraint\"(expression)");
            operands.push_back({constraint, translated({i + 1, closing(i)})});
            i = tokens_.next(closing(i));
            if (i >= section.end) break;
            if (tokens_.is(i, ",")) {
                ++i;
            } else if (tokens_[i].kind != TokenKind::literal) {  // nvcc does without a comma
                break;
            }
        }
        return operands;
    }

    // --- __device__, __constant__, __managed__ ---------------------------------------------------

    // On the CPU the words mean nothing, but that each .cu file has its own variables.
    void translate_device(std::size_t i) {
        erase(i);
        enter_device_code(i);
        if (tokens_[i].is("__constant__")) choose_constant_section(i);
        if (!is_namespace(tokens_.enclosing_brace(i))) return;
        const Range declaration{declaration_begin(i), tokens_.size()};
        const std::size_t name = variable_name(declaration);
        if (name == kNone) return;
        note_device_variable({declaration.begin, name});
        // "used": it may be written by its name, as in a module, which the compiler does not see.
        for (std::size_t p = declaration.begin; p < name; ++p) {
            if (text_[p].find("static __attribute__") != std::string::npos) return;  // of __device__ before
            if (tokens_[p].is("static")) {
                text_[i] = "__attribute__((used))";
                return;
            }
        }
        if (own_device_variables_ && !is_declared_extern(tokens_[name].text))
            text_[i] = "static __attribute__((used))";
    }

    // Constants have the same value on both sides, and managed variables are the same variable.
    void note_device_variable(Range before_name) {
        static constexpr std::array<std::string_view, 3> kCommon = {"const", "constexpr", "__managed__"};
        for (std::size_t p = before_name.begin; p < before_name.end; ++p) {
            if (one_of(tokens_[p].text, kCommon)) return;
        }
        device_variables_.insert(tokens_[before_name.end].text);
    }

    // No section holds variables that may be written beside some that may not. Behind the word
    // stands __attribute__((section("cuda_on_cpu_constant"))), of its macro.
    void choose_constant_section(std::size_t word) {
        static constexpr std::array<std::string_view, 5> kEnds = {";", "=", "[", "{", ","};
        std::size_t section = kNone;
        bool is_const = false;
        for (std::size_t i = declaration_begin(word); i != kNone && i < tokens_.size(); ++i) {
            const Token& token = tokens_[i];
            if (is_decoration(i)) {
                const std::size_t end = closing(tokens_.next(i));
                for (; i < end; ++i)
                    if (tokens_[i].is("\"cuda_on_cpu_constant\"")) section = i;
            } else if (token.is("<")) {
                // Arguments of a template: const within them is another type's.
                int depth = 1;
                while (depth > 0 && ++i < tokens_.size())
                    depth += tokens_[i].is("<") ? 1 : tokens_[i].is(">") ? -1 : tokens_[i].is(">>") ? -2 : 0;
            } else if (token.is("const") || token.is("constexpr")) {
                is_const = true;
            } else if (token.is("*")) {  // a pointer to const may be written
                is_const = false;
            } else if (one_of(token.text, kEnds)) {
                break;
            }
        }
        if (is_const && section != kNone) text_[section] = "\"cuda_on_cpu_const\"";
    }

    // The name of the variable that a declaration at `declaration.begin` declares; kNone if that is
    // none, or one of a class, or if it has another linkage than that of its file.
    std::size_t variable_name(Range declaration) const {
        static constexpr std::array<std::string_view, 9> kOthers = {
            "extern", "inline", "using", "typedef", "friend", "operator", "namespace", "concept", "template"};
        static constexpr std::array<std::string_view, 4> kEnds = {";", "=", "[", "{"};
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
    std::string_view text_before(std::size_t i) const {
        const std::size_t before = tokens_.previous(i);
        return before == kNone ? std::string_view() : tokens_[before].text;
    }
    // `extern __constant__ float c[];` in a header: the definition must not be static.
    bool is_declared_extern(std::string_view name) const {
        for (std::size_t i = 0; i < tokens_.size(); ++i) {
            if (!tokens_[i].is(name)) continue;
            for (std::size_t p = declaration_begin(i); p < i; ++p) {
                if (tokens_[p].is("extern")) return true;
            }
        }
        return false;
    }
    // Words before a declaration that are no part of the type.
    static bool is_attribute_word(std::string_view word) {
        static constexpr std::array<std::string_view, 8> kWords = {
            "__device__", "__host__", "__constant__",      "__managed__",
            "__shared__", "extern",   "__grid_constant__", "static"};
        return one_of(word, kWords);
    }

    // --- Shifts by 32 bits and more --------------------------------------------------------------

    // Behind `__global__` or `__device__`: up to the end of the function's body, if it has one.
    void enter_device_code(std::size_t word) {
        bool has_parameters = false;
        for (std::size_t i = tokens_.next(word); i != kNone; i = tokens_.next(i)) {
            if (tokens_[i].is(";") || tokens_[i].is("=") || tokens_[i].is("}") || tokens_[i].is(",")) return;
            if (tokens_[i].is("{")) {
                if (has_parameters) device_code_end_ = std::max(device_code_end_, closing(i));
                return;
            }
            has_parameters = has_parameters || tokens_[i].is("(");
            if (tokens_[i].is("(") || tokens_[i].is("[")) i = closing(i);
        }
    }

    // A GPU shifts all bits out where the amount is the width or more, a CPU takes the amount
    // modulo the width. So the amount is marked, and shifts by a marked amount
    // (cuda_on_cpu/shift.h) do as a GPU does. A literal needs no mark.
    void translate_shift(std::size_t i) {
        const std::size_t before = tokens_.previous(i);
        if (before == kNone || tokens_[before].is("operator") || tokens_[before].is(tokens_[i].text)) return;
        const bool assigns = tokens_.is(i + 2 < tokens_.size() ? i + 2 : kNone, "=");
        if (tokens_[i].is(">") && has_open_angle(i)) return;
        const std::size_t begin = tokens_.next(assigns ? i + 2 : i + 1);
        const std::size_t end = end_of_amount(begin, assigns);
        if (begin == kNone || end == kNone || end <= begin) return;
        const bool literal = tokens_[begin].kind == TokenKind::number && tokens_.next(begin) == end;
        if (literal) return;
        if (assigns &&
            is_member(before)) {  // of a bit field there are no references: x.f <<= n becomes x.f = x.f << n
            const std::size_t chain = begin_of_chain(before);
            if (chain == kNone) return;
            after_[begin - 1] +=
                " (" + flat({chain, before + 1}) + ") " + std::string(2, tokens_[i].text.front());
            erase({i, i + 2});
        }
        after_[begin - 1] += " ::cuda_on_cpu::shift_amount(";
        after_[tokens_.previous(end)] += ")";
    }

    bool is_member(std::size_t name) const {
        const std::size_t before = tokens_.previous(name);
        return tokens_[name].kind == TokenKind::identifier &&
               (tokens_.is(before, ".") || tokens_.is(before, ">"));
    }

    // Of `a.b->c`, whose last name is at `i`; kNone if a call or an index is in it, which must not
    // happen twice.
    std::size_t begin_of_chain(std::size_t i) const {
        while (is_member(i)) {
            const std::size_t dot = tokens_.previous(i);
            i = tokens_.previous(tokens_[dot].is(".") ? dot : tokens_.previous(dot));
            if (i == kNone || tokens_[i].kind != TokenKind::identifier) return kNone;
        }
        return i;
    }

    // Is there an `<` before in the same brackets that no `>` has closed, so that `>>` may end two
    // lists of template arguments?
    bool has_open_angle(std::size_t i) const {
        int closed = 0;
        for (std::size_t p = tokens_.previous(i); p != kNone; p = tokens_.previous(p)) {
            if (tokens_[p].is("<") && closed-- == 0) return true;
            if (tokens_[p].is(">") && p > 0 && !tokens_[p - 1].is("-")) ++closed;
            if (tokens_[p].is(";") || tokens_[p].is("{") || tokens_[p].is("(") || tokens_[p].is("["))
                return false;
            const bool closes = tokens_[p].is(")") || tokens_[p].is("]") || tokens_[p].is("}");
            if (closes && tokens_.match(p) != kNone) p = tokens_.match(p);
        }
        return false;
    }

    // Behind the right operand of a shift that begins at `i`; kNone where that is not clear.
    std::size_t end_of_amount(std::size_t i, bool assigns) const {
        static constexpr std::array<std::string_view, 14> kEnds = {";", ",", ")", "]", "}", "?", ":",
                                                                   "<", ">", "=", "!", "&", "|", "^"};
        static constexpr std::array<std::string_view, 4> kCasts = {"static_cast", "reinterpret_cast",
                                                                   "const_cast", "bit_cast"};
        const std::size_t begin = i;
        while (i != kNone) {
            const Token& token = tokens_[i];
            const bool opens = token.is("(") || token.is("[") || token.is("{");
            if (opens) {
                if (tokens_.match(i) == kNone) return kNone;
                i = tokens_.next(tokens_.match(i));
            } else if (one_of(token.text, kCasts) && tokens_.is(tokens_.next(i), "<")) {
                while (i != kNone && !tokens_[i].is("(") && !tokens_[i].is(";"))
                    i = tokens_.next(i);
            } else if (token.is(":") && tokens_.is(i + 1, ":")) {
                i = tokens_.next(i + 1);
            } else if (token.is("-") && tokens_.is(i + 1, ">")) {
                i = tokens_.next(i + 1);
            } else if (i != begin && one_of(token.text, kEnds) && !(assigns && is_binary(token))) {
                const std::size_t before = tokens_.previous(i);
                const bool may_be_template = token.is("<") && !tokens_.is(i + 1, "<") &&
                                             !tokens_.is(i + 1, "=") &&
                                             tokens_[before].kind == TokenKind::identifier;
                return may_be_template ? kNone : i;
            } else {
                i = tokens_.next(i);
            }
        }
        return kNone;
    }
    // Between operands of the right side of an assignment.
    static bool is_binary(const Token& token) {
        static constexpr std::array<std::string_view, 5> kOperators = {"&", "|", "^", "!", "="};
        return one_of(token.text, kOperators);
    }

    // --- Fields of the device's properties that CUDA 13 has no more ------------------------------

    static bool is_removed_property(std::string_view word) {
        static constexpr std::array<std::string_view, 8> kFields = {"clockRate",
                                                                    "computeMode",
                                                                    "cooperativeMultiDeviceLaunch",
                                                                    "deviceOverlap",
                                                                    "kernelExecTimeoutEnabled",
                                                                    "maxTexture1DLinear",
                                                                    "memoryClockRate",
                                                                    "singleToDoublePrecisionPerfRatio"};
        return one_of(word, kFields);
    }

    void tell_of_removed_property(std::size_t i) {
        if (!is_member(i) || !told_of_.insert(tokens_[i].text).second) return;
        const std::string instead =
            tokens_[i].is("deviceOverlap") ? "asyncEngineCount" : "cudaDeviceGetAttribute or NVML";
        warn(i, "'" + std::string(tokens_[i].text) + "': cudaDeviceProp has no such field in CUDA 13; use " +
                    instead);
    }

    // --- return; in main -------------------------------------------------------------------------

    // nvcc warns of it, g++ takes it for an error.
    void return_from_main(std::size_t name) {
        const std::size_t parameters = tokens_.next(name);
        if (!tokens_.is(tokens_.previous(name), "int") || !tokens_.is(parameters, "(")) return;
        const std::size_t body = tokens_.next(closing(parameters));
        if (!tokens_.is(body, "{") || tokens_.enclosing_brace(name) != kNone) return;
        for (std::size_t i = body; i < closing(body); ++i) {
            if (!tokens_[i].is("return") || !tokens_.is(tokens_.next(i), ";") || in_lambda(i, body)) continue;
            text_[i] = "return 0";
            warn(i, "return without a value in main, which returns int; it returns 0");
        }
    }

    bool in_lambda(std::size_t i, std::size_t function) const {
        for (std::size_t brace = tokens_.enclosing_brace(i); brace != kNone && brace != function;
             brace = tokens_.enclosing_brace(brace)) {
            for (std::size_t p = tokens_.previous(brace); p != kNone; p = tokens_.previous(p)) {
                if (tokens_[p].is(";") || tokens_[p].is("{") || tokens_[p].is("}")) break;
                if (tokens_[p].is("]")) return true;
                if (tokens_[p].is(")") && tokens_.match(p) != kNone) p = tokens_.match(p);
            }
        }
        return false;
    }

    // --- #pragma unroll --------------------------------------------------------------------------

    void translate_unroll(std::size_t i) {
        if (dialect_ == Dialect::clang) return;  // knows it
        std::string_view rest = tokens_[i].text.substr(1);
        const auto take_word = [&rest] {
            while (!rest.empty() &&
                   !(std::isalnum(static_cast<unsigned char>(rest.front())) || rest.front() == '_')) {
                rest.remove_prefix(1);
            }
            std::size_t length = 0;
            while (length < rest.size() &&
                   (std::isalnum(static_cast<unsigned char>(rest[length])) || rest[length] == '_')) {
                ++length;
            }
            const std::string_view taken = rest.substr(0, length);
            rest.remove_prefix(length);
            return taken;
        };
        if (take_word() != "pragma" || take_word() != "unroll") return;
        const std::string_view factor = take_word();
        const bool is_number = !factor.empty() && std::all_of(factor.begin(), factor.end(),
                                                              [](char c) { return c >= '0' && c <= '9'; });
        // g++ takes a literal number only. 32 unrolls loops over a tile completely; one that is
        // unrolled in part, or not, adds to its sum in memory, because a barrier further out leaves
        // no register alone.
        text_[i] =
            "#pragma GCC unroll " + (is_number ? std::string(factor) : "32"s) + line_ends(tokens_[i].text);
    }

    // --- kernel<<<...>>>(...) --------------------------------------------------------------------

    // Three equal brackets, as of a launch: `<<<`, and with blanks `<< <` or `< <<`.
    bool is_launch_bracket(std::size_t i, std::string_view bracket) const {
        if (i >= tokens_.size()) return false;
        const std::size_t second = tokens_.next(i);
        const std::size_t third = tokens_.next(second);
        return tokens_.is(i, bracket) && tokens_.is(second, bracket) && tokens_.is(third, bracket) &&
               (second == i + 1 || third == second + 1);
    }
    std::size_t third_bracket(std::size_t i) const { return tokens_.next(tokens_.next(i)); }

    void translate_launch(std::size_t open) {
        const std::size_t begin = third_bracket(open) + 1;
        std::size_t close = begin;
        while (!(is_launch_bracket(close, ">") && tokens_.is(tokens_.next(third_bracket(close)), "("))) {
            if (close >= tokens_.size() || tokens_[close].is(";")) fail(open, "<<< without >>>(");
            const bool bracket =
                tokens_[close].kind == TokenKind::punctuation && tokens_.match(close) != kNone;
            close = bracket && tokens_.match(close) > close ? tokens_.match(close) + 1 : close + 1;
        }
        require_kernel(open);
        const std::size_t end = third_bracket(close) + 1;
        const std::size_t arguments = tokens_.next(end - 1);
        after_[closing(arguments)] =
            ", ::cuda_on_cpu::launch(" + flat({begin, close}) + ")" + after_[closing(arguments)];
        erase({open, end});
    }

    // `f<<<...>>>()` calls f here, whatever it is. What is known to be a function, and no kernel,
    // is refused as by nvcc.
    void require_kernel(std::size_t launch) const {
        std::size_t name = tokens_.previous(launch);
        if (tokens_.is(name, ">")) name = before_template_arguments(name);
        if (name == kNone || tokens_[name].kind != TokenKind::identifier) return;
        const std::size_t definition = plain_function(tokens_[name].text);
        if (definition == kNone) return;
        const std::string function(tokens_[name].text);
        fail(launch, "'" + function + "' is launched with <<<...>>> and is no kernel: its definition in " +
                         place_of(definition) + " has no __global__. Write __global__ void " + function +
                         "(...), or call it without <<<...>>>");
    }

    // `k(x);` would call a kernel as a function, and launch nothing.
    void require_configuration(std::size_t name) const {
        if (!begins_statement(name)) return;
        std::size_t open = tokens_.next(name);
        if (tokens_.is(open, "<") && !is_launch_bracket(open, "<")) open = behind_template_arguments(open);
        if (!tokens_.is(open, "(") || !tokens_.is(tokens_.next(closing(open)), ";")) return;
        if (is_standard_function(tokens_[name].text) || is_declared_without(name, {"__global__"})) return;
        const std::string kernel(tokens_[name].text);
        fail(name, "the kernel '" + kernel + "' is called without <<<...>>>: expected " + kernel +
                       "<<<grid, block>>>(...)");
    }
    // `fill(v.begin(), v.end(), 0);` is std::fill, beside a kernel of that name too. Precompiled
    // headers declare these: the file's tokens do not show them.
    static bool is_standard_function(std::string_view name) {
        static constexpr std::array<std::string_view, 35> kNames = {
            "advance",   "copy",      "copy_backward", "copy_if",     "copy_n",       "fill",      "fill_n",
            "for_each",  "free",      "generate",      "generate_n",  "iter_swap",    "make_heap", "memcpy",
            "memmove",   "memset",    "merge",         "nth_element", "partial_sort", "partition", "pop_heap",
            "push_heap", "remove",    "replace",       "replace_if",  "reverse",      "rotate",    "shuffle",
            "sort",      "sort_heap", "stable_sort",   "swap",        "swap_ranges",  "transform", "unique"};
        return one_of(name, kNames);
    }
    std::size_t behind_template_arguments(std::size_t open) const {
        int depth = 0;
        for (std::size_t i = open; i != kNone; i = tokens_.next(i)) {
            if (tokens_[i].is("<")) ++depth;
            if (tokens_[i].is(">") && --depth == 0) return tokens_.next(i);
            if (tokens_[i].is(";") || tokens_[i].is("{")) break;
            if (tokens_[i].is("(")) i = closing(i);
        }
        return kNone;
    }

    // Does the file seem to declare this name somewhere without any of these words?
    bool is_declared_without(std::size_t name, std::initializer_list<std::string_view> words) const {
        for (std::size_t i = 0; i < tokens_.size(); ++i) {
            if (!tokens_[i].is(tokens_[name].text) || !may_be_declared(i)) continue;
            bool found = false;
            for (std::size_t p = declaration_begin(i); p < i; ++p)
                found = found || std::find(words.begin(), words.end(), tokens_[p].text) != words.end();
            if (!found) return true;
        }
        return false;
    }
    // Does a type seem to stand before this name?
    bool may_be_declared(std::size_t name) const {
        static constexpr std::array<std::string_view, 9> kNoTypes = {
            "return", "else", "do", "case", "goto", "throw", "new", "delete", "sizeof"};
        const std::size_t before = tokens_.previous(name);
        if (before == kNone) return false;
        const Token& token = tokens_[before];
        return (token.kind == TokenKind::identifier && !one_of(token.text, kNoTypes)) || token.is("*") ||
               token.is("&") || token.is(">") || ends_decoration(before);
    }

    // --- What is on one side only ----------------------------------------------------------------

    // Host code that reads or writes a __device__ variable by its name: on a GPU it has a copy of
    // its own. As the argument of a function it may be a symbol.
    void tell_of_device_variable(std::size_t name) {
        if (name < device_code_end_ || is_namespace(tokens_.enclosing_brace(name)) || may_be_declared(name) ||
            is_member(name) || tokens_.is(tokens_.previous(name), ":") || is_argument(name) ||
            is_declared_without(name, {"__device__", "__constant__"}) ||
            !told_of_.insert(tokens_[name].text).second)
            return;
        warn(name, "host code uses the __device__ variable '" + std::string(tokens_[name].text) +
                       "' by its name: on a GPU that is another variable. Use cudaMemcpyFromSymbol and "
                       "cudaMemcpyToSymbol");
    }
    // Of a function other than printf.
    bool is_argument(std::size_t i) const {
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

    // Device code that calls a function of the host: nvcc refuses that.
    void tell_of_host_function(std::size_t name) {
        if (!host_functions_) host_functions_ = find_host_functions();
        if (!host_functions_->contains(tokens_[name].text) || is_member(name) || may_be_declared(name) ||
            tokens_.is(tokens_.previous(name), ":") || !told_of_.insert(tokens_[name].text).second)
            return;
        const std::string function(tokens_[name].text);
        warn(name, "device code calls '" + function +
                       "', a function of the host: nvcc refuses that. Write __device__ or __host__ "
                       "__device__ before it");
    }
    // The functions of namespaces that the program's own files define, and that only the host can
    // call.
    std::set<std::string_view> find_host_functions() const {
        static constexpr std::array<std::string_view, 6> kOthers = {"__global__", "__device__", "constexpr",
                                                                    "consteval",  "operator",   "friend"};
        std::set<std::string_view> host, others;
        bool own_file = true;
        for (std::size_t i = 0; i < tokens_.size(); ++i) {
            const Token& token = tokens_[i];
            if (token.kind == TokenKind::directive && token.text.starts_with("# "))
                own_file = !token.text.ends_with(" 3") && token.text.find(" 3 ") == std::string_view::npos &&
                           token.text.find("cuda_on_cpu/include/") == std::string_view::npos;
            const std::size_t open = tokens_.next(i);
            if (token.kind != TokenKind::identifier || !may_be_declared(i)) continue;
            bool is_host = own_file && tokens_.is(open, "(") && tokens_.match(open) != kNone &&
                           tokens_.is(tokens_.next(tokens_.match(open)), "{") &&
                           is_namespace(tokens_.enclosing_brace(i));
            for (std::size_t p = declaration_begin(i); p < i && is_host; ++p)
                is_host = !one_of(tokens_[p].text, kOthers);
            (is_host ? host : others).insert(token.text);
        }
        for (const std::string_view name : others)
            host.erase(name);
        return host;
    }

    // The name before the template argument list that ends at `close`; kNone if it is not clear.
    std::size_t before_template_arguments(std::size_t close) const {
        int depth = 0;
        for (std::size_t p = close; p != kNone; p = tokens_.previous(p)) {
            if (tokens_[p].is(">")) ++depth;
            if (tokens_[p].is("<") && --depth == 0) return tokens_.previous(p);
            if (tokens_[p].is(";") || tokens_[p].is("{") || tokens_[p].is("}")) break;
        }
        return kNone;
    }

    // Where the file defines the function `name`, if the name has no other meaning: no kernel, no
    // variable and no member.
    std::size_t plain_function(std::string_view name) const {
        std::size_t definition = kNone;
        for (std::size_t i = 0; i < tokens_.size(); ++i) {
            if (tokens_[i].kind != TokenKind::identifier || !tokens_[i].is(name)) continue;
            const std::size_t before = tokens_.previous(i);
            const std::size_t behind = tokens_.next(i);
            const bool is_declared = before != kNone && (tokens_[before].kind == TokenKind::identifier ||
                                                         tokens_[before].is("*") || tokens_[before].is("&") ||
                                                         tokens_[before].is(">") || ends_decoration(before));
            if (!is_declared) continue;
            if (!tokens_.is(behind, "(")) {
                if (!tokens_.is(behind, "<")) return kNone;
                continue;
            }
            for (std::size_t p = declaration_begin(i); p < i; ++p) {
                if (tokens_[p].is("__global__")) return kNone;
            }
            if (!tokens_.is(tokens_.next(closing(behind)), "{")) continue;
            if (!is_namespace(tokens_.enclosing_brace(i))) return kNone;
            definition = i;
        }
        return definition;
    }

    // Is this brace one of a namespace, or of no function, class or the like at all?
    bool is_namespace(std::size_t brace) const {
        if (brace == kNone) return true;
        for (std::size_t p = tokens_.previous(brace); p != kNone; p = tokens_.previous(p)) {
            if (tokens_[p].is("namespace")) return true;
            if (tokens_[p].kind != TokenKind::identifier && !tokens_[p].is("::")) return false;
        }
        return false;
    }

    // --- __global__ ------------------------------------------------------------------------------

    // The first token of the declaration that token `i` is part of.
    std::size_t declaration_begin(std::size_t i) const {
        std::size_t begin = i;
        for (std::size_t p = tokens_.previous(i); p != kNone; p = tokens_.previous(p)) {
            if (tokens_[p].is(";") || tokens_[p].is("{") || tokens_[p].is("}")) break;
            begin = p;
        }
        return begin;
    }

    // Skips words that may stand around a function's name together with an argument list of their
    // own.
    bool is_decoration(std::size_t i) const {
        static constexpr std::array<std::string_view, 9> kDecorations = {
            "__launch_bounds__", "__cluster_dims__", "__maxnreg__", "__attribute__", "alignas",
            "noexcept",          "requires",         "decltype",    "__typeof__"};
        return one_of(tokens_[i].text, kDecorations);
    }
    bool names_type(std::size_t i) const { return tokens_[i].is("decltype") || tokens_[i].is("__typeof__"); }

    // The `)` of `__launch_bounds__(256)` and the like.
    bool ends_decoration(std::size_t i) const {
        if (!tokens_[i].is(")") || tokens_.match(i) == kNone) return false;
        const std::size_t word = tokens_.previous(tokens_.match(i));
        return word != kNone && is_decoration(word);
    }

    std::size_t skip_decorations(std::size_t i) const {
        while (i != kNone) {
            if (is_decoration(i)) {
                const std::size_t open = tokens_.next(i);
                i = tokens_.is(open, "(") ? tokens_.next(closing(open)) : open;
            } else if (tokens_[i].is("[")) {
                i = tokens_.next(closing(i));
            } else {
                break;
            }
        }
        return i;
    }

    std::string decoration_argument(Range range, std::string_view name) const {
        for (std::size_t i = range.begin; i < range.end; ++i) {
            if (!tokens_[i].is(name)) continue;
            const std::size_t open = tokens_.next(i);
            if (tokens_.is(open, "(")) return flat({open + 1, closing(open)});
        }
        return {};
    }

    void translate_kernel(std::size_t global) {
        erase(global);
        enter_device_code(global);
        std::size_t parameters = skip_decorations(tokens_.next(global));
        while (parameters != kNone && !tokens_[parameters].is("(")) {
            if (tokens_[parameters].is(";") || tokens_[parameters].is("{"))
                fail(global, "__global__ without a function");
            parameters = skip_decorations(tokens_.next(parameters));
        }
        if (parameters == kNone) fail(global, "__global__ without a function");
        if (const std::size_t name = tokens_.previous(parameters);
            tokens_[name].kind == TokenKind::identifier)
            kernels_.insert(tokens_[name].text);
        const std::size_t body = skip_decorations(tokens_.next(closing(parameters)));
        if (!tokens_.is(body, "{")) return;  // a declaration, or an explicit instantiation

        const Range declaration{declaration_begin(global), body};
        require_void({declaration.begin, parameters});
        // The bound is the first of up to three arguments.
        const std::string bounds = decoration_argument(declaration, "__launch_bounds__");
        const std::string cluster = decoration_argument(declaration, "__cluster_dims__");
        std::string constructor = "__PRETTY_FUNCTION__";
        if (!bounds.empty() || !cluster.empty()) {
            constructor += ", ::cuda_on_cpu::first_of(" + (bounds.empty() ? "1024"s : bounds) + ")";
        }
        if (!cluster.empty()) constructor += ", dim3(" + cluster + ")";
        const Range list{parameters + 1, closing(parameters)};
        tell_of_references(list);
        const std::string names = parameter_names(list);
        after_[body] = " static constinit ::cuda_on_cpu::Kernel cuda_on_cpu_kernel_(" + constructor +
                       "); if (cuda_on_cpu_kernel_.asked" + parameter_types(list) + "()) return; " + kMark +
                       "cuda_on_cpu_kernel_.prepare(\"" + (names.empty() ? "" : names.substr(2)) +
                       "\", [=]() mutable {" + grid_constants(list) + after_[body];
        text_[closing(body)] = "}" + names + ");}";
    }

    // Declares where the thread has its parameters that are __grid_constant__, in a file that asks.
    // Elsewhere their addresses are not taken, so that they stay in registers.
    std::string grid_constants(Range parameters) {
        std::string names;
        for (const Range& part : split(parameters)) {
            for (std::size_t i = part.begin; i < part.end; ++i)
                if (tokens_[i].is("__grid_constant__")) names += parameter_names(part);
        }
        if (names.empty() || !asks_for_kinds()) return "";
        return " const ::cuda_on_cpu::GridConstants cuda_on_cpu_grid_constants_(" + names.substr(2) + ");";
    }
    // Does the file call __isGridConstant() or a relative, besides defining them, or their
    // instruction?
    bool asks_for_kinds() {
        static constexpr std::array<std::string_view, 3> kNames = {"__isGridConstant", "__isGlobal",
                                                                   "__isLocal"};
        if (!asks_for_kinds_) {
            asks_for_kinds_ = false;
            for (std::size_t i = 0; i < tokens_.size() && !*asks_for_kinds_; ++i)
                asks_for_kinds_ = (one_of(tokens_[i].text, kNames) && text_before(i) != "int") ||
                                  (tokens_[i].kind == TokenKind::literal &&
                                   tokens_[i].text.find("isspacep.") != std::string_view::npos);
        }
        return *asks_for_kinds_;
    }

    void require_void(Range head) const {
        static constexpr std::array<std::string_view, 5> kResults = {"int", "float", "double", "bool",
                                                                     "unsigned"};
        bool returns_value = false;
        for (std::size_t i = head.begin; i < head.end; ++i) {
            if (tokens_[i].is("void")) return;
            returns_value = returns_value || one_of(tokens_[i].text, kResults);
        }
        if (returns_value) fail(head.end, "a kernel returns nothing: expected __global__ void");
    }

    // A launch copies the argument's address to the GPU, here its value.
    void tell_of_references(Range parameters) const {
        for (const Range& part : split(parameters)) {
            int angle = 0;
            for (std::size_t i = part.begin; i < part.end; ++i) {
                if (tokens_[i].is("<")) ++angle;
                if (tokens_[i].is(">")) --angle;
                if (tokens_[i].is("(")) i = closing(i);
                if (!tokens_[i].is("&") || angle > 0) continue;
                warn(i,
                     "a parameter of a kernel is a reference: on a GPU it refers to the host's memory. "
                     "Pass the value, or a pointer to device memory");
                break;
            }
        }
    }

    // --- Lists of declarations -------------------------------------------------------------------

    // Splits at the commas that are outside all brackets, template argument lists included.
    std::vector<Range> split(Range range) const {
        std::vector<Range> parts;
        std::size_t begin = range.begin;
        int angle = 0;
        for (std::size_t i = range.begin; i < range.end; ++i) {
            if (tokens_[i].kind != TokenKind::punctuation) continue;
            if (tokens_.match(i) != kNone && tokens_.match(i) > i) {
                i = tokens_.match(i);
            } else if (tokens_[i].is("<")) {
                ++angle;
            } else if (tokens_[i].is(">")) {
                angle = std::max(0, angle - 1);
            } else if (tokens_[i].is(",") && angle == 0) {
                parts.push_back({begin, i});
                begin = i + 1;
            }
        }
        parts.push_back({begin, range.end});
        return parts;
    }

    // The name that a declaration such as `const T* name`, `T name[N][M]` or `void (*name)(int)`
    // declares; kNone if none.
    std::size_t declared_name(Range range) const {
        static constexpr std::array<std::string_view, 16> kNotNames = {
            "const", "volatile", "int",    "unsigned", "signed", "long",     "short",        "char",
            "bool",  "float",    "double", "void",     "auto",   "typename", "__restrict__", "__restrict"};
        std::size_t name = kNone;
        int words = 0;
        int angle = 0;
        for (std::size_t i = range.begin; i < range.end; ++i) {
            const Token& token = tokens_[i];
            if (!token.significant()) continue;
            if (is_decoration(i)) {
                if (names_type(i)) ++words;
                if (const std::size_t open = tokens_.next(i); tokens_.is(open, "(")) i = closing(open);
            } else if (is_attribute_word(token.text)) {
                continue;
            } else if (token.is("<")) {
                ++angle;
            } else if (token.is(">")) {
                --angle;
                name = kNone;
            } else if (angle > 0) {
                continue;
            } else if (token.is("=") || token.is("[")) {
                break;
            } else if (token.is("{")) {
                i = closing(i);
                name = kNone;
            } else if (token.is("(")) {  // (*name)(...), (&name)[...]
                const std::size_t inner = tokens_.next(tokens_.next(i));
                return inner < range.end && tokens_[inner].kind == TokenKind::identifier ? inner : kNone;
            } else if (token.is("*") || token.is("&")) {
                name = kNone;
                words = std::max(words, 1);
            } else if (token.kind == TokenKind::identifier) {
                const bool part_of_type = tokens_.is(tokens_.previous(i), "::") ||
                                          one_of(token.text, kNotNames) ||
                                          (tokens_.is(tokens_.previous(i), ":"));
                name = part_of_type ? kNone : i;
                if (!token.is("const") && !token.is("volatile") && !token.is("typename")) ++words;
            }
        }
        return words > 1 || angle_before(range, name) ? name : kNone;
    }
    // `Array<float, 4> x`: the type's own name stands before the angle bracket and has been counted
    // only once.
    bool angle_before(Range range, std::size_t name) const {
        if (name == kNone) return false;
        return std::any_of(text_.begin() + static_cast<std::ptrdiff_t>(range.begin),
                           text_.begin() + static_cast<std::ptrdiff_t>(name),
                           [](const auto& t) { return t == ">"; });
    }

    std::string parameter_names(Range parameters) const {
        std::string names;
        for (const Range& part : split(parameters)) {
            const std::size_t name = declared_name(part);
            if (name == kNone) continue;
            names += ", " + std::string(tokens_[name].text);
            for (std::size_t i = part.begin; i < name; ++i) {
                if (tokens_.is_run(i, ".", 3)) {
                    names += "...";
                    break;
                }
            }
        }
        return names;
    }

    // "_with<decltype(x), decltype(n)>", or nothing if a parameter has no name.
    std::string parameter_types(Range parameters) const {
        std::string types;
        for (const Range& part : split(parameters)) {
            const std::size_t first = next_in(part);
            if (first == kNone || (tokens_[first].is("void") && next_in({first + 1, part.end}) == kNone))
                continue;
            const std::string name = parameter_names(part);
            if (name.empty()) return "";
            const bool pack = name.ends_with("...");
            types += std::string(types.empty() ? "" : ", ") + "decltype(" +
                     name.substr(2, name.size() - (pack ? 5 : 2)) + ")" + (pack ? "..." : "");
        }
        return "_with<" + types + ">";
    }

    // --- __shared__ ------------------------------------------------------------------------------

    bool opens_function(std::size_t brace) const {
        // A brace opens a namespace or a class if such a word stands in what comes before it, else
        // something in a function.
        static constexpr std::array<std::string_view, 4> kScopes = {"namespace", "class", "struct", "union"};
        for (std::size_t p = tokens_.previous(brace); p != kNone; p = tokens_.previous(p)) {
            if (tokens_[p].is(";") || tokens_[p].is("{") || tokens_[p].is("}")) break;
            if (tokens_[p].is(")")) return true;
            if (one_of(tokens_[p].text, kScopes)) return false;
            if (tokens_[p].kind == TokenKind::literal && tokens_.is(tokens_.previous(p), "extern"))
                return false;
        }
        return true;
    }
    bool in_function(std::size_t i) const {
        for (std::size_t brace = tokens_.enclosing_brace(i); brace != kNone;
             brace = tokens_.enclosing_brace(brace)) {
            if (opens_function(brace)) return true;
        }
        return false;
    }

    void translate_shared(std::size_t shared) {
        std::size_t end = shared;
        while (end < tokens_.size() && !tokens_[end].is(";")) {
            const bool opens = tokens_[end].kind == TokenKind::punctuation && tokens_.match(end) != kNone;
            end = opens && tokens_.match(end) > end ? tokens_.match(end) + 1 : end + 1;
        }
        if (end == tokens_.size()) fail(shared, "__shared__ without a declaration");

        bool external = false;
        for (std::size_t i = declaration_begin(shared); i < end; ++i) {
            external = external || tokens_[i].is("extern");
            if (tokens_[i].is("extern") || tokens_[i].is("static")) erase(i);
        }
        if (external) {
            translate_dynamic_shared(shared, end);
            return;
        }
        const std::size_t begin = declaration_begin(shared);
        refuse_initialisers({begin, end});
        const bool gaps = gaps_ && in_function(shared);
        text_[shared] = gaps ? "" : "static thread_local";
        align({begin, end});
        move_alignment_to_front({begin, end});
        if (!in_function(shared)) return;
        const std::string around = "in_gaps_" + std::to_string(shared) + "_";
        if (gaps) {
            text_[begin].insert(0, "static thread_local struct { char before_[" + kGap + "]; ");
            after_[end] += " char behind_[" + kGap + "]; } " + around + ";";
        }
        const auto parts = split({begin, end});
        for (const Range& part : parts) {
            const bool first = part.begin == begin;
            std::size_t name = declared_name(part);
            if (!first && name == kNone) name = first_identifier(part);  // `, other[4]` has no type before it
            if (name == kNone) fail(shared, "__shared__: no variable name found in this declaration");
            const std::string variable(tokens_[name].text);
            if (gaps)
                after_[end] += " [[maybe_unused]] auto& " + variable + " = " + around + "." + variable + ";";
            after_[end] += " static constinit thread_local ::cuda_on_cpu::SharedVariable " + variable +
                           "_shared_; " + variable + "_shared_.enter(" + variable + ", \"" + variable + "\"" +
                           (gaps ? ", " + kGap + (parts.size() == 1 ? ", true" : "") : "") + ");";
        }
    }

    // Programs access shared memory as vectors, with ldmatrix and by WMMA, which wants 32 bytes: on
    // a GPU, where shared memory begins at such an address, variables are aligned unless an odd
    // size lies before them. The attribute lowers no other alignment.
    void align(Range declaration) {
        for (const Range& part : split(declaration)) {
            const std::size_t last = tokens_.previous(part.end);
            if (last == kNone) continue;  // an empty part at the file's beginning: refused below
            if (tokens_[last].is("]") || tokens_[last].kind == TokenKind::identifier)
                after_[last] += " __attribute__((aligned(32)))";
        }
    }

    void refuse_initialisers(Range declaration) const {
        for (const Range& part : split(declaration)) {
            std::size_t name = declared_name(part);
            if (name == kNone && part.begin != declaration.begin) name = first_identifier(part);
            for (std::size_t i = name; i < part.end; i = tokens_.next(i)) {
                if (tokens_[i].is("[")) i = closing(i);
                if (tokens_[i].is("=") || tokens_[i].is("{"))
                    fail(i, "the __shared__ variable '" + std::string(tokens_[name].text) +
                                "' has an initialiser, which CUDA does not allow: let a thread assign the "
                                "value, then __syncthreads()");
            }
        }
    }

    // `__shared__ alignas(16) float tile[4]`: nvcc takes alignas in the middle of a declaration,
    // g++ at its front only.
    void move_alignment_to_front(Range declaration) {
        for (std::size_t i = tokens_.next(declaration.begin); i < declaration.end; i = tokens_.next(i)) {
            if (!tokens_[i].is("alignas") || !tokens_.is(tokens_.next(i), "(")) continue;
            const std::size_t close = closing(tokens_.next(i));
            text_[declaration.begin].insert(0, flat({i, close + 1}) + " ");
            erase({i, close + 1});
        }
    }

    std::size_t first_identifier(Range range) const {
        for (std::size_t i = range.begin; i < range.end; ++i) {
            if (tokens_[i].kind == TokenKind::identifier) return i;
        }
        return kNone;
    }

    // `extern __shared__ float tile[];` becomes a reference to an array of that type in the block's
    // dynamic shared memory.
    void translate_dynamic_shared(std::size_t shared, std::size_t end) {
        const Range declaration{declaration_begin(shared), end};
        const std::size_t name = declared_name(declaration);
        const std::size_t bounds = name == kNone ? kNone : tokens_.next(name);
        if (!tokens_.is(bounds, "["))
            fail(shared, "extern __shared__: expected an array, `extern __shared__ T name[];`");
        std::string type;
        for (std::size_t i = declaration.begin; i < name; ++i) {
            if (is_decoration(i)) {
                const std::size_t close = closing(tokens_.next(i));
                if (names_type(i)) type += flat({i, close + 1});
                i = close;
            } else if (!is_attribute_word(tokens_[i].text)) {
                type += tokens_[i].significant() ? flat({i, i + 1}) : " "s;
            }
        }
        const std::string variable(tokens_[name].text);
        const std::string dimensions = flat({bounds, end});
        const std::string text = "[[maybe_unused]] " + type + "(&" + variable + ")" + dimensions +
                                 " = *reinterpret_cast<" + type + "(*)" + dimensions +
                                 ">(::cuda_on_cpu::dynamic_shared())";
        erase(declaration);
        if (in_function(shared)) {
            text_[shared] = text;
        } else {
            global_shared_.push_back({variable, " " + text + ";"});
        }
    }

    void declare_global_shared() {
        for (const GlobalShared& shared : global_shared_) {
            for (std::size_t i = 0; i < tokens_.size(); ++i) {
                if (!tokens_[i].is("{") || tokens_.match(i) == kNone || !opens_function(i)) continue;
                const std::size_t outer = tokens_.enclosing_brace(i);
                if (outer != kNone && in_function(i)) continue;
                if (declares_itself(i, shared.name)) continue;
                for (std::size_t k = i; k < tokens_.match(i); ++k) {
                    if (tokens_[k].is(shared.name)) {
                        after_[i] += shared.declaration;
                        break;
                    }
                }
            }
        }
    }

    // Has the function whose body opens at `body` a parameter, or a variable of its outermost
    // block, of that name?
    bool declares_itself(std::size_t body, std::string_view name) const {
        static constexpr std::array<std::string_view, 5> kNotTypes = {"return", "case", "else", "goto",
                                                                      "throw"};
        for (std::size_t i = declaration_begin(tokens_.previous(body)); i < tokens_.match(body); ++i) {
            if (!tokens_[i].is(name)) continue;
            if (i < body) return true;
            const std::size_t before = tokens_.previous(i);
            const bool follows_type = before != kNone && tokens_[before].kind == TokenKind::identifier &&
                                      !one_of(tokens_[before].text, kNotTypes);
            if (tokens_.enclosing_brace(i) == body && follows_type) return true;
        }
        return false;
    }

    // --- Loops that wait -------------------------------------------------------------------------

    // `while (*flag == 0);` polls memory: on a GPU others run meanwhile, here they must be let run.
    bool translate_empty_loop(std::size_t loop) {
        const std::size_t open = tokens_.next(loop);
        if (!tokens_.is(open, "(") || ends_do(loop)) return false;
        const std::size_t body = tokens_.next(closing(open));
        if (tokens_.is(body, ";")) {
            text_[body] = "{ ::cuda_on_cpu::empty_loop(); }";
            return true;
        }
        if (tokens_.is(body, "{") && tokens_.next(body) == tokens_.match(body)) {
            after_[body] += " ::cuda_on_cpu::empty_loop(); ";
            return true;
        }
        return false;
    }

    // A loop with something in its body polls memory too, if it reads volatile memory: directly, by
    // the name of something declared volatile, or through a function that does; or if each round
    // does the same. In a loop that does not count, loads with a hint for the cache poll, too, if
    // they load from one address again and again.
    void translate_waiting_loop(std::size_t loop) {
        const std::size_t open = tokens_.next(loop);
        if (!tokens_.is(open, "(")) return;
        const std::size_t close = closing(open);
        const Range whole = whole_loop(loop, close);
        Range condition{open + 1, close};
        if (tokens_[loop].is("for")) {
            condition.begin = end_of_statement(open + 1) + 1;
            condition.end = condition.begin >= close ? close : end_of_statement(condition.begin);
            if (condition.end >= close) return;  // for (element : range)
        }
        const bool counts = tokens_[loop].is("for") && next_in({condition.end + 1, close}) != kNone;
        if (!counts) replace_loads(whole);
        if (!mentions_volatile(whole) && (counts || !repeats_itself(whole))) return;
        const std::size_t first = next_in(condition);
        if (first == kNone || tokens_[first].is("true") || tokens_[first].is("1")) {
            // The compiler must still see that the loop is endless, so the condition stays as it
            // is.
            const std::size_t body =
                ends_do(loop) ? tokens_.match(tokens_.previous(loop)) : tokens_.next(close);
            if (tokens_.is(body, "{")) {
                after_[body] += " ::cuda_on_cpu::poll();";
            } else if (tokens_[loop].is("for") && !counts) {
                text_[close] = "::cuda_on_cpu::poll()" + text_[close];
            }
            return;
        }
        const std::size_t second = next_in({first + 1, condition.end});
        const bool declares = second != kNone && tokens_[first].kind == TokenKind::identifier &&
                              tokens_[second].kind == TokenKind::identifier;  // while (int value = ...)
        if (declares) return;
        text_[first] = "::cuda_on_cpu::poll(), (" + text_[first];
        text_[condition.end] = ")" + text_[condition.end];
    }

    // `again: ... goto again;` is a loop, too.
    void translate_goto(std::size_t jump) {
        const std::size_t target = tokens_.next(jump);
        const std::size_t end = tokens_.next(target);
        if (!tokens_.is(end, ";")) return;
        const std::size_t label = label_before(jump, tokens_[target].text);
        if (label == kNone) return;
        const Range whole{tokens_.next(tokens_.next(label)), jump};
        replace_loads(whole);
        if (!mentions_volatile(whole) && !repeats_itself(whole)) return;
        text_[jump] = "{ ::cuda_on_cpu::poll(); " + text_[jump];
        text_[end] += " }";
    }

    // The label `name:` before `i` in the same function.
    std::size_t label_before(std::size_t i, std::string_view name) const {
        const std::size_t function = outermost_function(i);
        if (function == kNone) return kNone;
        for (std::size_t p = tokens_.previous(i); p != kNone && p > function; p = tokens_.previous(p)) {
            if (tokens_[p].is(name) && tokens_.is(tokens_.next(p), ":") &&
                !tokens_.is(tokens_.previous(p), "?"))
                return p;
        }
        return kNone;
    }

    // Loads with a hint for the cache; __ldcv lets others run by itself.
    static bool is_load(std::string_view word) {
        static constexpr std::array<std::string_view, 5> kLoads = {"__ldca", "__ldcg", "__ldcs", "__ldg",
                                                                   "__ldlu"};
        return one_of(word, kLoads);
    }

    // In this range, and in the functions that it calls and that the file has defined before.
    void replace_loads(Range range) {
        for (std::size_t i = range.begin; i < range.end; ++i) {
            if (tokens_[i].kind != TokenKind::identifier || !tokens_.is(tokens_.next(i), "(")) continue;
            if (is_load(tokens_[i].text)) {
                text_[i] = "::cuda_on_cpu::load_in_loop";
                continue;
            }
            for (const LoadingFunction& function : loading_functions_) {
                if (!tokens_[i].is(function.name) || (function.brace < i && closing(function.brace) > i))
                    continue;
                for (std::size_t k = function.brace; k < closing(function.brace); ++k)
                    if (is_load(tokens_[k].text)) text_[k] = "::cuda_on_cpu::load_in_loop";
            }
        }
    }

    // Does each round of a loop do the same as the last, unless memory changes? No variable is
    // counted, nothing is stored, no other function is called, and what is assigned does not depend
    // on what was assigned before. So it waits, or ends at once.
    bool repeats_itself(Range range) const {
        static constexpr std::array<std::string_view, 15> kMayBeCalled = {"if",
                                                                          "while",
                                                                          "for",
                                                                          "do",
                                                                          "switch",
                                                                          "sizeof",
                                                                          "__nanosleep",
                                                                          "__syncwarp",
                                                                          "__ldcv",
                                                                          "__threadfence",
                                                                          "return",
                                                                          "static_cast",
                                                                          "reinterpret_cast",
                                                                          "const_cast",
                                                                          "__threadfence_block"};
        static constexpr std::array<std::string_view, 6> kJumps = {"break", "continue", "goto",
                                                                   "else",  "true",     "false"};
        std::vector<std::string_view> assigned;
        std::vector<Range> values;
        bool looks = false;  // at anything
        for (std::size_t i = range.begin; i < range.end; ++i) {
            const Token& token = tokens_[i];
            if (token.kind == TokenKind::identifier && tokens_.is(tokens_.next(i), "(") &&
                !one_of(token.text, kMayBeCalled) && !is_load(token.text))
                return false;
            if (token.is("(") &&
                (tokens_.is(tokens_.previous(i), "]") || tokens_.is(tokens_.previous(i), ")")))
                return false;  // a lambda, or a call by way of a pointer
            looks = looks || (token.kind == TokenKind::identifier && !one_of(token.text, kMayBeCalled) &&
                              !one_of(token.text, kJumps));
            if (tokens_.is_run(i, "+", 2) || tokens_.is_run(i, "-", 2)) return false;
            if (!is_assignment(i)) continue;
            const std::size_t name = tokens_.previous(i);
            if (name == kNone || tokens_[name].kind != TokenKind::identifier || is_compound(i)) return false;
            const std::size_t before = tokens_.previous(name);
            if (tokens_.is(before, ".") || tokens_.is(before, ">") || tokens_.is(before, "*")) return false;
            assigned.push_back(tokens_[name].text);
            values.push_back({i + 1, end_of_statement(i + 1)});
        }
        for (const Range& value : values) {
            for (std::size_t i = value.begin; i < value.end; ++i) {
                if (std::find(assigned.begin(), assigned.end(), tokens_[i].text) != assigned.end())
                    return false;
            }
        }
        return looks;
    }

    // `=`, also as the end of `+=`, but of no comparison.
    bool is_assignment(std::size_t i) const {
        if (!tokens_[i].is("=") || tokens_.is(i + 1, "=") || i == 0) return false;
        if (tokens_[i - 1].is("=") || tokens_[i - 1].is("!")) return false;
        const bool angle = tokens_[i - 1].is("<") || tokens_[i - 1].is(">");
        return !angle || (i > 1 && tokens_[i - 2].is(tokens_[i - 1].text));
    }
    bool is_compound(std::size_t i) const {
        static constexpr std::array<std::string_view, 10> kOperators = {"+", "-", "*", "/", "%",
                                                                        "&", "|", "^", "<", ">"};
        return i > 0 && one_of(tokens_[i - 1].text, kOperators);
    }

    // From its first word to the end of its body.
    Range whole_loop(std::size_t loop, std::size_t close) const {
        if (ends_do(loop)) {
            const std::size_t body = tokens_.previous(loop);
            return {tokens_.is(body, "}") ? tokens_.match(body) : declaration_begin(body), close};
        }
        const std::size_t body = tokens_.next(close);
        if (tokens_.is(body, "{")) return {loop, closing(body)};
        return {loop, body == kNone ? close : end_of_statement(body)};
    }

    // The first `;` from `i` on that is outside brackets that open behind `i`.
    std::size_t end_of_statement(std::size_t i) const {
        while (i < tokens_.size() && !tokens_[i].is(";")) {
            const bool opens = tokens_.match(i) != kNone && tokens_.match(i) > i;
            i = opens ? tokens_.match(i) + 1 : i + 1;
        }
        return i;
    }

    std::size_t next_in(Range range) const {
        for (std::size_t i = range.begin; i < range.end; ++i) {
            if (tokens_[i].significant()) return i;
        }
        return kNone;
    }

    bool mentions_volatile(Range range) const {
        const std::size_t function = outermost_function(range.begin);
        for (std::size_t i = range.begin; i < range.end; ++i) {
            if (tokens_[i].kind != TokenKind::identifier) continue;
            if (tokens_[i].is("volatile") && !of_asm(i)) return true;
            for (const VolatileName& name : volatile_names_) {
                if (tokens_[i].is(name.text) && (name.function == kNone || name.function == function))
                    return true;
            }
        }
        return false;
    }

    // asm volatile: loads from memory that may be polled give way themselves.
    bool of_asm(std::size_t i) const {
        const std::size_t before = tokens_.previous(i);
        return before != kNone && is_asm(tokens_[before]);
    }

    std::size_t outermost_function(std::size_t i) const {
        std::size_t function = kNone;
        for (std::size_t brace = tokens_.enclosing_brace(i); brace != kNone;
             brace = tokens_.enclosing_brace(brace)) {
            if (opens_function(brace)) function = brace;
        }
        return function;
    }

    // System headers are left out: nothing there waits for a CUDA thread.
    void find_volatile_names() {
        bool system = false;
        for (std::size_t i = 0; i < tokens_.size(); ++i) {
            const std::string_view text = tokens_[i].text;
            if (tokens_[i].kind == TokenKind::directive && text.starts_with("# ")) {
                const std::string_view flags = text.substr(text.rfind('"') + 1);  // of `# line "file" flags`
                system = flags.find('3') != std::string_view::npos;
            } else if (!system && tokens_[i].is("volatile") && !of_asm(i)) {
                note_volatile(i);
            } else if (!system && is_load(tokens_[i].text)) {
                note_loading_function(i);
            }
        }
    }

    void note_loading_function(std::size_t i) {
        const std::size_t function = outermost_function(i);
        if (function == kNone || (!loading_functions_.empty() && loading_functions_.back().brace == function))
            return;
        if (const std::size_t name = name_of_function(function); name != kNone)
            loading_functions_.push_back({tokens_[name].text, function});
    }

    void note_volatile(std::size_t i) {
        static constexpr std::array<std::string_view, 6> kEnds = {";", "=", "[", ",", ")", "{"};
        std::size_t name = i;
        std::size_t end = tokens_.next(i);
        while (end != kNone && !one_of(tokens_[end].text, kEnds) && !tokens_[end].is("(") &&
               !tokens_[end].is(">")) {
            name = end;
            end = tokens_.next(end);
        }
        const bool named = end != kNone && one_of(tokens_[end].text, kEnds) &&
                           tokens_[name].kind == TokenKind::identifier &&
                           !is_builtin_type(tokens_[name].text);
        std::size_t function = outermost_function(i);
        const std::size_t parentheses = enclosing_parenthesis(i);
        if (function == kNone && parentheses != kNone) {  // a parameter
            function = skip_to_body(closing(parentheses));
            if (function == kNone) return;
        }
        if (named) volatile_names_.push_back({tokens_[name].text, function});
        if (function != kNone) {
            if (const std::size_t own = name_of_function(function); own != kNone) {
                volatile_names_.push_back({tokens_[own].text, kNone});
            }
        }
    }

    static bool is_builtin_type(std::string_view word) {
        static constexpr std::array<std::string_view, 10> kTypes = {
            "int", "unsigned", "char", "long", "short", "float", "double", "bool", "void", "const"};
        return one_of(word, kTypes);
    }

    // The `(` of the parameter list that token `i`, outside functions, stands in.
    std::size_t enclosing_parenthesis(std::size_t i) const {
        for (std::size_t p = declaration_begin(i); p < i; ++p) {
            if (tokens_[p].is("(") && tokens_.match(p) != kNone && tokens_.match(p) > i) return p;
        }
        return kNone;
    }

    // From the end of a parameter list to the brace of the body; kNone for a mere declaration.
    std::size_t skip_to_body(std::size_t parameters_end) const {
        for (std::size_t p = tokens_.next(parameters_end); p != kNone; p = tokens_.next(p)) {
            if (tokens_[p].is("{")) return p;
            if (tokens_[p].is(";") || tokens_[p].is("}")) return kNone;
        }
        return kNone;
    }

    std::size_t name_of_function(std::size_t brace) const {
        for (std::size_t p = declaration_begin(brace == 0 ? 0 : tokens_.previous(brace)); p < brace; ++p) {
            if (tokens_[p].kind == TokenKind::identifier && !is_decoration(p) &&
                tokens_.is(tokens_.next(p), "("))
                return p;
        }
        return kNone;
    }

    // Does the `while` at `loop` end a do statement? Then the body of a `do` in the same block ends
    // right before it.
    bool ends_do(std::size_t loop) const {
        const std::size_t block = tokens_.enclosing_brace(loop);
        for (std::size_t p = tokens_.previous(loop); p != kNone && p != block; p = tokens_.previous(p)) {
            if (tokens_[p].is("}") && tokens_.match(p) != kNone) {
                p = tokens_.match(p);
            } else if (tokens_[p].is("do") && behind_statement(tokens_.next(p)) == loop) {
                return true;
            }
        }
        return false;
    }

    // The first token behind the statement that starts at `i`; kNone if there is none.
    std::size_t behind_statement(std::size_t i) const {
        static constexpr std::array<std::string_view, 4> kWithCondition = {"if", "for", "while", "switch"};
        if (i == kNone) return kNone;
        if (tokens_[i].is("{")) return tokens_.next(closing(i));
        if (tokens_[i].is("do")) {
            const std::size_t loop = behind_statement(tokens_.next(i));
            return loop == kNone ? kNone : behind_simple_statement(loop);
        }
        if (!one_of(tokens_[i].text, kWithCondition)) return behind_simple_statement(i);
        std::size_t condition = tokens_.next(i);
        if (tokens_.is(condition, "constexpr")) condition = tokens_.next(condition);
        if (!tokens_.is(condition, "(")) return kNone;
        const std::size_t behind = behind_statement(tokens_.next(closing(condition)));
        return tokens_[i].is("if") && tokens_.is(behind, "else") ? behind_statement(tokens_.next(behind))
                                                                 : behind;
    }
    std::size_t behind_simple_statement(std::size_t i) const {
        const std::size_t end = end_of_statement(i);
        return end < tokens_.size() ? tokens_.next(end) : kNone;
    }

    // --- Warp-synchronous code -------------------------------------------------------------------

    // `s[t] += s[t + 16]; s[t] += s[t + 8];` on volatile memory: each lane reads what another has
    // stored in the statement before. Before Volta the lanes of a warp ran each statement together;
    // now it takes a __syncwarp() in between.
    void find_warp_synchronous_code() {
        for (const VolatileName& name : volatile_names_) {
            if (name.function != kNone && name.text.data() != nullptr) look_at_stores(name);
        }
    }

    // `name[index] = value;`, also with `+=` and the like.
    struct Store {
        std::size_t name;
        std::size_t assignment;
        std::size_t end;
        bool exchanges;  // the value is computed from an element of the same array with another index
    };

    void look_at_stores(const VolatileName& name) {
        std::vector<Store> stores;
        std::size_t found = kNone;
        bool stored = false;  // since the last synchronisation
        const std::size_t function_end = closing(name.function);
        for (std::size_t i = name.function; i < function_end; ++i) {
            if (tokens_[i].kind != TokenKind::identifier) continue;
            if (tokens_[i].text.find("sync") != std::string_view::npos) stored = false;
            if (!tokens_[i].is(name.text)) continue;
            const Store store = store_at(i);
            if (store.end == kNone) continue;
            if (store.exchanges && (stored || repeats_without_sync(store, name.function)) && found == kNone)
                found = i;
            stored = true;
            stores.push_back(store);
        }
        if (found == kNone) return;
        warn(found, "lanes of a warp exchange values through the volatile '" + std::string(name.text) +
                        "' without __syncwarp() in between: undefined since Volta, and wrong here. Put "
                        "__syncwarp() behind each step, or run the program with CUDA_ON_CPU_LOCKSTEP=1");
        for (const Store& store : stores)
            store_in_step(store);
    }

    // The store whose statement begins at `i`; its end is kNone if it is none.
    Store store_at(std::size_t i) const {
        Store store{i, kNone, kNone, false};
        const std::size_t open = tokens_.next(i);
        const std::size_t before = tokens_.previous(i);
        const bool begins = tokens_.is(before, ";") || tokens_.is(before, "{") || tokens_.is(before, "}") ||
                            tokens_.is(before, ")") || tokens_.is(before, "else");
        if (!begins || !tokens_.is(open, "[")) return store;
        std::size_t assignment = tokens_.next(closing(open));
        while (assignment != kNone && !tokens_[assignment].is("=") &&
               tokens_[assignment].kind == TokenKind::punctuation && !tokens_[assignment].is("[") &&
               !tokens_[assignment].is(";"))
            assignment = assignment + 1;
        if (assignment == kNone || !is_assignment(assignment)) return store;
        for (std::size_t p = open; p < closing(open); ++p) {
            if (tokens_[p].is("=") || tokens_.is_run(p, "+", 2) || tokens_.is_run(p, "-", 2)) return store;
        }
        store.assignment = assignment;
        store.end = end_of_statement(assignment);
        const std::string index = flat({open, closing(open)});
        for (std::size_t p = assignment; p < store.end; ++p) {
            const std::size_t other = tokens_.next(p);
            if (tokens_[p].is(tokens_[i].text) && tokens_.is(other, "[") &&
                flat({other, closing(other)}) != index)
                store.exchanges = true;
        }
        return store;
    }

    // Is it in a loop in which nothing synchronises?
    bool repeats_without_sync(const Store& store, std::size_t function) const {
        for (std::size_t i = store.name; i-- > function;) {
            if (!tokens_[i].is("for") && !tokens_[i].is("while")) continue;
            const std::size_t open = tokens_.next(i);
            if (!tokens_.is(open, "(")) continue;
            const Range loop = whole_loop(i, closing(open));
            if (loop.begin > store.name || loop.end < store.end) continue;
            bool synchronises = false;
            for (std::size_t p = loop.begin; p < loop.end; ++p)
                synchronises = synchronises || (tokens_[p].kind == TokenKind::identifier &&
                                                tokens_[p].text.find("sync") != std::string_view::npos);
            if (!synchronises) return true;
        }
        return false;
    }

    void store_in_step(const Store& store) {
        const std::size_t close = closing(tokens_.next(store.name));
        const std::string place = flat({store.name, close + 1});
        const std::string operation = flat({close + 1, store.assignment});
        erase({close + 1, store.assignment});
        text_[store.assignment] = "= ::cuda_on_cpu::value_in_step(";
        if (!operation.empty()) text_[store.assignment] += place + " " + operation + " ";
        text_[store.assignment] += "(";
        const std::string number = std::to_string(2 * store.assignment);
        text_[store.end] = "), " + number + "), ::cuda_on_cpu::step(" + number + " + 1)" + text_[store.end];
    }

    // --- Kernels as pointers without a type ------------------------------------------------------

    static bool takes_kernel(std::string_view word) {
        static constexpr std::array<std::string_view, 9> kFunctions = {
            "cudaFuncSetAttribute",
            "cudaFuncGetAttributes",
            "cudaFuncSetCacheConfig",
            "cudaLaunchKernel",
            "cudaLaunchCooperativeKernel",
            "cudaOccupancyMaxActiveBlocksPerMultiprocessor",
            "cudaOccupancyMaxActiveClusters",
            "cudaOccupancyMaxPotentialBlockSize",
            "cudaOccupancyMaxPotentialClusterSize"};
        return one_of(word, kFunctions);
    }

    // `(const void*)kernel` and `reinterpret_cast<void*>(kernel)` would hide which kernel it is.
    void remove_casts_of_kernels(std::size_t function) {
        const std::size_t open = tokens_.next(function);
        if (!tokens_.is(open, "(")) return;
        const std::size_t end = closing(open);
        for (std::size_t i = open + 1; i < end; ++i) {
            if (!tokens_[i].is("(") && !tokens_[i].is("<")) continue;
            const std::string inner = flat({i + 1, i + 8 < end ? i + 8 : end});
            for (const std::string_view type : {"void*)", "void *)", "const void*)", "const void *)"}) {
                if (tokens_[i].is("(") && inner.starts_with(type)) erase({i, closing(i) + 1});
            }
            for (const std::string_view type : {"void*>", "void *>", "const void*>", "const void *>"}) {
                if (tokens_[i].is("<") && inner.starts_with(type)) {
                    std::size_t close = i;
                    while (!tokens_[close].is(">"))
                        ++close;
                    erase({tokens_.previous(i), close + 1});
                }
            }
        }
    }

    Tokens tokens_;
    Dialect dialect_;
    std::vector<std::string> text_;   // of each token, changed or not
    std::vector<std::string> after_;  // what is inserted behind it
    bool gaps_;
    bool own_device_variables_;
    std::vector<Warning>* warnings_;
    std::size_t device_code_end_ = 0;     // tokens up to here are in a function that runs on the device
    std::set<std::string_view> told_of_;  // names
    std::set<std::string_view> kernels_;
    std::optional<bool> asks_for_kinds_;  // looked for when a kernel has a __grid_constant__
    std::set<std::string_view> device_variables_;
    std::optional<std::set<std::string_view>> host_functions_;
    std::vector<GlobalShared> global_shared_;
    std::vector<VolatileName> volatile_names_;
    std::vector<LoadingFunction> loading_functions_;
};

}  // namespace

std::string translate(std::string_view preprocessed, Dialect dialect, SharedArrays shared_arrays,
                      DeviceVariables device_variables, std::vector<Warning>* warnings) {
    return Translation(preprocessed, dialect, shared_arrays, device_variables, warnings).run();
}

}  // namespace translator
