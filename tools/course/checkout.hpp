// The directories of the course. The ./course script passes them in two environment variables.
#pragma once

#include <filesystem>
#include <string>

namespace course::tool {

struct Checkout {
    std::filesystem::path root;   // COURSE_ROOT: the checkout
    std::filesystem::path build;  // COURSE_BUILD_DIR: build/cpu, build/gpu...

    std::filesystem::path program(const std::string& name) const { return build / "bin" / name; }
    std::filesystem::path calendar() const { return build / "days.json"; }
    std::filesystem::path measurements() const { return root / "docs" / "measurements"; }
};

// Throws std::runtime_error if the variables are not set.
Checkout checkout_from_environment();

}  // namespace course::tool
