#include "translate.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "parts.hpp"

namespace translator {
namespace {

const std::string kMayPoll = "cuda_on_cpu_kernel_.may_poll(); ";

// It is unknown which kernel calls a function with a polling loop. If a file has such a loop, all
// its kernels count as polling.
std::string with_marks(const std::string& text) {
    // The last four are loads of inline PTX.
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

bool is_marked_atomic(std::string_view word) {
    static constexpr std::array<std::string_view, 8> kNames = {"atomicAdd", "atomicSub", "atomicMin",
                                                               "atomicMax", "atomicAnd", "atomicOr",
                                                               "atomicXor", "atomicExch"};
    for (const std::string_view scope : {"_block", "_system"}) {
        if (word.ends_with(scope)) word.remove_suffix(scope.size());
    }
    return one_of(word, kNames);
}

bool computes_only(std::string_view function) {
    static constexpr std::array<std::string_view, 24> kNames = {
        "min",   "max",    "abs",  "fabsf",    "fabs",   "fminf",  "fmaxf",  "int",
        "float", "exp",    "expf", "unsigned", "double", "sqrt",   "sqrtf",  "__float2int_rn",
        "floor", "floorf", "pow",  "powf",     "__popc", "sizeof", "__expf", "__float_as_int"};
    return one_of(function, kNames);
}

bool is_removed_property(std::string_view word) {
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

bool takes_kernel(std::string_view word) {
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

class Translation : Rewriter {
  public:
    Translation(File& file, Dialect dialect, SharedArrays shared_arrays, DeviceVariables device_variables,
                ThreadLoops loops)
        : Rewriter(file),
          dialect_(dialect),
          loops_(loops),
          asm_statements_(file),
          device_declarations_(file, device_variables, shared_arrays),
          host_functions_(file),
          host_names_(file),
          kernels_(file),
          launches_(file),
          loose_names_(file),
          pointer_casts_(file, shared_arrays),
          regions_(file, dialect),
          rows_(file, dialect),
          shared_variables_(file, shared_arrays),
          shifts_(file),
          unset_variables_(file),
          waiting_loops_(file),
          warp_synchronous_code_(file) {}

    std::string run();

  private:
    void translate_word(std::size_t i);
    void mark_unused_result(std::size_t name);
    void tell_of_allocation(std::size_t i);
    bool allocates_in_device_code(std::size_t i);
    bool has_own_new();
    void replace_function(std::size_t i, const std::string& text);
    void allocate_from_heap(std::size_t i);
    void give_back_to_heap(std::size_t i);
    bool declares_own_texture() const;
    void translate_texture_reference(std::size_t word);
    void tell_of_removed_property(std::size_t i);
    void return_from_main(std::size_t name);
    bool in_lambda(std::size_t i, std::size_t function) const;
    void translate_unroll(std::size_t i);
    void remove_casts_of_kernels(std::size_t function);

    Dialect dialect_;
    ThreadLoops loops_;
    std::optional<bool> own_texture_;
    std::optional<bool> own_new_;
    AsmStatements asm_statements_;
    DeviceDeclarations device_declarations_;
    HostFunctions host_functions_;
    HostNames host_names_;
    Kernels kernels_;
    Launches launches_;
    LooseNames loose_names_;
    PointerCasts pointer_casts_;
    Regions regions_;
    Rows rows_;
    SharedVariables shared_variables_;
    Shifts shifts_;
    UnsetVariables unset_variables_;
    WaitingLoops waiting_loops_;
    WarpSynchronousCode warp_synchronous_code_;
};

std::string Translation::run() {
    waiting_loops_.find_volatile_names();
    warp_synchronous_code_.find_warp_synchronous_code(waiting_loops_.volatile_names());
    std::vector<std::size_t> launches;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
        const Token& token = tokens_[i];
        if (token.kind == TokenKind::directive) {
            if (token.text.find("unroll") != std::string_view::npos) translate_unroll(i);
        } else if (token.kind == TokenKind::identifier) {
            translate_word(i);
            if (tokens_.is(tokens_.next(i), "<")) loose_names_.add_template_keyword(i);
            loose_names_.qualify_own_type(i);
            host_names_.replace_function(i);
        } else if (token.is("<") && launches_.is_launch_bracket(i, "<") &&
                   !tokens_.is(tokens_.previous(i), "operator")) {
            launches.push_back(i);
        } else if ((token.is("<") || token.is(">")) && i < device_code_end_ &&
                   tokens_.is_run(i, token.text, 2)) {
            shifts_.translate_shift(i);
        } else if (token.is("(") && i < device_code_end_) {
            pointer_casts_.translate_cast(i);
        }
    }
    shared_variables_.declare_global_shared();
    device_declarations_.place_in_gaps();
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
        if (is_asm(tokens_[i])) asm_statements_.translate_asm(i);
    }
    // A configuration is moved in front of its kernel when all in it is translated, also a launch
    // in a lambda.
    for (auto open = launches.rbegin(); open != launches.rend(); ++open)
        launches_.translate_launch(*open);
    if (loops_ == ThreadLoops::on) {
        for (const KernelBody& kernel : kernels_.bodies()) {
            rows_.translate_kernel(kernel);
            regions_.translate_kernel(kernel);
        }
    }
    std::string result;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
        result += text_[i];
        result += after_[i];
    }
    return with_marks(result);
}

void Translation::translate_word(std::size_t i) {
    const Token& word = tokens_[i];
    if (i < device_code_end_) unset_variables_.look_at_declaration(i);
    if (word.is("__device__") || word.is("__constant__") || word.is("__managed__")) {
        device_declarations_.translate_device(i);
    } else if (word.is("__host__") || word.is("__grid_constant__")) {
        erase(i);
    } else if (word.is("__global__")) {
        kernels_.translate_kernel(i);
    } else if (word.is("__shared__")) {
        shared_variables_.translate_shared(i);
    } else if (word.is("__launch_bounds__") || word.is("__cluster_dims__") || word.is("__maxnreg__")) {
        erase(i);
        if (const std::size_t open = tokens_.next(i); tokens_.is(open, "(")) erase({open, closing(open) + 1});
    } else if (word.is("__noinline__")) {
        // Inside __attribute__((...)) the word is an attribute of the compiler.
        if (!tokens_.is(tokens_.previous(i), "(") && !tokens_.is(tokens_.previous(i), ",")) {
            text_[i] = "__attribute__((noinline))";
        }
    } else if (word.is("while") || word.is("for")) {
        if (!waiting_loops_.translate_empty_loop(i)) waiting_loops_.translate_waiting_loop(i);
    } else if (word.is("goto")) {
        waiting_loops_.translate_goto(i);
    } else if (is_removed_property(word.text)) {
        tell_of_removed_property(i);
    } else if (word.is("texture")) {
        translate_texture_reference(i);
    } else if (word.is("main")) {
        return_from_main(i);
    } else if (takes_kernel(word.text)) {
        remove_casts_of_kernels(i);
    } else if (is_marked_atomic(word.text)) {
        mark_unused_result(i);
    } else if ((word.is("new") || word.is("malloc")) && i < device_code_end_) {
        tell_of_allocation(i);
        allocate_from_heap(i);
    } else if ((word.is("delete") || word.is("free")) && i < device_code_end_) {
        give_back_to_heap(i);
    } else if ((word.is("reinterpret_cast") || word.is("static_cast")) && i < device_code_end_) {
        pointer_casts_.translate_named_cast(i);
    } else if (kernels_.is_kernel(word.text)) {
        launches_.require_configuration(i);
    } else if (device_declarations_.is_variable(word.text)) {
        host_names_.replace_variable(i);
        device_declarations_.tell_of_device_variable(i);
    } else if (i < device_code_end_ && tokens_.is(tokens_.next(i), "(")) {
        host_functions_.tell_of_host_function(i);
    }
}

// The result of `atomicAdd(p, x);` does not depend on the order of threads, unlike that of
// `i = atomicAdd(p, x);`. `atomicExch(p, x);` does not read.
void Translation::mark_unused_result(std::size_t name) {
    const std::size_t open = tokens_.next(name);
    if (!tokens_.is(open, "(")) return;
    const std::size_t close = closing(open);
    if (!tokens_.is(tokens_.next(close), ";") || !begins_statement(name)) return;
    // A function in the arguments might call an atomic function or let other threads run.
    for (std::size_t i = open + 1; i < close; ++i) {
        if (tokens_[i].kind == TokenKind::identifier && tokens_.is(tokens_.next(i), "(") &&
            !computes_only(tokens_[i].text))
            return;
    }
    text_[name].insert(0, "::cuda_on_cpu::result_unused = true, ");
    after_[close] += ", ::cuda_on_cpu::result_unused = false";
}

// Which thread gets which address may depend on the order of threads (order_check.hpp).
void Translation::tell_of_allocation(std::size_t i) {
    static const std::string kMayShow = " ::cuda_on_cpu::order_may_show = true;";
    const std::size_t body = outermost_function(i);
    if (body == kNone || after_[body].ends_with(kMayShow)) return;
    for (std::size_t p = declaration_begin(body); p < body; ++p)
        if (tokens_[p].is("constexpr")) return;
    after_[body] += kMayShow;
}

// Constant expressions know no heap.
bool Translation::allocates_in_device_code(std::size_t i) {
    const std::size_t body = outermost_function(i);
    if (body == kNone || is_member(i) || tokens_.is(tokens_.previous(i), "operator")) return false;
    for (std::size_t p = declaration_begin(body); p < body; ++p)
        if (tokens_[p].is("constexpr")) return false;
    return !(tokens_[i].is("malloc") || tokens_[i].is("free")) || tokens_.is(tokens_.next(i), "(");
}

// Does a class of the file have an operator of its own? It keeps it.
bool Translation::has_own_new() {
    if (!own_new_) {
        own_new_ = false;
        for (std::size_t p = 0; p < tokens_.size(); ++p)
            if (tokens_[p].is("operator") &&
                (tokens_.is(tokens_.next(p), "new") || tokens_.is(tokens_.next(p), "delete")) &&
                !is_namespace(tokens_.enclosing_brace(p)))
                own_new_ = true;
    }
    return *own_new_;
}

// Replaces `f`, `::f` and `std::f`.
void Translation::replace_function(std::size_t i, const std::string& text) {
    const std::size_t colon = tokens_.previous(i);
    if (tokens_.is(colon, ":") && tokens_.is(tokens_.previous(colon), ":")) {
        const std::size_t first = tokens_.previous(colon);
        const std::size_t scope = tokens_.previous(first);
        const bool is_std = tokens_.is(scope, "std");
        if (scope != kNone && tokens_[scope].kind == TokenKind::identifier && !is_std &&
            !tokens_[scope].is("return"))
            return;
        erase({is_std ? scope : first, i});
    }
    text_[i] = text;
}

// `malloc(n)` and `new T`, but not `new (place) T`.
void Translation::allocate_from_heap(std::size_t i) {
    if (!allocates_in_device_code(i)) return;
    const std::size_t before = tokens_.previous(i);
    const std::size_t open = tokens_.next(i);
    // `new (std::nothrow) T`; with another argument it is given its memory.
    const bool has_argument = tokens_.is(open, "(");
    if (tokens_[i].is("malloc")) {
        replace_function(i, "::cuda_on_cpu::heap_malloc");
        return;
    }
    if (has_argument && !tokens_.is(tokens_.previous(closing(open)), "nothrow")) return;
    if (!has_own_new()) {
        replace_function(i, "::new (::cuda_on_cpu::OnHeap())");
        if (has_argument) erase({open, closing(open) + 1});
    } else if (!tokens_.is(before, "*") && !tokens_.is(before, ")") &&
               !(tokens_.is(before, ":") && tokens_.is(tokens_.previous(before), ":"))) {
        text_[i] = "::cuda_on_cpu::OwnNew() ->* new";
    }
}

void Translation::give_back_to_heap(std::size_t i) {
    if (!allocates_in_device_code(i)) return;
    if (tokens_[i].is("free")) {
        replace_function(i, "::cuda_on_cpu::heap_free");
        return;
    }
    if (has_own_new()) return;
    std::size_t first = tokens_.next(i);
    std::size_t word = i;
    if (tokens_.is(first, "[")) {
        word = closing(first);
        first = tokens_.next(word);
    }
    if (tokens_.is(first, ";")) return;  // `= delete;`
    std::size_t end = first;
    while (!tokens_.is(end, ";") && !tokens_.is(end, ",") && !tokens_.is(end, ")"))
        end = tokens_.next(tokens_.is(end, "(") || tokens_.is(end, "[") || tokens_.is(end, "{") ? closing(end)
                                                                                                : end);
    after_[word] += " ::cuda_on_cpu::leaving_heap(";
    after_[tokens_.previous(end)] += ")";
}

// Programs may have their own class or alias with the name `texture`.
bool Translation::declares_own_texture() const {
    static constexpr std::array<std::string_view, 6> kTypes = {"struct", "class",    "union",
                                                               "using",  "typename", "enum"};
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
        if (!tokens_[i].is("texture")) continue;
        const std::size_t before = tokens_.previous(i);
        if (before != kNone && one_of(tokens_[before].text, kTypes)) return true;
    }
    return false;
}

// `texture<float, 2, cudaReadModeElementType> name;` at file scope, which is a variable of this
// file, and other uses of the type.
void Translation::translate_texture_reference(std::size_t word) {
    const std::size_t open = tokens_.next(word);
    if (!tokens_.is(open, "<") || is_member(word)) return;
    std::size_t begin = word;  // `::texture`, and not `other::texture`
    if (const std::size_t colon = tokens_.previous(word); tokens_.is(colon, ":")) {
        begin = tokens_.previous(colon);
        const std::size_t scope = tokens_.previous(begin);
        if (scope != kNone && tokens_[scope].kind == TokenKind::identifier &&
            !one_of(tokens_[scope].text, std::array<std::string_view, 3>{"static", "const", "extern"}))
            return;
    }
    // Of a type: `texture < a && b > c` compares.
    static constexpr std::array<std::string_view, 6> kInArguments = {"<", ">", ",", ":", "::", "*"};
    std::size_t close = open;
    for (int depth = 1; depth > 0;) {
        close = tokens_.next(close);
        if (close == kNone || close >= tokens_.size()) return;
        const Token& token = tokens_[close];
        if (token.kind == TokenKind::punctuation && !one_of(token.text, kInArguments)) return;
        depth += tokens_[close].is("<") ? 1 : tokens_[close].is(">") ? -1 : 0;
    }
    if (!own_texture_) own_texture_ = declares_own_texture();
    if (*own_texture_) return;
    text_[word] = begin == word ? "::cuda_on_cpu::TextureReference" : "cuda_on_cpu::TextureReference";
    if (told_of_.insert(tokens_[word].text).second) {
        warn(word,
             "texture references were removed in CUDA 12: make a cudaTextureObject_t with "
             "cudaCreateTextureObject(), pass it to the kernel and read it with tex2D<float>(object, x, y)");
    }
    const std::size_t name = tokens_.next(close);
    if (name == kNone || tokens_[name].kind != TokenKind::identifier ||
        !is_namespace(tokens_.enclosing_brace(word)))
        return;
    const std::size_t first = declaration_begin(word);
    bool is_static = false;
    for (std::size_t p = first; p < begin; ++p) {
        if (!tokens_[p].significant()) continue;
        if (tokens_[p].is("extern") || tokens_[p].is("template") || tokens_[p].is("typedef") ||
            tokens_[p].is("using") || tokens_[p].is("("))
            return;
        is_static = is_static || tokens_[p].is("static");
    }
    const std::size_t end = end_of_statement(name);
    if (end == kNone || end >= tokens_.size() || !tokens_[end].is(";")) return;
    std::string names;
    for (const Range& declarator : split({name, end})) {
        const std::size_t one = next_in(declarator);
        if (one == kNone || tokens_[one].kind != TokenKind::identifier) return;
        const std::string text(tokens_[one].text);
        names += " static const ::cuda_on_cpu::NameOfTexture cuda_on_cpu_name_of_" + text + "(" + text +
                 ", \"" + text + "\");";
    }
    if (tokens_.is(tokens_.next(name), "(")) {
        // A function that returns a reference, or arguments of the constructor?
        const std::size_t after = tokens_.next(closing(tokens_.next(name)));
        if (!tokens_.is(after, ";") && !tokens_.is(after, ",")) return;
    }
    if (!is_static) text_[begin].insert(0, "static ");
    after_[end] += names;
}

void Translation::tell_of_removed_property(std::size_t i) {
    if (!is_member(i) || !told_of_.insert(tokens_[i].text).second) return;
    const std::string instead =
        tokens_[i].is("deviceOverlap") ? "asyncEngineCount" : "cudaDeviceGetAttribute or NVML";
    warn(i, "'" + std::string(tokens_[i].text) + "': cudaDeviceProp has no such field in CUDA 13; use " +
                instead);
}

// nvcc gives a warning, g++ an error.
void Translation::return_from_main(std::size_t name) {
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

bool Translation::in_lambda(std::size_t i, std::size_t function) const {
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

void Translation::translate_unroll(std::size_t i) {
    if (dialect_ == Dialect::clang) return;  // clang has the pragma itself
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
    // g++ accepts only a literal number. Without unrolling, accumulators live in memory, because a
    // barrier in the outer loop spills all registers. Up to 8 steps: with 32, nested loops took
    // four times as long to compile and ran hardly faster.
    const std::string_view factor = take_word();
    const bool is_small = factor.size() == 1 && factor <= "8" && factor >= "0";
    text_[i] = "#pragma GCC unroll " + std::string(is_small ? factor : "8") + line_ends(tokens_[i].text);
}

// `(const void*)kernel` and `reinterpret_cast<void*>(kernel)` would hide the kernel's type.
void Translation::remove_casts_of_kernels(std::size_t function) {
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

}  // namespace

std::string translate(std::string_view preprocessed, Dialect dialect, SharedArrays shared_arrays,
                      DeviceVariables device_variables, std::vector<Warning>* warnings, ThreadLoops loops) {
    File file(preprocessed, warnings);
    return Translation(file, dialect, shared_arrays, device_variables, loops).run();
}

}  // namespace translator
