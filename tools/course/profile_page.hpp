// A profile as a page: one file of HTML that needs no network and no script, in the style of the
// page of an inspection.
#pragma once

#include <string>
#include <vector>

#include "inspect_page.hpp"
#include "profile_view.hpp"

namespace course::tool {

// With `comparison`, which has two screens, their differences stand above them. `note` stands
// below: where the counters come from.
std::string profile_page(const PageHead& head, const std::vector<Screen>& screens, bool comparison,
                         const std::string& note);

}  // namespace course::tool
