#include <fmt/format.h>

#include <algorithm>

#include "commands.hpp"
#include "days.hpp"
#include "errors.hpp"

namespace course::tool {

int list_days(const Checkout& checkout) {
    const Calendar calendar = load_calendar(checkout.calendar());
    std::size_t width = 0;
    for (const Day& day : calendar.days)
        width = std::max(width, day.directory.size());

    fmt::print("{:<{}}  {:<8}  {:<8}  {}\n", "day", width, "4th ed.", "5th ed.", "title");
    for (const Day& day : calendar.days) {
        fmt::print("{:<{}}  {:<8}  {:<8}  {}\n", day.directory, width, day.chapters_4e, day.chapters_5e,
                   day.title);
    }
    fmt::print(
        "\nChapters are those of Programming Massively Parallel Processors, in its 4th and its 5th "
        "edition.\n");
    if (!calendar.days.empty()) fmt::print("Run one: ./course run {}\n", calendar.days.front().topic);
    return kSuccess;
}

}  // namespace course::tool
