// Where Hopper's instructions are not modelled.
#include "hopper.hpp"

namespace day40 {

std::vector<Version> hopper_versions() {
    return {};
}

}  // namespace day40
