// What an answer must not do to the program that judges it, as the names in its object files show.
// A test and the code that it tests are one process, so this cannot find everything: SECURITY.md.
#pragma once

#include <string>
#include <string_view>

#include "checkout.hpp"
#include "workbook.hpp"

namespace course::tool {

// The output of `nm -A -g` of the learner's object files and of the archives that they are linked
// with, and that of `readelf -SW` of the learner's. An object of the archives with the same file
// name as one of the learner's is the lesson's. Returns a line for each reason to refuse the
// answer.
std::string tampering_in(std::string_view mine, std::string_view archives, std::string_view sections);

// The same of a target, which is built.
std::string tampering_of(const Chapter& chapter, const Checkout& build, const std::string& target);

}  // namespace course::tool
