#include "checkout.hpp"

#include <cstdlib>
#include <stdexcept>

namespace course::tool {

Checkout checkout_from_environment() {
    const char* root = std::getenv("COURSE_ROOT");
    const char* build = std::getenv("COURSE_BUILD_DIR");
    if (root == nullptr || build == nullptr) {
        throw std::runtime_error(
            "COURSE_ROOT and COURSE_BUILD_DIR are not set; start this program through ./course");
    }
    return {root, build};
}

}  // namespace course::tool
