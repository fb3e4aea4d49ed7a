#include "merge.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <unordered_map>

#include "tokens.hpp"

namespace translator {
namespace {

// Appended to the name of a constant or a type that device code defines differently.
constexpr const char* kDeviceSuffix = "_on_device_";
constexpr const char* kOnDevice = "if (::cuda_on_cpu::in_kernel()) ";
constexpr const char* kOnDeviceIfConstexpr =
    "if (__builtin_is_constant_evaluated() ? false : ::cuda_on_cpu::in_kernel()) ";

struct Range {
    std::size_t begin;
    std::size_t end;
};

template <std::size_t N>
bool one_of(std::string_view word, const std::array<std::string_view, N>& words) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

enum class Kind {
    scope,        // a namespace, a class: declarations between braces
    function,     // with a body
    declaration,  // anything else
};

// Specifiers that do not affect what is declared.
constexpr std::array<std::string_view, 11> kSpecifiers = {
    "inline",     "static",       "constexpr",   "__device__",   "__host__", "__forceinline__",
    "__inline__", "__constant__", "__managed__", "__noinline__", "extern"};
constexpr std::array<std::string_view, 4> kAttributes = {  // with arguments
    "__attribute__", "__launch_bounds__", "__cluster_dims__", "__maxnreg__"};

// One declaration of a scope.
struct Item {
    Range range;
    Kind kind = Kind::declaration;
    std::size_t brace = kNone;  // that opens the body or the scope
    // The whole text except blanks.
    std::string key;
    // Identifies what is declared: items of the two passes with the same signature belong together.
    std::string signature;
    std::string name;     // of a constant or a type that may get a second name
    bool host = false;    // has the word __host__
    bool device = false;  // has __device__, __constant__, __managed__ or __shared__
    bool global = false;
    bool constant = false;  // constexpr or consteval

    bool for_host() const { return host || constant || (!device && !global); }
    bool for_device() const { return device || global || constant; }
};

// One output of the preprocessor.
class Pass {
  public:
    explicit Pass(std::string_view text) : tokens(text), files_(tokens.size()) {
        std::string_view file = "\"\"";
        for (std::size_t i = 0; i < tokens.size(); ++i) {
            if (is_marker(i)) {
                const std::string_view directive = tokens[i].text;
                file = directive.substr(directive.find('"'));  // with its flags
            }
            files_[i] = file;
        }
    }

    Tokens tokens;
    std::set<std::string, std::less<>> renamed;

    std::string file(std::size_t i) const {
        const std::string_view name = files_[i];
        return std::string(name.substr(1, name.rfind('"') - 1));
    }
    // A line marker with the position of token `i`.
    std::string marker(std::size_t i) const {
        const bool system = files_[i].substr(files_[i].rfind('"')).find('3') != std::string_view::npos;
        return "\n# " + std::to_string(tokens[i].line) + " \"" + file(i) + "\"" + (system ? " 3" : "") + "\n";
    }
    std::string text(std::size_t i) const {
        std::string word(tokens[i].text);
        if (tokens[i].kind == TokenKind::identifier && renamed.contains(word)) word += kDeviceSuffix;
        return word;
    }
    std::string source(Range range) const {
        std::string all;
        for (std::size_t i = range.begin; i < range.end; ++i)
            all += text(i);
        return all;
    }
    // A function without its body: template arguments, result, parameters, and the member
    // initialisers of a constructor.
    std::string head(const Item& item) const {
        std::string all;
        for (std::size_t i = item.range.begin; i < item.brace; ++i) {
            if (!tokens[i].significant() || one_of(tokens[i].text, kSpecifiers)) continue;
            if (one_of(tokens[i].text, kAttributes) && tokens.is(tokens.next(i), "(")) {
                i = match_or(tokens.next(i), item.brace) - 1;
                continue;
            }
            all += text(i) + ' ';
        }
        return all;
    }
    // Includes pragmas, but not line markers.
    std::string key(Range range) const {
        std::string all;
        for (std::size_t i = range.begin; i < range.end; ++i) {
            if (tokens[i].kind != TokenKind::space && !is_marker(i)) all += text(i) + ' ';
        }
        return all;
    }

    std::vector<Item> items(Range scope) const {
        std::vector<Item> all;
        for (std::size_t i = scope.begin; i < scope.end;) {
            if (!tokens[i].significant()) {
                ++i;
                continue;
            }
            Item item = item_at(i, scope.end);
            i = item.range.end;
            all.push_back(std::move(item));
        }
        return all;
    }

