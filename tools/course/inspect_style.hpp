// How an inspection's page looks: its style sheet, and its script.
#pragma once

#include <string_view>

namespace course::tool {

// Every colour is a variable that is set twice, for a light and for a dark page.
extern const std::string_view kPageStyle;
// Convenience only: the page can be read without it.
extern const std::string_view kPageScript;

}  // namespace course::tool
