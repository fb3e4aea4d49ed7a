// The files that the exercises start from. They have the names of the repaired ones, so here their
// namespace has another.
#include <cuda_runtime.h>

#include <algorithm>
#include <cuda/atomic>
#include <vector>

#include "protocols.hpp"

#define day23 day23_broken
#include "broken_protocols/account.cuh"
#include "broken_protocols/chain.cuh"
#include "broken_protocols/last_sum.cuh"
#include "broken_protocols/letters.cuh"
#include "broken_protocols/mailbox.cuh"
#include "broken_protocols/purse.cuh"
#undef day23

namespace day23 {

std::span<const Protocol> broken_protocols() {
    static const std::vector<Protocol> list = [] {
        const ProtocolLauncher launchers[] = {day23_broken::launch_letters, day23_broken::launch_last_sum,
                                              day23_broken::launch_account, day23_broken::launch_chain,
                                              day23_broken::launch_purse,   day23_broken::launch_mailbox};
        std::vector<Protocol> made;
        for (const ProtocolLauncher launch : launchers) {
            made.push_back(protocols()[made.size()]);
            made.back().launch = launch;
        }
        return made;
    }();
    return list;
}

}  // namespace day23