    // The bodies of the lambdas with `__device__` in a range.
    struct Lambda {
        std::size_t body;
        bool host;
    };
    std::vector<Lambda> device_lambdas(Range range) const {
        std::vector<Lambda> all;
        for (std::size_t i = range.begin; i < range.end; ++i) {
            if (!tokens[i].is("]")) continue;
            bool host = false;
            bool device = false;
            std::size_t p = tokens.next(i);
            for (; tokens.is(p, "__host__") || tokens.is(p, "__device__"); p = tokens.next(p)) {
                host = host || tokens[p].is("__host__");
                device = device || tokens[p].is("__device__");
            }
            if (!device || !tokens.is(p, "(") || tokens.match(p) == kNone) continue;
            for (p = tokens.next(tokens.match(p)); p != kNone && p < range.end && !tokens[p].is("{");)
                p = tokens.next(p);
            if (tokens.is(p, "{") && tokens.match(p) != kNone) all.push_back({p, host});
        }
        return all;
    }

  private:
    bool is_marker(std::size_t i) const {
        const std::string_view text = tokens[i].text;
        return tokens[i].kind == TokenKind::directive && text.starts_with("# ") && text.size() > 2 &&
               text[2] >= '0' && text[2] <= '9' && text.find('"') != std::string_view::npos;
    }

    std::size_t match_or(std::size_t i, std::size_t end) const {
        const std::size_t close = tokens.match(i);
        return close == kNone || close < i || close >= end ? end : close + 1;
    }

    // The token after `template <...>` and other lists in angle brackets that start at `i`.
    std::size_t behind_angles(std::size_t i, std::size_t end) const {
        int depth = 0;
        for (; i < end; ++i) {
            if (tokens[i].is("(") || tokens[i].is("[") || tokens[i].is("{")) i = match_or(i, end) - 1;
            if (i >= end) break;
            if (tokens[i].is("<")) ++depth;
            if (tokens[i].is(">") && --depth == 0) return i + 1;
            if (tokens[i].is(";")) break;
        }
        return i;
    }

    Item item_at(std::size_t begin, std::size_t end) const {
        static constexpr std::array<std::string_view, 4> kAccess = {"public", "private", "protected",
                                                                    "signals"};
        static constexpr std::array<std::string_view, 3> kClasses = {"class", "struct", "union"};
        Item item;
        item.range = {begin, end};
        if (one_of(tokens[begin].text, kAccess) && tokens.is(tokens.next(begin), ":")) {
            item.range.end = tokens.next(begin) + 1;
            return finish(item, item.range.end);
        }
        bool has_class = false;
        bool has_enum = false;
        bool has_parameters = false;
        bool initialised = false;  // behind `=`
        bool in_members = false;   // behind the colon of a constructor
        bool in_bases = false;     // behind that of a class
        std::size_t signature_end = kNone;
        std::size_t members_begin = kNone;
        std::size_t i = begin;
        while (i < end) {
            const Token& token = tokens[i];
            if (!token.significant()) {
                ++i;
            } else if (token.is("template") && tokens.is(tokens.next(i), "<")) {
                i = behind_angles(tokens.next(i), end);
            } else if (token.is(";")) {
                item.range.end = i + 1;
                return finish(item, signature_end == kNone ? i : signature_end);
            } else if (token.is("=") && !initialised && !ends_operator(tokens.previous(i))) {
                initialised = true;
                if (signature_end == kNone) signature_end = i;
                ++i;
            } else if (token.is("__attribute__") || token.is("alignas") || token.is("__declspec")) {
                const std::size_t open = tokens.next(i);
                i = tokens.is(open, "(") ? match_or(open, end) : i + 1;
            } else if (token.is("[")) {
                const bool array = !has_parameters && i > begin && !tokens.is(tokens.next(i), "[") &&
                                   !tokens.is(tokens.previous(i), "operator");
                if (array && signature_end == kNone) signature_end = i;
                i = match_or(i, end);
            } else if (token.is("(")) {
                has_parameters = has_parameters || !in_bases;
                i = match_or(i, end);
            } else if (token.is(":")) {
                const bool qualifier =
                    tokens.is(i + 1 < end ? i + 1 : kNone, ":") || (i > 0 && tokens[i - 1].is(":"));
                in_members = in_members || (has_parameters && !qualifier);
                if (in_members && members_begin == kNone) members_begin = i;
                in_bases = in_bases || (has_class && !has_parameters && !qualifier);
                ++i;
            } else if (token.is("{") && (tokens.match(i) == kNone || tokens.match(i) >= end)) {
                return finish(item, signature_end == kNone ? i : signature_end);  // never closed
            } else if (token.is("{")) {
                const std::size_t behind = match_or(i, end);
                const std::size_t before = tokens.previous(i);
                const bool member = in_members && before != kNone &&
                                    (tokens[before].kind == TokenKind::identifier || tokens[before].is(">"));
                const bool linkage = before != kNone && tokens[before].kind == TokenKind::literal;
                if (!initialised && !has_enum &&
                    (linkage || is_namespace(begin) || (has_class && !has_parameters))) {
                    item.kind = Kind::scope;
                    item.brace = i;
                    if (signature_end == kNone) signature_end = i;
                    if (linkage || is_namespace(begin)) {
                        item.range.end = behind;
                        return finish(item, signature_end);
                    }
                } else if (!initialised && has_parameters && !member && item.kind != Kind::scope) {
                    item.kind = Kind::function;
                    item.brace = i;
                    item.range.end = behind;
                    return finish(item, std::min(i, members_begin));
                } else if (signature_end == kNone && !member) {
                    signature_end = i;
                }
                i = behind;
            } else {
                has_class = has_class || one_of(token.text, kClasses);
                has_enum = has_enum || token.is("enum");
                ++i;
            }
        }
        return finish(item, signature_end == kNone ? end : signature_end);
    }

