// The file inspect.html, from the time of the build.
#pragma once

#include <string_view>

namespace course::tool {

extern const std::string_view kInspectHtml;

}  // namespace course::tool
