// Headers that nearly every .cu file includes, compiled once for all files with the same options.
#pragma once

#include <string>
#include <vector>

namespace translator {

struct PrecompiledHeaders {
    // The options with which g++'s preprocessor uses them.
    std::vector<std::string> options;
    // The files that they were compiled from, as listed in a rule of make.
    std::string files;
};

// The headers in `directory`, which are compiled if they are missing or out of date. `command` is
// the compiler and its options, without those of a single file. `own_source`: the file, if it is to
// get no standard header that it does not include; otherwise "". Returns nothing if this fails: the
// headers are then read as usual.
PrecompiledHeaders precompiled_headers(const std::string& directory, const std::vector<std::string>& command,
                                       const std::string& own_source = "");

// Returns the directory, created if necessary, if no other user can write to it: another user's
// headers would be compiled into this user's programs. Otherwise returns "".
std::string private_directory(const std::string& directory);

}  // namespace translator