    // Does token `i` belong to the name of an operator, as the first `=` of `operator==` does?
    bool ends_operator(std::size_t i) const {
        return i != kNone &&
               (tokens[i].is("operator") ||
                (tokens[i].kind == TokenKind::punctuation &&
                 std::string_view("=!<>+-*/%&|^").find(tokens[i].text) != std::string_view::npos));
    }

    bool is_namespace(std::size_t begin) const {
        return tokens[begin].is("namespace") ||
               (tokens[begin].is("inline") && tokens.is(tokens.next(begin), "namespace"));
    }

    Item finish(Item& item, std::size_t signature_end) const {
        const std::size_t head_end = item.brace == kNone ? item.range.end : item.brace;
        for (std::size_t i = item.range.begin; i < head_end; ++i) {
            const Token& token = tokens[i];
            if (token.is("(")) i = match_or(i, head_end) - 1;
            item.host = item.host || token.is("__host__");
            item.global = item.global || token.is("__global__");
            item.device = item.device || token.is("__device__") || token.is("__constant__") ||
                          token.is("__managed__") || token.is("__shared__");
            item.constant = item.constant || token.is("constexpr") || token.is("consteval");
        }
        for (std::size_t i = item.range.begin; i < signature_end; ++i) {
            if (!tokens[i].significant() || one_of(tokens[i].text, kSpecifiers)) continue;
            if (one_of(tokens[i].text, kAttributes) && tokens.is(tokens.next(i), "(")) {
                i = match_or(tokens.next(i), signature_end) - 1;
                continue;
            }
            // Not text(): a renamed constant still matches its counterpart.
            item.signature += std::string(tokens[i].text) + ' ';
            if (tokens[i].is("(")) item.name.clear();
            if (tokens[i].kind == TokenKind::identifier) item.name = tokens[i].text;
        }
        if (tokens[item.range.begin].is("typedef")) item.signature = "typedef " + item.name;
        const bool has_parameters = item.signature.find('(') != std::string::npos;
        if (item.kind != Kind::declaration || has_parameters) item.name.clear();
        item.key = key(item.range);
        return std::move(item);
    }

    std::vector<std::string_view> files_;
};

struct Pair {
    std::size_t host;
    std::size_t device;
};

class Merge {
  public:
    Merge(Pass& host, Pass& device, std::vector<Warning>& warnings)
        : host_(host), device_(device), warnings_(warnings) {}

    std::string run() {
        scope({0, host_.tokens.size()}, {0, device_.tokens.size()}, false);
        return std::move(out_);
    }
    // Names that need a second one; if there are any, the merge is repeated.
    const std::set<std::string>& differing() const { return differing_; }

  private:
    // --- Output: what does not follow on what was written last gets a line marker ----------------

