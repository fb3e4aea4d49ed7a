#include "linked_names.hpp"

#include <cxxabi.h>
#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <regex>
#include <set>

#include "subprocess.hpp"
#include "text_file.hpp"

namespace course::tool {
namespace {

struct Symbol {
    std::string object;  // "vector_add.cu.o", without directory and archive
    char type = ' ';     // as nm prints it: U undefined, W and V weak, other capitals strong
    std::string name;

    bool is_defined() const { return type != 'U' && type != 'w' && type != 'v'; }
    bool is_strong() const { return is_defined() && type != 'W' && type != 'V' && type != 'u'; }
};

// Lines such as "a/liba.a:b.cu.o:0000000000000000 T main" and "a/b.cu.o:                 U write".
template <class Take>
void for_each_symbol(std::string_view nm, Take take) {
    while (!nm.empty()) {
        const std::string_view line = next_line(nm);
        const auto colon = line.rfind(':');
        const auto blank = line.rfind(' ');
        if (colon == line.npos || blank == line.npos || blank < colon + 2) continue;
        const std::string_view file = line.substr(0, colon);
        take(Symbol{std::string(file.substr(file.find_last_of("/:") + 1)), line[blank - 1],
                    std::string(line.substr(blank + 1))});
    }
}

std::string readable(const std::string& name) {
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> text(
        abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
    return status == 0 ? text.get() : name;
}

// What no answer to an exercise needs, unless the lesson calls it, too. With it an answer can learn
// that a test captures its work, or work behind the test's back. It can start or become another
// program, keep results in files, and change the program or its environment.
bool is_not_for_answers(const std::string& name) {
    static const std::regex kNames(
        "cudaStream(IsCapturing|GetCaptureInfo.*)|cudaLaunchHostFunc.*|cudaStreamAddCallback"
        "|pthread_create|_ZNSt6thread15_M_start_thread.*|v?fork|clone|exec[lv]p?e?|fexecve|posix_spawnp?"
        "|system|popen|f?open(at|dir)?(64)?|creat(64)?|_ZNSt1[34]basic_(filebuf|[io]fstream|fstream).*"
        "|dlopen|dlm?sym|dlvsym|dl_iterate_phdr|mmap(64)?|mprotect|ptrace|process_vm_.*|syscall"
        "|setenv|putenv|_*environ|quick_exit|_[eE]xit|shm_open|memfd_create");
    return std::regex_match(name, kNames);
}

// A definition of these takes the place of the C or C++ library's in the whole program.
bool is_of_a_library(const Symbol& symbol) {
    // C functions, such as write(): a variable outside of all namespaces has such a name, too.
    if (!symbol.name.starts_with("_Z")) return symbol.type == 'T' || symbol.type == 'W' || symbol.type == 'i';
    static const std::regex kNew("_Z(n[wa]|d[la])[A-Za-z].*");
    static const std::regex kLibraries("_ZN?K?(St|7testing|10__cxxabiv1).*");
    return std::regex_match(symbol.name, kNew) ||
           (symbol.is_strong() && std::regex_match(symbol.name, kLibraries));
}

}  // namespace

std::string tampering_in(std::string_view mine, std::string_view archives, std::string_view sections) {
    std::set<std::string> own_objects;
    for_each_symbol(mine, [&](const Symbol& symbol) { own_objects.insert(symbol.object); });
    std::set<std::string> lessons_objects, lesson_names, lesson_defines, of_reference;
    std::map<std::string, bool> elsewhere;  // is it strong?
    for_each_symbol(archives, [&](const Symbol& symbol) {
        if (own_objects.contains(symbol.object)) {
            lesson_names.insert(symbol.name);
            if (symbol.is_defined()) lesson_defines.insert(symbol.name);
            lessons_objects.insert(symbol.object);
        } else if (symbol.is_defined()) {
            elsewhere[symbol.name] |= symbol.is_strong();
            if (symbol.object.ends_with("_reference.cpp.o")) of_reference.insert(symbol.name);
        }
    });
    std::set<std::string> found;
    for_each_symbol(mine, [&](const Symbol& symbol) {
        // A whole program has no lesson's object beside it: it has a main() and may read files.
        const bool is_program = !lessons_objects.contains(symbol.object);
        const std::set<std::string>& as_lesson = symbol.is_defined() ? lesson_defines : lesson_names;
        if (as_lesson.contains(symbol.name) || (is_program && symbol.name == "main")) return;
        const auto other = elsewhere.find(symbol.name);
        if (!symbol.is_defined()) {
            if (!is_program && is_not_for_answers(symbol.name))
                found.insert(fmt::format("calls {}", readable(symbol.name)));
            if (of_reference.contains(symbol.name) && elsewhere[symbol.name])
                found.insert(fmt::format("calls the reference, {}", readable(symbol.name)));
        } else if (is_of_a_library(symbol) ||
                   (other != elsewhere.end() && (symbol.is_strong() || other->second))) {
            found.insert(fmt::format("defines {}, which the tests have already", readable(symbol.name)));
        }
    });
    while (!sections.empty()) {
        const std::string_view line = next_line(sections);
        if (line.find(" .preinit_array ") != line.npos)
            found.insert("has code that runs before the tests are ready (.preinit_array)");
    }
    std::string text;
    for (const std::string& reason : found)
        text += "    it " + reason + "\n";
    return text;
}

std::string tampering_of(const Chapter& chapter, const Checkout& build, const std::string& target) {
    Command mine = {"nm", "-A", "-g"}, archives = mine, sections = {"readelf", "-SW"};
    const auto in_build = [&](std::string_view file) { return (build.build / file).string(); };
    capture({"ninja", "-C", build.build.string(), "-t", "inputs", target}, [&](std::string_view line) {
        if (line.ends_with(".o") && line.find("/exercises/" + chapter.directory + "/") != line.npos) {
            mine.push_back(in_build(line));
            sections.push_back(in_build(line));
        } else if (line.ends_with(".a") && !line.starts_with("/")) {
            archives.push_back(in_build(line));
        }
    });
    return tampering_in(capture(mine).output, capture(archives).output, capture(sections).output);
}

}  // namespace course::tool
