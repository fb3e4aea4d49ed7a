// The file inspect.html, embedded by the build.
#pragma once

#include <string_view>

namespace course::tool {

extern const std::string_view kInspectHtml;

}  // namespace course::tool