    void write(const Pass& pass, Range range) {
        if (range.begin >= range.end) return;
        if (last_ != &pass || last_end_ != range.begin) out_ += pass.marker(range.begin);
        out_ += pass.source(range);
        last_ = &pass;
        last_end_ = range.end;
    }
    void write(std::string_view text) { out_ += text; }

    // --- Which item of the one pass is which of the other? ---------------------------------------

    // First increasing pairs of equal items that are unique in both, then their equal neighbours,
    // then items of equal signatures.
    static std::vector<Pair> align(const std::vector<Item>& host, const std::vector<Item>& device) {
        std::vector<Pair> all;
        Pair done{0, 0};
        for (Pair anchor : anchors(host, device)) {
            if (anchor.host < done.host || anchor.device < done.device) continue;
            align_between(host, device, done, anchor, all);
            all.push_back(anchor);
            done = {anchor.host + 1, anchor.device + 1};
        }
        align_between(host, device, done, {host.size(), device.size()}, all);
        return all;
    }

    static std::vector<Pair> anchors(const std::vector<Item>& host, const std::vector<Item>& device) {
        struct Places {
            std::size_t hosts = 0, devices = 0, host = 0, device = 0;
        };
        std::unordered_map<std::string_view, Places> places;
        for (std::size_t i = 0; i < host.size(); ++i) {
            Places& at = places[host[i].key];
            ++at.hosts;
            at.host = i;
        }
        for (std::size_t j = 0; j < device.size(); ++j) {
            Places& at = places[device[j].key];
            ++at.devices;
            at.device = j;
        }
        std::vector<Pair> unique;
        for (std::size_t i = 0; i < host.size(); ++i) {
            const Places& at = places[host[i].key];
            if (at.hosts == 1 && at.devices == 1) unique.push_back({i, at.device});
        }
        return longest_increasing(unique);
    }

    static std::vector<Pair> longest_increasing(const std::vector<Pair>& pairs) {
        std::vector<std::size_t> ends;  // of the chain of each length, the one with the smallest end
        std::vector<std::size_t> before(pairs.size(), kNone);
        for (std::size_t i = 0; i < pairs.size(); ++i) {
            const auto at =
                std::lower_bound(ends.begin(), ends.end(), pairs[i].device,
                                 [&](std::size_t e, std::size_t d) { return pairs[e].device < d; });
            if (at != ends.begin()) before[i] = *(at - 1);
            if (at == ends.end()) {
                ends.push_back(i);
            } else {
                *at = i;
            }
        }
        std::vector<Pair> chain;
        for (std::size_t i = ends.empty() ? kNone : ends.back(); i != kNone; i = before[i])
            chain.push_back(pairs[i]);
        std::reverse(chain.begin(), chain.end());
        return chain;
    }

    static void align_between(const std::vector<Item>& host, const std::vector<Item>& device, Pair begin,
                              Pair end, std::vector<Pair>& all) {
        while (begin.host < end.host && begin.device < end.device &&
               host[begin.host].key == device[begin.device].key) {
            all.push_back(begin);
            ++begin.host, ++begin.device;
        }
        std::vector<Pair> tail;
        while (begin.host < end.host && begin.device < end.device &&
               host[end.host - 1].key == device[end.device - 1].key) {
            --end.host, --end.device;
            tail.push_back(end);
        }
        align_by_signature(host, device, begin, end, all);
        all.insert(all.end(), tail.rbegin(), tail.rend());
    }

    // The heaviest common subsequence, or a greedy match where that would take too long.
    static void align_by_signature(const std::vector<Item>& host, const std::vector<Item>& device, Pair begin,
                                   Pair end, std::vector<Pair>& all) {
        constexpr std::size_t kCells = 4'000'000;
        const std::size_t rows = end.host - begin.host;
        const std::size_t columns = end.device - begin.device;
        const auto weight = [&](std::size_t i, std::size_t j) {
            const Item& h = host[begin.host + i];
            const Item& d = device[begin.device + j];
            if (h.key == d.key) return 3;
            return h.kind == d.kind && h.signature == d.signature ? 2 : 0;
        };
        if (rows == 0 || columns == 0) return;
        if (rows * columns > kCells) {
            std::size_t next = 0;
            for (std::size_t i = 0; i < rows; ++i) {
                for (std::size_t j = next; j < columns; ++j) {
                    if (weight(i, j) == 0) continue;
                    all.push_back({begin.host + i, begin.device + j});
                    next = j + 1;
                    break;
                }
            }
            return;
        }
        std::vector<int> best((rows + 1) * (columns + 1), 0);
        const auto at = [&](std::size_t i, std::size_t j) -> int& { return best[i * (columns + 1) + j]; };
        for (std::size_t i = rows; i-- > 0;) {
            for (std::size_t j = columns; j-- > 0;) {
                at(i, j) = std::max(at(i + 1, j), at(i, j + 1));
                if (const int w = weight(i, j); w > 0) at(i, j) = std::max(at(i, j), w + at(i + 1, j + 1));
            }
        }
        for (std::size_t i = 0, j = 0; i < rows && j < columns;) {
            const int w = weight(i, j);
            if (w > 0 && at(i, j) == w + at(i + 1, j + 1)) {
                all.push_back({begin.host + i++, begin.device + j++});
            } else if (at(i, j) == at(i + 1, j)) {
                ++i;
            } else {
                ++j;
            }
        }
    }

