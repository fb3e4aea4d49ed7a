// Translates GoogleTest's phrases to the words of a lesson: "sum is 3; expected 4". All knowledge
// about these phrases is in this file.
#pragma once

#include <string>

namespace course::tool {

// `message` comes from one EXPECT or ASSERT, or from an exception. Text that the author of the
// test has added is kept; the frame around it is removed.
std::string in_plain_words(const std::string& message);

}  // namespace course::tool
