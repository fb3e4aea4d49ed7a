#include <fmt/format.h>

#include <fstream>
#include <iterator>

#include "commands.hpp"
#include "common/bench/report.hpp"
#include "errors.hpp"
#include "tables.hpp"

namespace course::tool {
namespace {

std::string read_text(const std::filesystem::path& file) {
    std::ifstream stream(file, std::ios::binary);
    if (!stream) throw std::runtime_error(fmt::format("cannot read {}", file.string()));
    return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace

int update_tables(const Checkout& checkout, bool check_only) {
    int exit_code = kSuccess;
    for (const auto& readme : find_readmes(checkout.root)) {
        const std::string name = readme.lexically_relative(checkout.root).string();
        try {
            const std::string text = read_text(readme);
            const std::string fresh = with_fresh_tables(text, checkout.measurements());
            if (fresh == text) continue;
            if (check_only) {
                fmt::print(stderr, "{}: its tables are not those of docs/measurements; ./course tables\n",
                           name);
                exit_code = kFailed;
            } else {
                write_file(readme, fresh);
                fmt::print("{}: updated\n", name);
            }
        } catch (const std::runtime_error& error) {
            fmt::print(stderr, "{}: {}\n", name, error.what());
            exit_code = kFailed;
        }
    }
    if (exit_code == kSuccess) fmt::print("Every table is that of docs/measurements.\n");
    return exit_code;
}

}  // namespace course::tool