    // --- Scopes ----------------------------------------------------------------------------------

    void scope(Range in_host, Range in_device, bool in_class) {
        const std::vector<Item> host = host_.items(in_host);
        const std::vector<Item> device = device_.items(in_device);
        std::size_t cursor = in_host.begin;
        std::size_t next = 0;
        const auto device_only = [&](std::size_t end) {
            for (; next < end; ++next)
                write(device_, device[next].range);
        };
        std::size_t i = 0;
        const auto host_only = [&](std::size_t end) {
            for (; i < end; ++i) {
                write(host_, {cursor, host[i].range.begin});
                cursor = host[i].range.end;
                if (host[i].kind == Kind::function && host[i].for_device() && !host[i].for_host())
                    keep_out_of_device(host[i]);
                else
                    write(host_, host[i].range);
            }
        };
        for (const Pair& pair : align(host, device)) {
            host_only(pair.host);
            write(host_, {cursor, host[pair.host].range.begin});
            device_only(pair.device);
            merge(host[pair.host], device[pair.device], in_class);
            cursor = host[pair.host].range.end;
            i = pair.host + 1;
            next = pair.device + 1;
        }
        host_only(host.size());
        device_only(device.size());
        write(host_, {cursor, in_host.end});
    }

    // A device function that is missing from device code: it cannot be called, but host code may
    // launch the kernel.
    void keep_out_of_device(const Item& item) {
        if (!item.global) return;
        write(host_, item.range);
        warn(host_, item,
             "this kernel exists for the host only: with __CUDA_ARCH__ its definition is left out, and on a "
             "GPU "
             "its launch would fail");
    }

    void merge(const Item& host, const Item& device, bool in_class) {
        if (host.key == device.key) {
            write(host_, host.range);
        } else if (host.kind == Kind::scope && device.kind == Kind::scope) {
            const bool is_class = host.range.end != host_.tokens.match(host.brace) + 1;
            write(host_, {host.range.begin, host.brace + 1});
            scope({host.brace + 1, host_.tokens.match(host.brace)},
                  {device.brace + 1, device_.tokens.match(device.brace)}, is_class);
            write(host_, {host_.tokens.match(host.brace), host.range.end});
        } else if (host.kind == Kind::function && device.kind == Kind::function) {
            merge_functions(host, device);
        } else if (device.device || device.global) {
            write(device_, device.range);
        } else {
            merge_declarations(host, device, in_class);
        }
    }

    void merge_functions(const Item& host, const Item& device) {
        const bool for_host = host.for_host();
        const bool for_device = device.for_device();
        if (for_host && for_device) {
            if (is_functor(host) && uses_thrust(host)) {
                warn(host_, host,
                     "this functor is not the same with and without __CUDA_ARCH__: algorithms of Thrust, "
                     "which run on the host here, call its text without it");
            }
            if (host_.head(host) == device_.head(device)) {
                write(host_, {host.range.begin, host.brace});
            } else {
                write(device_, {device.range.begin, device.brace});
                warn(device_, device,
                     "the template arguments, the parameters, the result or the members' initialisers of "
                     "this function are not the same with and without __CUDA_ARCH__; those with it are "
                     "taken, also for host code");
            }
            both_bodies(host.brace, device.brace, host.constant || device.constant);
        } else if (for_device) {
            write(device_, device.range);
        } else {
            host_function(host, device);
        }
    }

