#include "parts.hpp"

namespace translator {

// `s[t] += s[t + 16]; s[t] += s[t + 8];` on volatile memory: each lane loads what another lane
// stored in the previous statement. Before Volta the lanes of a warp executed each statement in
// lockstep; since then a __syncwarp() is needed in between.
void WarpSynchronousCode::find_warp_synchronous_code(const std::vector<VolatileName>& volatile_names) {
    for (const VolatileName& name : volatile_names) {
        if (name.function != kNone && name.text.data() != nullptr) look_at_stores(name, Means::is_volatile);
    }
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
        if (!tokens_[i].is("__shared__") || !in_function(i)) continue;
        const Range declaration{declaration_begin(i), end_of_statement(i)};
        const std::size_t name = declared_name(declaration);
        if (name == kNone || is_volatile(declaration)) continue;
        look_at_stores({tokens_[name].text, outermost_function(i)}, Means::fences);
    }
}

bool WarpSynchronousCode::is_volatile(Range declaration) const {
    for (std::size_t i = declaration.begin; i < declaration.end; ++i)
        if (tokens_[i].is("volatile")) return true;
    return false;
}

// Of memory that is not volatile, a fence between the steps shows what is meant, and keeps the
// compiler from holding values in registers.
void WarpSynchronousCode::look_at_stores(const VolatileName& name, Means means) {
    std::vector<Store> stores;
    std::size_t found = kNone;
    bool stored = false, fenced = means == Means::is_volatile;  // since the last synchronisation
    const std::size_t function_end = closing(name.function);
    for (std::size_t i = name.function; i < function_end; ++i) {
        if (tokens_[i].kind != TokenKind::identifier) continue;
        const std::string_view word = tokens_[i].text;
        if (word.find("sync") != std::string_view::npos ||
            (means == Means::fences && word.find("wait") != std::string_view::npos))
            stored = fenced = false;
        if (stored && word.starts_with("__threadfence")) fenced = true;
        if (means == Means::is_volatile) fenced = true;
        if (!tokens_[i].is(name.text)) continue;
        const Store store = store_at(i);
        if (store.end == kNone) continue;
        const bool repeats = means == Means::is_volatile && repeats_without_sync(store, name.function);
        if (store.exchanges && ((stored && fenced) || repeats) && found == kNone) found = i;
        stored = true;
        stores.push_back(store);
    }
    if (found == kNone && means == Means::fences) {
        means = Means::nothing;
        found = lane_exchanges_.find(name.text, name.function);
    }
    if (found != kNone) name_and_run_in_step(found, name.text, means, stores);
}

void WarpSynchronousCode::name_and_run_in_step(std::size_t exchange, std::string_view name, Means means,
                                               const std::vector<Store>& stores) {
    warn(exchange,
         std::string("lanes of a warp exchange values through the ") +
             (means == Means::is_volatile ? "volatile '" : "shared '") + std::string(name) + "'" +
             (means == Means::fences ? ", with fences but" : "") +
             " without __syncwarp() in between: undefined since Volta, and wrong here. Put "
             "__syncwarp() behind each step" +
             (means == Means::nothing ? " (__syncthreads() for several warps), or if one warp is meant,"
                                      : ", or") +
             " run the program with CUDA_ON_CPU_LOCKSTEP=1");
    for (const Store& store : stores)
        store_in_step(store);
}

// The store whose statement starts at `i`; its end is kNone if the statement is no store.
WarpSynchronousCode::Store WarpSynchronousCode::store_at(std::size_t i) const {
    Store store{i, kNone, kNone, false};
    const std::size_t open = tokens_.next(i);
    const std::size_t before = tokens_.previous(i);
    const bool begins = tokens_.is(before, ";") || tokens_.is(before, "{") || tokens_.is(before, "}") ||
                        tokens_.is(before, ")") || tokens_.is(before, "else");
    if (!begins || !tokens_.is(open, "[")) return store;
    std::size_t assignment = tokens_.next(closing(open));
    while (assignment < tokens_.size() && !tokens_[assignment].is("=") &&
           tokens_[assignment].kind == TokenKind::punctuation && !tokens_[assignment].is("[") &&
           !tokens_[assignment].is(";"))
        assignment = assignment + 1;
    if (assignment >= tokens_.size() || !is_assignment(assignment)) return store;
    for (std::size_t p = open; p < closing(open); ++p) {
        if (tokens_[p].is("=") || tokens_.is_run(p, "+", 2) || tokens_.is_run(p, "-", 2)) return store;
    }
    const std::size_t end = end_of_statement(assignment);
    if (end == tokens_.size()) return store;  // a text that ends in the statement
    store.assignment = assignment;
    store.end = end;
    const std::string index = flat({open, closing(open)});
    for (std::size_t p = assignment; p < store.end; ++p) {
        const std::size_t other = tokens_.next(p);
        if (tokens_[p].is(tokens_[i].text) && tokens_.is(other, "[") &&
            flat({other, closing(other)}) != index)
            store.exchanges = true;
    }
    return store;
}

// Is the store in a loop without synchronisation?
bool WarpSynchronousCode::repeats_without_sync(const Store& store, std::size_t function) const {
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

void WarpSynchronousCode::store_in_step(const Store& store) {
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

}  // namespace translator
