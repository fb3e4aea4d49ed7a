#include <vector>

#include "hopper/hopper.hpp"
#include "tensor_cores.hpp"

namespace day40 {

std::span<const Version> versions() {
    static const std::vector<Version> list = hopper_versions();
    return list;
}

}  // namespace day40
