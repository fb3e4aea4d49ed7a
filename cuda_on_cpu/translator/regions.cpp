#include <algorithm>
#include <tuple>

#include "parts.hpp"

namespace translator {

namespace {

// Words of loops, which only a kernel in regions may have.
bool is_loop_word(std::string_view word) {
    static constexpr std::array<std::string_view, 4> kWords = {"for", "while", "break", "continue"};
    return one_of(word, kWords);
}

// Of 1024 elements each, for each OS thread.
constexpr std::ptrdiff_t kMostRows = 16;

bool is_jump(const Token& token) {
    return token.is("break") || token.is("continue");
}

}  // namespace

void Regions::translate_kernel(const KernelBody& kernel) {
    body_ = {kernel.brace + 1, closing(kernel.brace)};
    if (!has_barrier(body_) || !begin_kernel(kernel)) return;
    parameters_ = names_;
    uniform_.clear();
    if (!is_known_body()) return;
    for (const std::string_view name : parameters_)
        if (is_changed(name, body_)) return;
    if (!plan_body()) {
        // A variable that all threads change alike takes statements out of the regions.
        find_uniform_variables();
        if (!plan_body()) return;
    }

    find_later_uses();
    const auto rows = std::ranges::count_if(
        variables_, [](const Variable& each) { return each.kind == Kind::kept && each.lasts; });
    if (rows > kMostRows) return;
    inline_functions();
    qualify_places();
    keep_declared_variables();
    insert_regions();
    for (const std::size_t barrier : barriers_)
        text_[barrier].insert(0, "if constexpr (CudaOnCpuThreads::kAlone) ");
    replace_in_call(kernel, ".prepare(", prepare("prepare_regions"));
    replace_in_call(kernel, "[=]() mutable {",
                    "[=]<class CudaOnCpuThreads>([[maybe_unused]] const CudaOnCpuThreads& "
                    "cuda_on_cpu_threads_) __attribute__((always_inline)) {");
}

// ---- What is known ------------------------------------------------------------------------------

bool Regions::is_known_body() {
    for (std::size_t i = body_.begin; i < body_.end; ++i) {
        const Token& token = tokens_[i];
        if (token.kind == TokenKind::identifier && begins_statement(i)) {
            const std::size_t behind = behind_shared_declaration(i);
            if (behind == kNone) return false;
            if (behind != i) {
                i = behind - 1;
                continue;
            }
        }
        if (hides_change(i)) return false;
        if (token.kind == TokenKind::directive) {
            if (!is_known_directive(i)) return false;
        } else if (is_loop_word(token.text)) {
            const std::size_t first = tokens_.next(tokens_.next(i));
            if (token.is("for") && !declare_local(first)) return false;
            if (text_[i] != token.text || !after_[i].empty()) return false;
        } else if (shared_.contains(token.text) && !is_member(i)) {
            if (text_[i] != token.text || after_[i].size() > 1) return false;
        } else if (!is_barrier(i) && !is_known(i)) {
            return false;
        }
    }
    return !uses_vectors_ || !has_vector_operators();
}

bool Regions::is_known_directive(std::size_t i) const {
    const std::string_view text = tokens_[i].text;
    const bool marks_line = text.starts_with("# ") && text.size() > 2 && text[2] >= '0' && text[2] <= '9';
    return marks_line ||
           (text.find("pragma") != std::string_view::npos && text.find("unroll") != std::string_view::npos);
}

// `__shared__`, if the statement at `i` is a declaration of such variables.
std::size_t Regions::shared_word(std::size_t i) const {
    while (tokens_.is(i, "extern") || tokens_.is(i, "static") || tokens_.is(i, "alignas"))
        i = tokens_.next(tokens_.is(i, "alignas") ? closing(tokens_.next(i)) : i);
    return tokens_.is(i, "__shared__") ? i : kNone;
}

// `__shared__ float tile[16][16];` and `extern __shared__ int values[];` in the kernel. `i` itself:
// no such declaration; kNone: one of an unknown kind.
std::size_t Regions::behind_shared_declaration(std::size_t i) {
    const std::size_t end = end_of_statement(i);
    const std::size_t shared = shared_word(i);
    if (shared == kNone) return i;
    std::size_t type = tokens_.next(shared);
    if (tokens_.is(type, "alignas")) type = tokens_.next(closing(tokens_.next(type)));
    const std::size_t first = behind_type(type);
    if (first == kNone || tokens_[first].kind != TokenKind::identifier) return kNone;
    note_vectors({type, first});
    for (const Range& declarator : split({first, end})) {
        const std::size_t name = next_in(declarator);
        if (name == kNone || name >= declarator.end || tokens_[name].kind != TokenKind::identifier)
            return kNone;
        const std::size_t behind = tokens_.next(name);
        if (!tokens_.is(behind, "[") && behind < declarator.end) return kNone;
        if (parameters_.contains(tokens_[name].text) || !shared_.insert(tokens_[name].text).second)
            return kNone;
    }
    return tokens_.next(end);
}

bool Regions::is_barrier(std::size_t i) const {
    const std::size_t open = tokens_.next(i);
    return tokens_[i].is("__syncthreads") && text_[i] == "__syncthreads" && begins_statement(i) &&
           tokens_.is(open, "(") && tokens_.is(tokens_.next(open), ")") &&
           tokens_.is(tokens_.next(tokens_.next(open)), ";");
}

bool Regions::has_barrier(Range range) const {
    return mentions(range, "__syncthreads");
}

bool Regions::mentions(Range range, std::string_view name) const {
    for (std::size_t i = range.begin; i < range.end; ++i)
        if (tokens_[i].is(name) && !is_member(i)) return true;
    return false;
}

// Is this `=`, `+=`, `<<=`, `++` or the like behind an operand?
bool Regions::is_change(std::size_t i) const {
    static constexpr std::array<std::string_view, 8> kBeforeEqual = {"+", "-", "*", "/", "%", "&", "|", "^"};
    const bool shifts = tokens_.is_run(i, "<", 2) || tokens_.is_run(i, ">", 2);
    return is_assignment(i) || tokens_.is_run(i, "+", 2) || tokens_.is_run(i, "-", 2) ||
           (shifts && tokens_.is(i + 2, "=")) ||
           (one_of(tokens_[i].text, kBeforeEqual) && tokens_.is(i + 1, "="));
}

// May the code change the variable, or take its address?
bool Regions::is_changed(std::string_view name, Range range) const {
    for (std::size_t i = range.begin; i < range.end; ++i) {
        if (!tokens_[i].is(name) || is_member(i)) continue;
        const std::size_t before = tokens_.previous(i);
        std::size_t behind = tokens_.next(i);
        if (tokens_.is(behind, "[")) continue;  // an element of it
        if (tokens_.is(before, "&") && !tokens_.is(before - 1, "&") && is_unary(before)) return true;
        for (const std::string_view step : {"+", "-"})
            if (tokens_.is(before, step) && tokens_.is(before - 1, step)) return true;
        while (tokens_.is(behind, "."))
            behind = tokens_.next(tokens_.next(behind));
        if (is_change(behind) && !(is_assignment(behind) && is_declared_at(i))) return true;
    }
    return false;
}

// Does the token belong to a reference, to the address of a variable, or to a change of what is in
// parentheses, `(x)++`? is_changed() looks for names only.
bool Regions::hides_change(std::size_t i) const {
    const std::size_t before = tokens_.previous(i);
    std::size_t behind = tokens_.next(i);
    if (tokens_[i].is("&") && !tokens_.is(i - 1, "&") && !tokens_.is(i + 1, "&") && !is_assignment(i + 1)) {
        const bool is_of_element =
            tokens_[behind].kind == TokenKind::identifier && tokens_.is(tokens_.next(behind), "[");
        const bool follows_type = is_type_word(before) || tokens_.is(before, "*");
        if (follows_type || tokens_.is(behind, ">") || (is_unary(i) && !is_of_element)) return true;
    }
    if (tokens_[i].is("(") && (tokens_.is_run(i - 2, "+", 2) || tokens_.is_run(i - 2, "-", 2)))
        return !is_pointee({i + 1, closing(i)});
    if (!tokens_[i].is(")") || tokens_.match(i) == kNone) return false;
    const std::size_t open = tokens_.match(i);
    static constexpr std::array<std::string_view, 3> kHeads = {"if", "for", "while"};
    const std::size_t head = tokens_.previous(open);
    if (head != kNone && one_of(tokens_[head].text, kHeads)) return false;
    while (tokens_.is(behind, "."))
        behind = tokens_.next(tokens_.next(behind));
    return is_change(behind) && !is_pointee({open + 1, i});
}

// Is this what a pointer points to, `*name` or `*(name + 1)`, and certainly no variable?
bool Regions::is_pointee(Range range) const {
    const std::size_t first = next_in(range);
    if (first == kNone || !tokens_.is(first, "*")) return false;
    for (std::size_t i = range.begin; i < range.end; ++i)
        if (tokens_[i].is(",") || tokens_[i].is("?")) return false;
    return true;
}

// Is this the name in a declaration, `int name = 1` or `int other, *name`?
bool Regions::is_declared_at(std::size_t name) const {
    std::size_t begin = name;
    for (std::size_t p = tokens_.previous(name); p != kNone; p = tokens_.previous(p)) {
        if (tokens_[p].is(";") || tokens_[p].is("{") || tokens_[p].is("}") || tokens_[p].is("(")) break;
        if (tokens_[p].is(")") || tokens_[p].is("]")) p = tokens_.match(p);
        begin = p;
    }
    const std::size_t first = behind_type(begin);
    if (first == kNone) return false;
    for (const Range& declarator : split({first, end_of_statement(first)})) {
        std::size_t declared = next_in(declarator);
        while (tokens_.is(declared, "*"))
            declared = tokens_.next(declared);
        if (declared == name) return true;
    }
    return false;
}

// The innermost variable of this name; null: it is no variable that is planned.
const Regions::Variable* Regions::find(std::string_view name) const {
    for (auto i = visible_.rbegin(); i != visible_.rend(); ++i)
        if (variables_[*i].name == name) return &variables_[*i];
    return nullptr;
}

// Has something else this name, which a region would find in its place?
bool Regions::hides_another(std::string_view name) const {
    return parameters_.contains(name) || types_.contains(name) || shared_.contains(name) ||
           find(name) != nullptr || is_number(name);
}

// Depends the value on nothing but the place of the thread (or, if it is to be uniform, of the
// block), parameters and constants?
bool Regions::is_pure(Range range, bool uniform, bool may_assign) {
    for (std::size_t i = range.begin; i < range.end; ++i) {
        const Token& token = tokens_[i];
        if (token.kind == TokenKind::identifier && !is_member(i)) {
            if (shared_.contains(token.text)) return false;
            if (token.is("threadIdx") && uniform) return false;
            if (const Variable* const variable = find(token.text); variable != nullptr) {
                if (variable->kind == Kind::kept || (variable->kind == Kind::computed && uniform))
                    return false;
                // A later region would compute another value from it.
                if (!uniform && uniform_.contains(token.text) && is_changed(token.text, body_)) return false;
            } else if (!parameters_.contains(token.text) && is_variable_of_device(token.text)) {
                return false;
            }
        } else if (token.is("[") || (token.is("-") && tokens_.is(i + 1, ">"))) {
            return false;
        } else if (token.is("*") && is_unary(i)) {
            return false;
        } else if (!may_assign &&
                   (is_assignment(i) || tokens_.is_run(i, "+", 2) || tokens_.is_run(i, "-", 2))) {
            return false;
        }
    }
    return true;
}

// `__device__ int name;`, which threads may change.
bool Regions::is_variable_of_device(std::string_view name) {
    if (!device_variables_) {
        device_variables_.emplace();
        for (std::size_t i = 0; i < tokens_.size(); ++i) {
            if (!tokens_[i].is("__device__") && !tokens_[i].is("__managed__")) continue;
            for (std::size_t p = tokens_.next(i); p != kNone; p = tokens_.next(p)) {
                if (tokens_[p].is(";") || tokens_[p].is("{") || tokens_[p].is("(")) break;
                if (tokens_[p].kind != TokenKind::identifier) continue;
                for (const std::string_view behind : {";", "=", "[", ",", "{"})
                    if (tokens_.is(tokens_.next(p), behind)) device_variables_->insert(tokens_[p].text);
            }
        }
    }
    return device_variables_->contains(name);
}

// The sizes of `__shared__` arrays are needed outside of regions.
bool Regions::is_pure_size(Range declaration) const {
    for (std::size_t i = declaration.begin; i < declaration.end; ++i) {
        const Variable* const variable = find(tokens_[i].text);
        if (variable != nullptr && variable->kind != Kind::uniform) return false;
    }
    return true;
}

// ---- The plan -----------------------------------------------------------------------------------

bool Regions::plan_body() {
    variables_.clear();
    visible_.clear();
    regions_.clear();
    loops_.clear();
    barriers_.clear();
    is_open_ = may_have_ended_ = false;
    if (!plan_statements(body_, {.in_loop = false, .in_block = false})) return false;
    close_region();
    return true;
}

bool Regions::plan_statements(Range list, Around around) {
    const std::size_t outer = visible_.size();
    for (std::size_t i = next_in(list); i != kNone && i < list.end;) {
        const std::size_t behind = behind_statement(i);
        if (behind == kNone || behind > list.end) return false;
        if (!plan_statement({i, tokens_.previous(behind) + 1}, around)) return false;
        i = behind;
    }
    close_region();
    visible_.resize(outer);
    return true;
}

bool Regions::plan_statement(Range statement, Around around) {
    const std::size_t first = statement.begin;
    if (tokens_[first].is(";")) return true;
    if (shared_word(first) != kNone) {
        close_region();
        return is_pure_size(statement);
    }
    if (is_barrier(first)) {
        close_region();
        barriers_.push_back(first);
        return !may_have_ended_;
    }
    if (has_barrier(statement)) {
        close_region();
        if (may_have_ended_) return false;
        if (tokens_[first].is("{")) return plan_block(first, around);
        if (tokens_[first].is("for")) return plan_loop(statement);
        if (tokens_[first].is("while")) return plan_while(statement);
        if (tokens_[first].is("if")) return plan_branch(statement, around);
        return false;
    }
    if (is_uniform_jump(statement, around)) {
        close_region();
        return true;
    }
    const std::size_t declared = behind_type(first);
    if (declared != kNone && tokens_[declared].kind == TokenKind::identifier)
        return plan_declaration(statement, declared, around);
    if (changes_uniform(statement)) return plan_uniform_statement(statement);
    return add_to_region(statement, around);
}

bool Regions::plan_block(std::size_t brace, Around around) {
    if (!tokens_.is(brace, "{")) return false;
    around.in_block = true;
    return plan_statements({brace + 1, closing(brace)}, around);
}

// `if (uniform) {...} else {...}`
bool Regions::plan_branch(Range statement, Around around) {
    const std::size_t open = tokens_.next(statement.begin);
    if (!tokens_.is(open, "(")) return false;
    const std::size_t close = closing(open);
    const std::size_t body = tokens_.next(close);
    if (!is_pure({open + 1, close}, true) || !plan_block(body, around)) return false;
    const std::size_t otherwise = tokens_.next(closing(body));
    if (!tokens_.is(otherwise, "else") || otherwise >= statement.end) return true;
    const std::size_t other = tokens_.next(otherwise);
    return tokens_.is(other, "if") ? plan_branch({other, statement.end}, around) : plan_block(other, around);
}

// `for (int i = 0; i < uniform; ++i) {...}`, and the same with a variable that is declared before.
bool Regions::plan_loop(Range statement) {
    const std::size_t open = tokens_.next(statement.begin);
    const std::size_t close = closing(open);
    const std::size_t body = tokens_.next(close);
    const std::size_t begin = tokens_.next(open);
    const Range init{begin, end_of_statement(begin)};
    const Range condition{init.end + 1, end_of_statement(init.end + 1)};
    const Range step{condition.end + 1, close};
    if (!tokens_.is(body, "{") || step.begin > close || next_in(condition) == kNone) return false;
    const Range inside{body + 1, closing(body)};

    const std::size_t outer = visible_.size();
    std::vector<std::string_view> counters;
    const std::size_t first = behind_type(begin);
    if (first != kNone && tokens_[first].kind == TokenKind::identifier) {
        for (const Range& declarator : split({first, init.end})) {
            const std::size_t name = next_in(declarator);
            if (name == kNone || !tokens_.is(tokens_.next(name), "=") || hides_another(tokens_[name].text))
                return false;
            if (!is_pure({tokens_.next(name) + 1, declarator.end}, true)) return false;
            counters.push_back(tokens_[name].text);
        }
    } else {
        const Variable* const before = find(tokens_[begin].text);
        const bool is_uniform = uniform_.contains(tokens_[begin].text);
        if (before == nullptr || (before->kind != Kind::kept && !is_uniform) ||
            !is_assignment(tokens_.next(begin)) || !is_pure({tokens_.next(begin) + 1, init.end}, true))
            return false;
        counters.push_back(tokens_[begin].text);
        if (!is_uniform) {
            const auto variable = static_cast<std::size_t>(before - variables_.data());
            loops_.push_back({statement.begin, statement.end - 1, variable});
            variables_[variable].lasts = true;
        }
    }
    for (const std::string_view counter : counters) {
        if (is_changed(counter, inside)) return false;
        visible_.push_back(variables_.size());
        variables_.push_back({counter, Kind::uniform, init, "", kNone});
    }
    if (!is_pure(condition, true) || !is_pure(step, true, true)) return false;
    for (std::size_t i = step.begin; i < step.end; ++i) {
        const std::string_view name = tokens_[i].text;
        if (tokens_[i].kind == TokenKind::identifier && is_changed(name, step) &&
            std::ranges::find(counters, name) == counters.end())
            return false;
    }
    if (!plan_statements(inside, {.in_loop = true, .in_block = true})) return false;
    visible_.resize(outer);
    return true;
}

// `while (uniform) {...}`
bool Regions::plan_while(Range statement) {
    const std::size_t open = tokens_.next(statement.begin);
    const std::size_t close = closing(open);
    return is_pure({open + 1, close}, true) &&
           plan_block(tokens_.next(close), {.in_loop = true, .in_block = true});
}

// `if (uniform) break;` in a loop with a barrier.
bool Regions::is_uniform_jump(Range statement, Around around) {
    if (!around.in_loop || !tokens_[statement.begin].is("if")) return false;
    const std::size_t open = tokens_.next(statement.begin);
    if (!tokens_.is(open, "(")) return false;
    std::size_t jump = tokens_.next(closing(open));
    if (tokens_.is(jump, "{")) jump = tokens_.next(jump);
    std::size_t last = tokens_.next(jump);
    if (!is_jump(tokens_[jump]) || !tokens_.is(last, ";")) return false;
    if (tokens_.is(tokens_.next(last), "}") && tokens_.next(last) < statement.end) last = tokens_.next(last);
    return last + 1 == statement.end && is_pure({open + 1, closing(open)}, true);
}

bool Regions::plan_declaration(Range statement, std::size_t first, Around around) {
    const std::vector<Range> declarators = split({first, end_of_statement(first)});
    bool pure = true;
    bool uniform = true;
    for (const Range& declarator : declarators) {
        std::size_t name = next_in(declarator);
        while (tokens_.is(name, "*"))
            name = tokens_.next(name);
        const std::string_view word = tokens_[name].text;
        if (hides_another(word)) return false;
        const Range value{name + 1, declarator.end};
        const bool has_value = next_in(value) != kNone;
        // Its own `=` is no assignment.
        const std::size_t sign = next_in(value);
        const Range behind{has_value && tokens_.is(sign, "=") ? sign + 1 : value.begin, value.end};
        const bool stays = has_value && (uniform_.contains(word) || !is_changed(word, body_));
        pure = pure && stays && is_pure(behind, false);
        uniform = uniform && stays && is_pure(behind, true);
    }
    pure = pure || uniform;
    // What is uniform elsewhere must be it here.
    const bool must = std::ranges::any_of(declarators, [&](const Range& declarator) {
        return uniform_.contains(tokens_[next_in(declarator)].text);
    });
    if (must && !uniform) return false;
    if (uniform) {
        close_region();
    } else if (!add_to_region(statement, around)) {
        return false;
    }
    const Range words{statement.begin, first};
    if (!pure && (mentions(words, "auto") || mentions(words, "constexpr"))) return false;
    // `float *a, b`: the stars belong to the first name.
    std::size_t stars_begin = statement.begin;
    while (stars_begin < first && !tokens_[stars_begin].is("*"))
        ++stars_begin;
    const std::string type = translated({statement.begin, stars_begin});
    for (const Range& declarator : declarators) {
        std::size_t name = next_in(declarator);
        std::string stars = name == first ? translated({stars_begin, first}) : "";
        for (; tokens_.is(name, "*"); name = tokens_.next(name))
            stars += "*";
        if (!pure && tokens_.is(tokens_.next(name), "{")) return false;
        visible_.push_back(variables_.size());
        variables_.push_back({tokens_[name].text,
                              uniform ? Kind::uniform
                              : pure  ? Kind::computed
                                      : Kind::kept,
                              statement, type + stars, uniform ? kNone : regions_.size() - 1});
    }
    return true;
}

// Has each `break` a loop of the statement around it?
bool Regions::jumps_inside(Range statement) const {
    for (std::size_t i = statement.begin; i < statement.end; ++i) {
        if (!is_jump(tokens_[i])) continue;
        bool found = false;
        for (std::size_t loop = statement.begin; loop < i; ++loop) {
            const bool begins = (tokens_[loop].is("for") || tokens_[loop].is("while"));
            found = found || (begins && whole_loop(loop, closing(tokens_.next(loop))).end >= i);
        }
        if (!found) return false;
    }
    return true;
}

bool Regions::add_to_region(Range statement, Around around) {
    if (!jumps_inside(statement) || mentions(statement, "__shared__")) return false;
    if (!is_open_) {
        if (may_have_ended_) return false;
        regions_.push_back({statement, {}});
        is_open_ = true;
    }
    regions_.back().statements.end = statement.end;
    if (mentions(statement, "return")) {
        if (around.in_block) return false;
        may_have_ended_ = true;
    }
    return true;
}

void Regions::close_region() {
    if (is_open_) regions_.back().visible = visible_;
    is_open_ = false;
}

// ---- The translation ----------------------------------------------------------------------------

void Regions::find_later_uses() {
    for (std::size_t r = 0; r < regions_.size(); ++r) {
        for (const std::size_t i : regions_[r].visible) {
            Variable& variable = variables_[i];
            if (variable.region != r && mentions(regions_[r].statements, variable.name))
                variable.lasts = true;
        }
    }
    // All names of one declaration have the same fate.
    for (Variable& variable : variables_) {
        for (const Variable& other : variables_)
            variable.lasts = variable.lasts || (other.lasts && other.kind == variable.kind &&
                                                other.declaration.begin == variable.declaration.begin);
    }
}

void Regions::qualify_places() {
    std::size_t i = body_.begin;
    for (const Region& region : regions_) {
        KnownWords::qualify_places({i, region.statements.begin}, "cuda_on_cpu_threads_.");
        KnownWords::qualify_places(region.statements, "cuda_on_cpu_place_.");
        i = region.statements.end;
    }
    KnownWords::qualify_places({i, body_.end}, "cuda_on_cpu_threads_.");
}

// `float sum = 0, x;` becomes `sum = 0;` where both are references.
void Regions::keep_declared_variables() {
    std::size_t last = kNone;
    for (const Variable& variable : variables_) {
        const Range statement = variable.declaration;
        if (variable.kind == Kind::uniform || !variable.lasts || statement.begin == last) continue;
        last = statement.begin;
        if (variable.kind == Kind::computed) {
            text_[statement.begin].insert(0, "[[maybe_unused]] ");
            continue;
        }
        const std::size_t first = behind_type(statement.begin);
        erase({statement.begin, first});
        for (const Range& declarator : split({first, end_of_statement(first)})) {
            std::size_t name = next_in(declarator);
            for (; tokens_.is(name, "*"); name = tokens_.next(name))
                erase(name);
            if (next_in({name + 1, declarator.end}) == kNone) erase(name);
            if (tokens_.is(declarator.end, ",")) text_[declarator.end] = ";";
        }
    }
}

std::string Regions::translated(Range range) const {
    std::string result;
    for (std::size_t i = range.begin; i < range.end; ++i)
        result += (tokens_[i].significant() ? text_[i] : " ") + after_[i];
    return result;
}

std::string Regions::row(const Variable& variable) const {
    return std::string(variable.name) + "_row_" + std::to_string(variable.declaration.begin) + "_";
}

std::string Regions::begin_region(std::size_t r) {
    const Region& region = regions_[r];
    const std::string begin =
        " cuda_on_cpu_threads_.each([&]([[maybe_unused]] const "
        "::cuda_on_cpu::ThreadPlace& cuda_on_cpu_place_, [[maybe_unused]] unsigned "
        "cuda_on_cpu_thread_) __attribute__((always_inline)) {";
    // What a computed variable is computed from is needed as well.
    std::vector<std::size_t> needed;
    std::vector<Range> code{region.statements};
    std::set<std::string_view> found;
    for (auto at = region.visible.rbegin(); at != region.visible.rend(); ++at) {
        const Variable& variable = variables_[*at];
        const bool is_mentioned =
            std::ranges::any_of(code, [&](const Range& each) { return mentions(each, variable.name); });
        // A loop's own variable hides one that is declared before it.
        if (!is_mentioned || !found.insert(variable.name).second || variable.kind == Kind::uniform) continue;
        if (variable.kind == Kind::computed && variable.region != r) code.push_back(variable.declaration);
        needed.push_back(*at);
    }
    std::string rows;
    std::string names;
    std::size_t last = kNone;
    for (auto at = needed.rbegin(); at != needed.rend(); ++at) {
        const Variable& variable = variables_[*at];
        if (variable.kind == Kind::kept && variable.lasts) {
            const std::string threads = "CudaOnCpuThreads, " + variable.type + "> ";
            if (variable.region == r) {
                rows += " static thread_local ::cuda_on_cpu::RowOf<" + threads + row(variable) +
                        "; [[maybe_unused]] ::cuda_on_cpu::OwnOf<" + threads + row(variable) + "own_;";
            }
            names += " [[maybe_unused]] auto& " + std::string(variable.name) + " = CudaOnCpuThreads::kept(" +
                     row(variable) + ", " + row(variable) + "own_, cuda_on_cpu_thread_);";
        } else if (variable.kind == Kind::computed && variable.region != r &&
                   variable.declaration.begin != last) {
            names += " " + translated(variable.declaration);
            last = variable.declaration.begin;
        }
    }
    return rows + begin + names;
}

void Regions::insert_regions() {
    // Behind which token, which first, what.
    std::vector<std::tuple<std::size_t, int, std::string>> insertions;
    const std::string to_each =
        " cuda_on_cpu_threads_.each([&](const ::cuda_on_cpu::ThreadPlace&, "
        "[[maybe_unused]] unsigned cuda_on_cpu_thread_) "
        "__attribute__((always_inline)) { CudaOnCpuThreads::kept(";
    for (std::size_t r = 0; r < regions_.size(); ++r) {
        const Range statements = regions_[r].statements;
        insertions.emplace_back(statements.end - 1, 0, " });");
        insertions.emplace_back(tokens_.previous(statements.begin), 3, begin_region(r));
    }
    for (const Loop& loop : loops_) {
        const Variable& variable = variables_[loop.variable];
        const std::string name(variable.name);
        insertions.emplace_back(loop.end, 1,
                                to_each + row(variable) + ", " + row(variable) +
                                    "own_, cuda_on_cpu_thread_) = " + name + "; }); }");
        insertions.emplace_back(tokens_.previous(loop.begin), 2, " { " + variable.type + " " + name + ";");
    }
    std::ranges::stable_sort(
        insertions, {}, [](const auto& each) { return std::pair(std::get<0>(each), std::get<1>(each)); });
    for (const auto& [token, order, text] : insertions)
        after_[token] += text;
}

}  // namespace translator
