// The list of protocols, and what they compute.
#include <algorithm>
#include <array>
#include <numeric>

#include "account.cuh"
#include "chain.cuh"
#include "last_sum.cuh"
#include "letters.cuh"
#include "mailbox.cuh"
#include "protocols.hpp"
#include "purse.cuh"

namespace day23 {
namespace {

using Ints = std::vector<int>;

Ints doubled(const Ints& in) {
    Ints out(in);
    for (int& value : out)
        value *= 2;
    return out;
}

Ints totals(const Ints& in) {
    return Ints(in.size(), std::accumulate(in.begin(), in.end(), 0));
}

// Each element becomes `value` of those of its block of 64.
template <class Value>
Ints of_blocks(const Ints& in, Value value) {
    Ints out(in.size());
    for (std::size_t first = 0; first < in.size(); first += 64) {
        const auto begin = in.begin() + static_cast<std::ptrdiff_t>(first);
        const auto length = static_cast<std::ptrdiff_t>(std::min<std::size_t>(64, in.size() - first));
        std::fill_n(out.begin() + static_cast<std::ptrdiff_t>(first), length, value(begin, begin + length));
    }
    return out;
}

Ints paid_in(const Ints& in) {
    return of_blocks(in, [](auto first, auto last) { return std::accumulate(first, last, 0); });
}

Ints put_in(const Ints& in) {
    return of_blocks(in, [](auto first, auto last) {
        return static_cast<int>(std::count_if(first, last, [](int value) { return value > 0; }));
    });
}

Ints running_sums(const Ints& in) {
    Ints out(in.size());
    std::partial_sum(in.begin(), in.end(), out.begin());
    return out;
}

Ints one_more(const Ints& in) {
    Ints out(in);
    for (int& value : out)
        ++value;
    return out;
}

}  // namespace

std::span<const Protocol> protocols() {
    static const std::array<Protocol, 6> list = {{{"letters", launch_letters, doubled},
                                                  {"last_sum", launch_last_sum, totals},
                                                  {"account", launch_account, paid_in, 1},
                                                  {"chain", launch_chain, running_sums},
                                                  {"purse", launch_purse, put_in, 2},
                                                  {"mailbox", launch_mailbox, one_more}}};
    return list;
}

}  // namespace day23
