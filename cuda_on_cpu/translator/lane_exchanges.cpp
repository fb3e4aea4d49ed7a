// Exchanges between lanes through shared memory that is neither volatile nor fenced:
//     s[t] = x;  int left = s[t - 1];  s[t] = left + x;
// One thread may do this for itself, `for (i = 1; i < n; ++i) s[i] += s[i - 1];`. So an exchange is
// only what certainly is one: a store to the element of this lane, and with no synchronisation in
// between a load from that of another lane.
#include <charconv>
#include <optional>

#include "parts.hpp"

namespace translator {
namespace {

constexpr int kLanes = 32;

std::optional<int> value_of(std::string_view number) {
    int value = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    const bool whole =
        error == std::errc() && (end == number.data() + number.size() || *end == 'u' || *end == 'U');
    return whole ? std::optional(value) : std::nullopt;
}

}  // namespace

std::size_t LaneExchanges::find(std::string_view name, std::size_t function) {
    name_ = name;
    function_ = {function, closing(function)};
    find_lane_variables();
    find_conditions();
    const std::vector<Access> accesses = find_accesses();
    for (const Access& load : accesses) {
        if (load.stores || !is_for_many_lanes(load)) continue;
        const std::optional<std::string_view> distance = distance_to_other_lane(load);
        if (!distance) continue;
        // In the same interval between two synchronisations another store of this lane may have
        // the same index: then it is an element of its own.
        const auto is_own = [&](const Access& store) {
            return store.stores && store.interval == load.interval && index_of(store) == index_of(load);
        };
        if (std::any_of(accesses.begin(), accesses.end(), is_own)) continue;
        for (const Access& store : accesses) {
            if (!store.stores || !is_lane(store.index) || !is_for_many_lanes(store)) continue;
            const bool before = store.end < load.name && store.interval == load.interval;
            if ((before && !is_out_of_reach(store, load, *distance)) || meet_in_loop(store, load))
                return load.name;
        }
    }
    return kNone;
}

// The tokens of a range that are neither space nor directives.
std::vector<std::string_view> LaneExchanges::words_in(Range range) const {
    std::vector<std::string_view> words;
    for (std::size_t i = range.begin; i < range.end; ++i) {
        if (!tokens_[i].significant()) continue;
        words.push_back(tokens_[i].text);
        // threadIdx.x as one word
        const std::size_t size = words.size();
        if (size < 3 || words[size - 3] != "threadIdx" || words[size - 2] != ".") continue;
        words.resize(words.size() - 2);
    }
    return words;
}

bool LaneExchanges::is_lane_word(std::string_view word) const {
    return word == "threadIdx" || lanes_.count(word) != 0;
}

// Is this the number of the thread, or of its lane: threadIdx.x, lane, threadIdx.y * 16 +
// threadIdx.x? Two lanes never have the same, and the next lane has the next number.
bool LaneExchanges::is_number_of_thread(Range value) const {
    static constexpr std::array<std::string_view, 20> kMay = {
        "+",        "-", "*", "&", "%", "(",     ")",    "static_cast", "int", "unsigned",
        "blockDim", ".", "x", "y", "z", "const", "long", "size_t",      "std", ":"};
    const std::vector<std::string_view> words = words_in(value);
    bool found = false;
    for (std::size_t w = 0; w < words.size(); ++w) {
        const std::string_view before = w > 0 ? words[w - 1] : "",
                               behind = w + 1 < words.size() ? words[w + 1] : "";
        const bool of_cast =
            (words[w] == "<" && before == "static_cast") || (words[w] == ">" && behind == "(");
        const std::optional<int> number = value_of(words[w]);
        if (number && (before == "%" || before == "&") && *number < 7) return false;
        if (is_lane_word(words[w])) {
            found = found || (before != "*" && behind != "*");
        } else if (!one_of(words[w], kMay) && !of_cast && !number) {
            // WARP_SIZE, kWidth
            const bool is_constant = words[w].find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") ==
                                         std::string_view::npos ||
                                     words[w].starts_with("k");
            if (!is_constant || behind == "(") return false;
        }
    }
    return found;
}

// `int t = threadIdx.x;`
void LaneExchanges::find_lane_variables() {
    lanes_.clear();
    for (std::size_t i = function_.begin; i < function_.end; ++i) {
        const std::size_t assignment = tokens_.next(i);
        const std::size_t before = tokens_.previous(i);
        if (tokens_[i].kind != TokenKind::identifier || before == kNone || assignment >= tokens_.size() ||
            !is_assignment(assignment) ||
            !(tokens_[before].kind == TokenKind::identifier || tokens_.is(before, ",")))
            continue;
        std::size_t end = tokens_.next(assignment);
        while (end < function_.end && !tokens_[end].is(";") && !tokens_[end].is(","))
            end = tokens_.is(end, "(") ? closing(end) + 1 : end + 1;
        if (is_number_of_thread({assignment + 1, end})) lanes_.insert(tokens_[i].text);
    }
}

void LaneExchanges::find_conditions() {
    conditions_.clear();
    for (std::size_t i = function_.begin; i < function_.end; ++i) {
        if (!tokens_[i].is("if")) continue;
        std::size_t open = tokens_.next(i);
        if (tokens_.is(open, "constexpr")) open = tokens_.next(open);
        if (!tokens_.is(open, "(")) continue;
        const std::size_t body = tokens_.next(closing(open));
        const auto end_of = [&](std::size_t behind) { return behind == kNone ? function_.end : behind; };
        conditions_.push_back({words_in({open + 1, closing(open)}),
                               {body, end_of(behind_statement(body))},
                               end_of(behind_statement(i))});
    }
}

// Loads and stores in the order of the text, with the number of the interval that each lies in.
std::vector<LaneExchanges::Access> LaneExchanges::find_accesses() {
    std::vector<Access> accesses;
    ends_of_intervals_.clear();
    std::size_t end_of_lambda = kNone;
    int interval = 0;
    for (std::size_t i = function_.begin; i < function_.end; ++i) {
        if (begins_lambda(i)) {
            for (end_of_lambda = i; end_of_lambda < function_.end && !tokens_[end_of_lambda].is("{");)
                ++end_of_lambda;
            end_of_lambda = closing(end_of_lambda);
        }
        if (i == end_of_lambda || begins_lambda(i) || may_synchronise(i) || changes_lane(i) ||
            ends_branches_that_synchronise(i)) {
            ++interval;
            ends_of_intervals_.push_back(i);
        }
        const std::size_t open = tokens_.next(i);
        if (!tokens_[i].is(name_) || is_member(i) || !tokens_.is(open, "[") || open >= function_.end)
            continue;
        const std::size_t before = tokens_.previous(i);
        const bool of_address = tokens_.is(before, "&") && !tokens_.is(before - 1, "&");
        const std::size_t behind = tokens_.next(closing(open));
        if (of_address || tokens_.is(before, "__shared__") || tokens_.is(behind, "[")) continue;
        std::size_t assignment = behind;
        while (assignment < function_.end && tokens_[assignment].kind == TokenKind::punctuation &&
               !tokens_[assignment].is(";") && !tokens_[assignment].is("=") && !tokens_[assignment].is(","))
            ++assignment;
        const bool stores = assignment < function_.end && is_assignment(assignment);
        // A statement's own loads come before its store.
        accesses.push_back(
            {i, {open + 1, closing(open)}, stores ? end_of_statement(i) : i, interval, stores});
    }
    return accesses;
}

// Does an if statement end before token `i`, one of whose branches synchronises? Which one the
// threads take is not known.
bool LaneExchanges::ends_branches_that_synchronise(std::size_t i) const {
    for (const Condition& condition : conditions_) {
        if (condition.end == i && !ends_of_intervals_.empty() &&
            ends_of_intervals_.back() > condition.body.begin)
            return true;
    }
    return false;
}

bool LaneExchanges::begins_lambda(std::size_t i) const {
    const std::size_t behind = tokens_.next(i), before = tokens_.previous(i);
    return tokens_[i].is("[") &&
           (tokens_.is(behind, "&") || tokens_.is(behind, "=") || tokens_.is(behind, "]")) &&
           (tokens_.is(before, "=") || tokens_.is(before, "(") || tokens_.is(before, ","));
}

// A call of a function may, unless it is known to compute.
bool LaneExchanges::may_synchronise(std::size_t i) const {
    static constexpr std::array<std::string_view, 20> kNot = {
        "if",     "for",      "while",  "switch", "return",
        "sizeof", "min",      "max",    "abs",    "fminf",
        "int",    "fmaxf",    "fabsf",  "sqrtf",  "expf",
        "float",  "unsigned", "double", "bool",   "__launch_bounds__"};
    if (tokens_[i].kind != TokenKind::identifier) return false;
    const std::string_view word = tokens_[i].text;
    if (is_asm(tokens_[i])) return true;
    for (const std::string_view part : {"sync", "wait", "arrive", "barrier"})
        if (word.find(part) != std::string_view::npos) return true;
    if (!tokens_.is(tokens_.next(i), "(") || one_of(word, kNot) || word.starts_with("__")) return false;
    return tokens_.next(i) < function_.end;
}

// Something else than the declaration gives a value to a variable that had the lane's number.
bool LaneExchanges::changes_lane(std::size_t i) const {
    if (tokens_[i].kind != TokenKind::identifier || lanes_.count(tokens_[i].text) == 0) return false;
    const std::size_t before = tokens_.previous(i), behind = tokens_.next(i);
    if (before == kNone || behind == kNone) return false;
    if (tokens_.is_run(behind, "+", 2) || tokens_.is_run(behind, "-", 2)) return true;
    if (before > 0 && (tokens_.is_run(before - 1, "+", 2) || tokens_.is_run(before - 1, "-", 2))) return true;
    std::size_t assignment = behind;
    while (assignment < function_.end && tokens_[assignment].kind == TokenKind::punctuation &&
           !tokens_[assignment].is("=") && assignment < behind + 2)
        ++assignment;
    if (assignment >= function_.end || !is_assignment(assignment)) return false;
    return assignment != behind || tokens_[before].kind != TokenKind::identifier;
}

std::string LaneExchanges::index_of(const Access& access) const {
    std::string index;
    for (const std::string_view word : words_in(access.index))
        index += word;
    return index;
}

bool LaneExchanges::is_lane(Range index) const {
    const std::vector<std::string_view> words = words_in(index);
    return words.size() == 1 && is_lane_word(words.front());
}

// What is added to the lane's number, or subtracted, in the index of another lane: `t - 1`,
// `t ^ 1`, `(t + 1) % 32`, `31 - t`, or `t + d` in a loop that doubles or halves d.
std::optional<std::string_view> LaneExchanges::distance_to_other_lane(const Access& load) const {
    std::vector<std::string_view> words = words_in(load.index);
    if (words.size() > 5 && words.front() == "(" && words[4] == ")" && (words[5] == "%" || words[5] == "&"))
        words = {words.begin() + 1, words.begin() + 4};
    if (words.size() != 3) return std::nullopt;
    const bool mirrored = words[1] == "-" && is_lane_word(words[2]) && value_of(words[0]) == kLanes - 1;
    if (mirrored) return words[0];
    if (!is_lane_word(words[0]) || (words[1] != "+" && words[1] != "-" && words[1] != "^"))
        return std::nullopt;
    const std::optional<int> number = value_of(words[2]);
    if (number ? 0 < *number && *number < kLanes : is_step_of_loop(words[2], load.name)) return words[2];
    return std::nullopt;
}

// `for (int d = 1; d < 32; d *= 2)` around `i`.
bool LaneExchanges::is_step_of_loop(std::string_view variable, std::size_t i) const {
    for (const Range& loop : loops_around(i)) {
        const std::vector<std::string_view> words = words_in({loop.begin, closing(tokens_.next(loop.begin))});
        for (std::size_t w = 0; w + 2 < words.size(); ++w) {
            if (words[w] != variable) continue;
            const bool shifts = (words[w + 1] == "<" || words[w + 1] == ">") && words[w + 2] == words[w + 1];
            const bool scales = (words[w + 1] == "*" || words[w + 1] == "/") && words[w + 2] == "=";
            if (shifts || scales) return true;
        }
    }
    return false;
}

std::vector<Range> LaneExchanges::loops_around(std::size_t i) const {
    std::vector<Range> loops;
    for (std::size_t loop = function_.begin; loop < i; ++loop) {
        if (!tokens_[loop].is("for") && !tokens_[loop].is("while")) continue;
        const std::size_t open = tokens_.next(loop);
        if (!tokens_.is(open, "(")) continue;
        const Range whole = whole_loop(loop, closing(open));
        if (whole.begin == loop && closing(open) < i && i < whole.end) loops.push_back(whole);
    }
    return loops;
}

// No condition around the access chooses one thread (`t == 0`, `leader`) or some lanes (`t % 2`).
bool LaneExchanges::is_for_many_lanes(const Access& access) const {
    for (const Condition& condition : conditions_) {
        if (access.name < condition.body.begin || access.name >= condition.body.end) continue;
        bool compares = false;
        for (std::size_t w = 0; w < condition.words.size(); ++w) {
            const std::string_view word = condition.words[w];
            const bool of_pair =
                word == "&" && ((w > 0 && condition.words[w - 1] == "&") ||
                                (w + 1 < condition.words.size() && condition.words[w + 1] == "&"));
            if (word == "!" || word == "%" || (word == "&" && !of_pair)) return false;
            if (word == "=" && w > 0 && condition.words[w - 1] == "=") return false;
            compares = compares || word == "<" || word == ">";
        }
        if (!compares) return false;
    }
    return true;
}

// `if (t < 8) { s[t] = x; y = s[t + 8]; }`: what is loaded is no element of these lanes.
bool LaneExchanges::is_out_of_reach(const Access& store, const Access& load,
                                    std::string_view distance) const {
    for (const Condition& condition : conditions_) {
        if (store.name < condition.body.begin || load.name >= condition.body.end) continue;
        for (std::size_t w = 0; w + 2 < condition.words.size(); ++w) {
            if (!is_lane_word(condition.words[w]) || condition.words[w + 1] != "<") continue;
            const std::optional<int> bound = value_of(condition.words[w + 2]), far = value_of(distance);
            if (condition.words[w + 2] == distance || (bound && far && *bound <= *far)) return true;
        }
    }
    return false;
}

// Does a loop around both have no synchronisation? The load is then behind the store of the turn
// before.
bool LaneExchanges::meet_in_loop(const Access& store, const Access& load) const {
    for (const Range& loop : loops_around(load.name)) {
        if (store.name < loop.begin || store.name >= loop.end) continue;
        const auto is_inside = [&](std::size_t end) { return loop.begin < end && end < loop.end; };
        if (std::none_of(ends_of_intervals_.begin(), ends_of_intervals_.end(), is_inside)) return true;
    }
    return false;
}

}  // namespace translator
