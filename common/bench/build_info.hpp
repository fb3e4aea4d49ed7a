// What this program was built from, and how.
#pragma once

#include <string>

namespace course {

// Environment variable COURSE_COMMIT, or else the commit at build time: "1a2b3c4d5e6f", with
// "-dirty" when files had changed; "unknown" outside a git checkout.
std::string commit();

// The compiler of the kernels: "nvcc 13.0.88" or "GNU 12.2.0".
std::string compiler();

// False when asserts are enabled. Such a build is not fully optimised either, so its times are
// meaningless.
bool is_release_build();

}  // namespace course
