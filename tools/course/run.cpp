#include <fmt/format.h>

#include "build.hpp"
#include "commands.hpp"
#include "days.hpp"
#include "styles.hpp"
#include "subprocess.hpp"

namespace course::tool {

int run_day(const Checkout& checkout, const RunOptions& options) {
    const Calendar calendar = load_calendar(checkout.calendar());
    const Day& day = find_day(calendar, options.day);
    build_target(checkout, day.directory);

    Command command = {checkout.program(day.directory)};
    const auto add = [&command](const char* option, const std::string& value) {
        if (!value.empty()) command.insert(command.end(), {option, value});
    };
    add("--size", options.size);
    add("--variant", options.variant);
    add("--json", options.json);
    command.insert(command.end(), options.extra.begin(), options.extra.end());

    fmt::print(stderr, "{}\n", styled("$ " + shell_quoted(command), kQuiet, stderr));
    return run(command);
}

}  // namespace course::tool
