// The NCCL communicators of a domain. Only for builds with NCCL.
#pragma once

#include <nccl.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "multi_gpu.hpp"

namespace day50 {

inline void check_nccl(ncclResult_t code, const char* call) {
    if (code != ncclSuccess)
        throw std::runtime_error(std::string(call) + " failed: " + ncclGetErrorString(code));
}
#define NCCL_CHECK(...) check_nccl((__VA_ARGS__), #__VA_ARGS__)

// A communicator for each rank, all in this process. They are made before the first group, because
// those made inside one could be used only after its end.
struct Communicators {
    explicit Communicators(Domain& domain) : of_rank(domain.ranks().size()) {
        std::vector<int> devices;
        for (const Rank& rank : domain.ranks())
            devices.push_back(rank.device);
        NCCL_CHECK(ncclCommInitAll(of_rank.data(), static_cast<int>(devices.size()), devices.data()));
    }
    ~Communicators() {
        for (const ncclComm_t communicator : of_rank)
            static_cast<void>(ncclCommDestroy(communicator));
    }
    std::vector<ncclComm_t> of_rank;
};
inline const std::vector<ncclComm_t>& communicators(Domain& domain) {
    if (!domain.communicators) domain.communicators = std::make_shared<Communicators>(domain);
    return std::static_pointer_cast<Communicators>(domain.communicators)->of_rank;
}

}  // namespace day50
