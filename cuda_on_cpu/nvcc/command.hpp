// What a command line of nvcc asks for.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace nvcc {

using Arguments = std::vector<std::string>;

// A command line that makes no sense, or asks for what only a GPU's compiler can make. The message
// is a sentence.
struct UsageError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

enum class Action {
    link,
    compile,
    translate,
    module,
    device_link,
    archive,
    list_dependencies,
    print_version,
    print_help
};
enum class Language { cuda, cxx, c };

struct Source {
    std::string file;
    Language language;
};

struct Command {
    Action action = Action::link;
    std::string output;            // -o; empty: as nvcc names it
    std::string output_directory;  // -odir
    std::string module_extension;  // of -ptx, -cubin and -fatbin
    bool loads_modules = false;    // -lcuda, -lnvrtc
    std::vector<Source> sources;
    Arguments link_inputs;    // objects and libraries in their order; a source's place is an empty string
    Arguments link_options;   // -L, -Xlinker, -shared
    Arguments preprocessor;   // -I, -D, -U, -include
    Arguments architectures;  // 800, 900a: ascending; empty: the stand-in's own
    bool shares_device_variables = false;  // -rdc=true: one variable for all .cu files
    Arguments host;                        // -Xcompiler: for the host compiler, also when it links
    std::string compiler;                  // -ccbin; empty: the one that the stand-in was built with
    bool run = false;                      // -run: the program, once it is made
    Arguments run_arguments;
    bool inspect = false;                   // --inspect: the program's accesses are watched
    std::string standard;                   // newer than C++20; empty: C++20
    std::string optimisation = "-O1";       // of kernels: -O0 or -O1
    std::string host_optimisation = "-O0";  // of .cpp files
    std::string debug_information = "-g1";  // lines are enough for messages
    bool make_rule = false;                 // -MD: a rule of make with the headers that were read
    Arguments rule_options;                 // -MMD or -MD, -MP, -MT
    std::string rule_file;                  // -MF
    bool keep = false;                      // the translated text
    bool verbose = false;                   // print commands before they run
    bool dry_run = false;                   // only print commands
};

// A library of the CUDA Toolkit that is not there, because the library of the host that it stands
// on was not found.
struct HostLibrary {
    std::string name;     // of the toolkit's library that stands on it, as after -l
    std::string file;     // as after -l
    std::string called;   // in sentences
    std::string package;  // of Debian, which has it
};

struct LeftOut {
    std::string name;          // as after -l
    std::string host_library;  // what was not found
    std::string package;       // of Debian, which has it
};

// `arguments`: without the program's name. Throws UsageError.
Command parse(const Arguments& arguments);

}  // namespace nvcc
