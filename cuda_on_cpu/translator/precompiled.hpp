// Headers that nearly every .cu file reads, compiled once for all files with the same options.
#pragma once

#include <string>
#include <vector>

namespace translator {

struct PrecompiledHeaders {
    std::vector<std::string> options;  // with which g++'s preprocessor takes them
    std::string files;                 // what they were made of, as a rule of make names it
};

// Of `directory`, where they are made if they are missing or out of date. `command`: the compiler
// and its options, less what concerns one file. Nothing where that fails: then headers are read as
// ever.
PrecompiledHeaders precompiled_headers(const std::string& directory, const std::vector<std::string>& command);

// The directory, made if there is none, if no other user can write to it: headers of another would
// be compiled into this user's programs. Else "".
std::string private_directory(const std::string& directory);

}  // namespace translator
