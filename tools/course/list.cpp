#include <fmt/format.h>

#include <algorithm>

#include "commands.hpp"
#include "days.hpp"
#include "errors.hpp"
#include "styles.hpp"

namespace course::tool {

int list_days(const Checkout& checkout) {
    const Calendar calendar = load_calendar(checkout.calendar());
    std::size_t width = 0;
    for (const Day& day : calendar.days)
        width = std::max(width, day.directory.size());

    fmt::print("{:<{}}  {:<7}  {:<7}  {}\n", "day", width, "status", "chapter", "title");
    for (const Day& day : calendar.days) {
        const std::string status = fmt::format("{:<7}", day.ready ? "ready" : "planned");
        fmt::print("{:<{}}  {}  {:<7}  {}\n", day.directory, width,
                   styled(status, day.ready ? kGood : kQuiet, stdout), day.chapter, day.title);
    }
    fmt::print("\nChapters are those of Programming Massively Parallel Processors, 4th edition.\n");
    const auto first = std::ranges::find(calendar.days, true, &Day::ready);
    if (first != calendar.days.end()) fmt::print("Run one: ./course run {}\n", first->topic);
    return kSuccess;
}

}  // namespace course::tool