    // The function that calls an object: `operator()(...)`.
    bool is_functor(const Item& item) const {
        for (std::size_t i = item.range.begin; i + 2 < item.brace; ++i) {
            if (host_.tokens[i].is("operator"))
                return host_.tokens[i + 1].is("(") && host_.tokens[i + 2].is(")");
        }
        return false;
    }

    // Is the item from a file that uses Thrust, but not from Thrust itself?
    bool uses_thrust(const Item& item) {
        const std::string file = host_.file(item.range.begin);
        if (file.find("/thrust/") != std::string::npos || file.find("/cub/") != std::string::npos)
            return false;
        if (!has_thrust_) {
            has_thrust_ = false;
            for (std::size_t i = 0; i < host_.tokens.size() && !*has_thrust_; ++i)
                has_thrust_ = host_.tokens[i].is("thrust");
        }
        return *has_thrust_;
    }

    void both_bodies(std::size_t host, std::size_t device, bool is_constexpr) {
        write("{ ");
        write(is_constexpr ? kOnDeviceIfConstexpr : kOnDevice);
        write(device_, {device, device_.tokens.match(device) + 1});
        write(" else ");
        write(host_, {host, host_.tokens.match(host) + 1});
        write("}");
    }

    // The host's text, except for the bodies of its lambdas with `__device__`.
    void host_function(const Item& host, const Item& device) {
        const auto own = host_.device_lambdas(host.range);
        const auto other = device_.device_lambdas(device.range);
        std::size_t cursor = host.range.begin;
        if (own.size() != other.size()) {
            warn(host_, host,
                 "the lambdas with __device__ in this function are not the same with and without "
                 "__CUDA_ARCH__; "
                 "the text without it is taken");
        } else {
            for (std::size_t k = 0; k < own.size(); ++k) {
                const Range body{own[k].body, host_.tokens.match(own[k].body) + 1};
                if (body.begin < cursor) continue;  // in another lambda
                const Range instead{other[k].body, device_.tokens.match(other[k].body) + 1};
                if (host_.key(body) == device_.key(instead)) continue;
                write(host_, {cursor, body.begin});
                if (own[k].host) {
                    both_bodies(body.begin, instead.begin, false);
                } else {
                    write(device_, instead);
                }
                cursor = body.end;
            }
        }
        write(host_, {cursor, host.range.end});
    }

    // A constant or a type: both are kept, and device code uses another name for its own.
    void merge_declarations(const Item& host, const Item& device, bool in_class) {
        const Tokens& tokens = host_.tokens;
        const auto has = [&](std::string_view word) {
            for (std::size_t i = host.range.begin; i < host.range.end; ++i) {
                if (tokens[i].is(word)) return true;
            }
            return false;
        };
        const bool is_type = has("using") || has("typedef");
        const bool can_have_two_names = !host.name.empty() && (is_type || has("const") || has("constexpr")) &&
                                        (!in_class || is_type || has("static"));
        if (can_have_two_names) {
            differing_.insert(host.name);
            write(host_, host.range);
            write(device_, device.range);
            return;
        }
        write(device_, device.range);
        warn(device_, device,
             "this declaration is not the same with and without __CUDA_ARCH__; the one with it is taken, "
             "also for host code");
    }

    void warn(const Pass& pass, const Item& item, const char* message) {
        warnings_.push_back({pass.file(item.range.begin), pass.tokens[item.range.begin].line, message});
    }

    Pass& host_;
    Pass& device_;
    std::vector<Warning>& warnings_;
    std::set<std::string> differing_;
    std::string out_;
    const Pass* last_ = nullptr;
    std::size_t last_end_ = 0;
    // Not determined yet.
    std::optional<bool> has_thrust_;
};

}  // namespace

std::string merge_passes(std::string_view host, std::string_view device, std::vector<Warning>& warnings) {
    if (host == device) return std::string(host);
    Pass host_pass(host);
    Pass device_pass(device);
    if (host_pass.key({0, host_pass.tokens.size()}) == device_pass.key({0, device_pass.tokens.size()}))
        return std::string(host);
    for (;;) {
        std::vector<Warning> found;
        Merge merge(host_pass, device_pass, found);
        std::string merged = merge.run();
        const std::size_t known = device_pass.renamed.size();
        device_pass.renamed.insert(merge.differing().begin(), merge.differing().end());
        if (device_pass.renamed.size() > known) continue;
        warnings.insert(warnings.end(), found.begin(), found.end());
        return merged;
    }
}

}  // namespace translator
