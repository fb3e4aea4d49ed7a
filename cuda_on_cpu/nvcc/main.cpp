// nvcc OPTIONS FILES...
//
// Takes the command line of NVIDIA's nvcc and makes programs whose kernels run on the CPU. It
// stands in a directory that is laid out as a CUDA Toolkit (bin, include, lib64), so that what
// looks for one finds it.
#include <cxxabi.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include "command.hpp"
#include "host_compiler.hpp"
#include "module_text.hpp"
#include "nvcc_configuration.hpp"
#include "precompiled.hpp"
#include "process.hpp"

namespace {

namespace fs = std::filesystem;
using nvcc::Action;
using nvcc::Arguments;
using nvcc::Command;
using nvcc::Language;
using nvcc::Source;

// The first three lines are those that Makefiles and CMake look for.
constexpr const char* kVersion =
    "nvcc: NVIDIA (R) Cuda compiler driver: its place is taken by cuda_on_cpu, kernels run on the CPU\n"
    "Cuda compilation tools, release 13.0, V13.0.0\n"
    "Build cuda_on_cpu\n";

constexpr const char* kHelp =
    "nvcc OPTIONS FILES...: compiles CUDA C++ for the CPU (cuda_on_cpu); takes the command line of NVIDIA's "
    "nvcc\n"
    "  -o -c -dc -dlink -lib -shared -odir        what is made\n"
    "  -cuda                                      the translation, *.cu.cpp.ii\n"
    "  -ptx -cubin -fatbin                        a module for the driver API: code for the CPU, too\n"
    "  -I -isystem -include -D -U -L -l -x -std -O -g -G -w -Werror\n"
    "  -Xcompiler -Xlinker -ccbin                 for the host compiler\n"
    "  -M -MD -MMD -MF -MT -MP                    rules for make\n"
    "  --keep -v --dryrun --options-file --version -run\n"
    "  --inspect                                  races, bad accesses, bank conflicts: at the program's end\n"
    "  -arch -gencode                             __CUDA_ARCH__ in device code, 900 by default\n"
    "  -rdc=true -dc                              .cu files share their device variables\n"
    "  -Xptxas, -lineinfo and others about the GPU are accepted, and change nothing\n"
    "example: nvcc -O2 -o saxpy saxpy.cu\n";

// What C++20 would warn of in programs that were written for an older standard, nvcc's default.
const Arguments kOlderLanguage = {"-Wno-register", "-Wno-volatile"};

// Sums and tensor cores' accumulators that nothing sets: on a GPU they hold what was left in the
// register. Where accesses are watched, g++ takes more variables for unset than there are.
Arguments unset_variables(bool is_clang, bool is_inspected) {
    return is_clang || is_inspected ? Arguments{"-Wuninitialized"}
                                    : Arguments{"-Wuninitialized", "-Wmaybe-uninitialized"};
}

// A write past a local array is reported, and a frame too large meets the stack's guard page.
const Arguments kStackChecks = {"-fstack-protector-strong", "-fstack-clash-protection"};

fs::path toolkit() {
    static const fs::path path = fs::read_symlink("/proc/self/exe").parent_path().parent_path();
    return path;
}

std::string environment(const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? "" : value;
}

// Only a build directory has a place for precompiled headers. An installed nvcc keeps them in the
// user's cache, apart from those of another installation and of an older one in the same place. "":
// there is no place for them.
fs::path headers_directory() {
    const fs::path own = toolkit() / "kernel_headers";
    if (fs::exists(own)) return fs::canonical(own);
    fs::path cache = environment("XDG_CACHE_HOME");
    if (!cache.is_absolute()) {
        const std::string home = environment("HOME");
        const fs::path guessable = fs::temp_directory_path() / ("cache_of_" + std::to_string(getuid()));
        cache = home.empty() ? fs::path(translator::private_directory(guessable)) : fs::path(home) / ".cache";
        if (cache.empty()) return "";
    }
    struct stat installed {};
    stat((toolkit() / "include" / "cuda_runtime.h").c_str(), &installed);
    const std::string installation = toolkit().string() + " " + std::to_string(installed.st_ctim.tv_sec) +
                                     "." + std::to_string(installed.st_ctim.tv_nsec);
    return cache / "cuda_on_cpu" / std::to_string(std::hash<std::string>()(installation));
}

std::string default_compiler() {
    if (const std::string chosen = environment("NVCC_CCBIN"); !chosen.empty()) return chosen;
    return fs::exists(toolkit() / "kernel_headers") ? nvcc::kCompiler : nvcc::kInstalledCompiler;
}

bool is_on_path(const std::string& program) {
    std::istringstream path(environment("PATH"));
    for (std::string directory; std::getline(path, directory, ':');) {
        if (access((fs::path(directory) / program).c_str(), X_OK) == 0) return true;
    }
    return false;
}

// Intermediate objects are removed at the end.
class TemporaryDirectory {
  public:
    TemporaryDirectory() : path_((fs::temp_directory_path() / "nvcc_XXXXXX").string()) {
        if (mkdtemp(path_.data()) == nullptr)
            throw nvcc::UsageError("cannot make a directory in " + fs::temp_directory_path().string());
    }
    ~TemporaryDirectory() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

    fs::path path() const { return path_; }

  private:
    std::string path_;
};

Arguments joined(std::initializer_list<Arguments> parts) {
    Arguments all;
    for (const Arguments& part : parts)
        all.insert(all.end(), part.begin(), part.end());
    return all;
}

class Driver {
  public:
    explicit Driver(const Command& command)
        : command_(with_module_options(command)),
          compiler_(command.compiler.empty() ? default_compiler() : command.compiler),
          library_option_("-L" + (toolkit() / "lib64").string()) {
        if (command.inspect && nvcc::kInspectOptions.empty())
            throw nvcc::UsageError(
                "--inspect: this nvcc was built without the inspector; that of the preset 'inspect' has it, "
                "and so has an installed one (g++, nlohmann-json)");
    }

    int make() const {
        if (command_.verbose || command_.dry_run) print_settings();
        switch (command_.action) {
            case Action::compile:
                return compile_each();
            case Action::translate:
                return translate_each();
            case Action::list_dependencies:
                return list_dependencies();
            case Action::device_link:
                return device_link();
            case Action::module:
                return make_modules();
            default:
                const int status = link();
                return status == 0 && command_.run ? run_program() : status;
        }
    }

  private:
    // CMake reads these lines.
    void print_settings() const {
        std::fprintf(stderr,
                     "#$ TOP=%s\n#$ LIBRARIES=  \"%s\"\n#$ INCLUDES=\"-I%s\"\n#$ NVVM=-arch compute_75\n",
                     toolkit().c_str(), library_option_.c_str(), (toolkit() / "include").c_str());
    }

    int run(const Arguments& arguments) const {
        if (command_.verbose || command_.dry_run) {
            std::string line = "#$";
            for (const std::string& argument : arguments)
                line +=
                    argument.find_first_of(" \"'\\$&()") == std::string::npos && argument != library_option_
                        ? " " + argument
                        : " \"" + argument + "\"";
            std::fprintf(stderr, "%s\n", line.c_str());
        }
        return command_.dry_run ? 0 : translator::run_program(arguments);
    }

    Arguments language_options(Language language) const {
        if (language == Language::c) return {"-x", "c"};
        return {"-std=" + (command_.standard.empty() ? "gnu++20" : command_.standard)};
    }

    Arguments device_options() const {
        Arguments options;
        std::string list;
        for (const std::string& architecture : command_.architectures)
            list += (list.empty() ? "--arch=" : ",") + architecture;
        if (!list.empty()) options.push_back(list);
        if (command_.shares_device_variables) options.push_back("--rdc");
        return options;
    }

    Arguments include_options() const {
        return joined(
            {{"-DCUDA_ON_CPU", "-isystem", fs::canonical(toolkit() / "include")}, command_.preprocessor});
    }

    // In the place of -MD come -MF and -MT, too: an object may be made from intermediate files,
    // whose names tell nothing.
    Arguments rule_options(const Source& source, const fs::path& object) const {
        if (!command_.make_rule) return {};
        const fs::path made = command_.action == Action::link ? program() : object;
        fs::path file = command_.rule_file;
        if (file.empty()) file = command_.action == Action::link ? fs::path(source.file).filename() : made;
        if (command_.rule_file.empty()) file.replace_extension(".d");
        Arguments options = joined({command_.rule_options, {"-MF", file}});
        if (std::find(options.begin(), options.end(), "-MT") == options.end())
            options.insert(options.end(), {"-MT", made});
        return options;
    }

    int compile(const Source& source, const fs::path& object) const {
        const Arguments input = {"-c", source.file, "-o", object};
        const Arguments rule = rule_options(source, object);
        if (source.language != Language::cuda)
            return run(joined({{compiler_},
                               language_options(source.language),
                               include_options(),
                               names_of_older_language(source.language),
                               nvcc::kHostOptions,
                               {command_.host_optimisation, command_.debug_information},
                               command_.host,
                               rule,
                               input}));
        const int status = run(joined({{toolkit() / "bin" / "cuda_on_cpu_compile",
                                        "--headers=" + headers_directory().string(), "--own-program"},
                                       device_options(),
                                       {compiler_},
                                       language_options(Language::cuda),
                                       include_options(),
                                       nvcc::kHostOptions,
                                       {command_.optimisation, "-gdwarf-4", command_.debug_information},
                                       kStackChecks,
                                       is_inspected() ? nvcc::kInspectOptions : Arguments{},
                                       {"-D__NVCC__", "-D__CUDACC_VER_BUILD__=0"},
                                       kOlderLanguage,
                                       unset_variables(translator::is_clang(compiler_), is_inspected()),
                                       command_.host,
                                       rule,
                                       {"-c", "-x", "cu", source.file, "-o", object}}));
        std::error_code ignored;
        if (!command_.keep) fs::remove(object.string() + ".translated.ii", ignored);
        return status;
    }

    // Programs of an older standard may define a function lerp() of their own: see the header.
    static Arguments names_of_older_language(Language language) {
        if (language == Language::c) return {};
        return {"-include", "cuda_on_cpu/standard_math.h"};
    }

    bool is_inspected() const { return command_.inspect || nvcc::kAlwaysInspects; }

    static Arguments linker_options() {
        return is_on_path("ld.gold") ? Arguments{"-fuse-ld=gold"} : Arguments{};
    }

    // With libraries that the course's build has in the place of libcudart_static.a where it
    // inspects.
    Arguments inspector() const {
        if (!command_.inspect || nvcc::kAlwaysInspects) return {};
        return {toolkit() / "lib64" / "cuda_on_cpu_whole_program.o", "-lcuda_on_cpu_inspector",
                "-lcuda_on_cpu_inspection_rules"};
    }

    fs::path program() const { return command_.output.empty() ? "a.out" : command_.output; }

    fs::path object_of(const Source& source) const {
        if (!command_.output.empty()) return command_.output;
        const fs::path name = fs::path(source.file).filename().replace_extension(".o");
        return command_.output_directory.empty() ? name : command_.output_directory / name;
    }

    int compile_each() const {
        for (const Source& source : command_.sources) {
            if (const int status = compile(source, object_of(source)); status != 0) return status;
        }
        return 0;
    }

    // Each source as the host compiler gets it, in a file that NVIDIA's nvcc calls so, too.
    int translate_each() const {
        const TemporaryDirectory directory;
        Command keeping = command_;
        keeping.keep = true;
        for (const Source& source : command_.sources) {
            if (source.language != Language::cuda) continue;
            const fs::path object = directory.path() / "object.o";
            if (const int status = Driver(keeping).compile(source, object); status != 0) return status;
            const fs::path name = fs::path(source.file).filename().string() + ".cpp.ii";
            const fs::path made = !command_.output.empty() ? fs::path(command_.output)
                                                           : fs::path(command_.output_directory) / name;
            if (!command_.dry_run)
                fs::copy_file(object.string() + ".translated.ii", made, fs::copy_options::overwrite_existing);
        }
        return 0;
    }

    int list_dependencies() const {
        for (const Source& source : command_.sources) {
            Arguments list = joined({{compiler_},
                                     language_options(source.language),
                                     include_options(),
                                     {"-D__CUDACC__", "-D__NVCC__"},
                                     command_.rule_options});
            if (source.language == Language::cuda)
                list.insert(list.end(), {"-x", "c++", "-include", "cuda_runtime.h"});
            list.push_back(source.file);
            const std::string& file = command_.rule_file.empty() ? command_.output : command_.rule_file;
            if (!file.empty()) list.insert(list.end(), {"-o", file});
            if (const int status = run(list); status != 0) return status;
        }
        return 0;
    }

    // A shared object, which finds the stand-in in the program that loads it. References inside it
    // are its own: the program may have something of the same name.
    int make_module(const Source& source, const fs::path& module) const {
        const TemporaryDirectory directory;
        const fs::path object = directory.path() / "module.o";
        if (const int status = compile(source, object); status != 0) return status;
        const bool as_text = command_.module_extension == ".ptx";
        const fs::path made = as_text ? directory.path() / "module.so" : module;
        const int status = run(joined({{compiler_},
                                       nvcc::kHostOptions,
                                       linker_options(),
                                       command_.host,
                                       {"-shared", "-Wl,-Bsymbolic", object, "-o", made}}));
        if (status != 0 || !as_text || command_.dry_run) return status;
        std::ifstream file(made, std::ios::binary);
        const std::string bytes(std::istreambuf_iterator<char>(file), {});
        std::ofstream(module, std::ios::binary) << cuda_on_cpu::text_of_image(bytes);
        return 0;
    }

    int make_modules() const {
        for (const Source& source : command_.sources) {
            const fs::path name =
                fs::path(source.file).filename().replace_extension(command_.module_extension);
            const fs::path module = !command_.output.empty() ? fs::path(command_.output)
                                                             : fs::path(command_.output_directory) / name;
            if (const int status = make_module(source, module); status != 0) return status;
        }
        return 0;
    }

    // All of the stand-in, and visible to what is loaded later. Before libraries, which would bring
    // parts of it.
    Arguments options_for_modules() const {
        if (!command_.loads_modules) return {};
        return {"-rdynamic", library_option_, "-Wl,--whole-archive", "-lcudart_static",
                "-Wl,--no-whole-archive"};
    }

    // Of device code nothing is left to link: an object without anything in it.
    int device_link() const {
        const std::string object = command_.output.empty() ? "a_dlink.o" : command_.output;
        return run(joined({{compiler_}, command_.host, {"-x", "c++", "-c", "/dev/null", "-o", object}}));
    }

    // Libraries of the toolkit that this build had to leave out, for lack of one of the host's.
    void check_libraries() const {
        for (const nvcc::LeftOut& library : nvcc::kLeftOut) {
            for (const std::string& input : command_.link_inputs) {
                if (input.starts_with("-l" + library.name))
                    throw nvcc::UsageError(
                        "'" + input + "': " + library.host_library +
                        ", which takes its place on the CPU, was not found when nvcc was built; install "
                        "it (Debian: " +
                        library.package + ") and build nvcc again");
            }
        }
        for (const nvcc::HostLibrary& library : nvcc::kHostLibraries) {
            for (const std::string& input : command_.link_inputs) {
                if (input.starts_with("-l" + library.name) && !host_has(library.file))
                    throw nvcc::UsageError("'" + input + "': " + library.called +
                                           ", on which it stands on the CPU, was not found (lib" +
                                           library.file + ".so); install it (Debian: " + library.package +
                                           ")");
            }
        }
    }

    // Does the linker find a library? The compiler tells a path, or the name alone.
    bool host_has(const std::string& library) const {
        for (const char* const extension : {".so", ".a"}) {
            const std::string file = "lib" + library + extension;
            std::string found;
            translator::run_program(joined({{compiler_}, command_.host, {"-print-file-name=" + file}}),
                                    found);
            if (found.find('/') != std::string::npos) return true;
            for (const Arguments& options : {command_.link_options, command_.link_inputs}) {
                for (const std::string& option : options) {
                    if (option.starts_with("-L") && fs::exists(fs::path(option.substr(2)) / file))
                        return true;
                }
            }
        }
        return false;
    }

    // "-lcublas my.cu": libraries count wherever they stand, as with NVIDIA's nvcc.
    static Arguments objects_before_libraries(Arguments inputs) {
        std::stable_partition(inputs.begin(), inputs.end(),
                              [](const std::string& input) { return !input.starts_with("-l"); });
        return inputs;
    }

    int run_program() const { return run(joined({{fs::absolute(program())}, command_.run_arguments})); }

    int link() const {
        check_libraries();
        const TemporaryDirectory directory;
        Arguments inputs;
        std::size_t next = 0;
        for (const std::string& input : command_.link_inputs) {
            if (!input.empty()) {
                inputs.push_back(input);
                continue;
            }
            const Source& source = command_.sources[next];
            const std::string name =
                fs::path(source.file).stem().string() + "_" + std::to_string(next++) + ".o";
            const fs::path kept = command_.keep ? fs::current_path() : directory.path();
            inputs.push_back(kept / name);
            if (const int status = compile(source, inputs.back()); status != 0) return status;
        }
        if (command_.action == Action::archive) return run(joined({{"ar", "qcs", program()}, inputs}));
        const int status = run(joined({{compiler_},
                                       nvcc::kHostOptions,
                                       linker_options(),
                                       command_.host,
                                       command_.link_options,
                                       options_for_modules(),
                                       {"-Wl,--start-group"},
                                       objects_before_libraries(inputs),
                                       {"-o", program(), library_option_},
                                       inspector(),
                                       {"-lcudadevrt", "-lcudart_static", "-lrt", "-lpthread", "-ldl",
                                        "-lstdc++", "-lm", "-Wl,--end-group"}}));
        if (status != 0) tell_of_own_variables(inputs);
        return status;
    }

    // The symbols that nm lists for a file: those that it refers to, and the variables that it has
    // for itself, by the names that others would use.
    struct Symbols {
        std::set<std::string> wanted;
        std::set<std::string> own;
    };
    static void add_symbols_of(const std::string& file, Symbols& symbols) {
        std::string list;
        translator::run_program({"nm", file}, list);
        std::istringstream lines(list);
        for (std::string line; std::getline(lines, line);) {
            constexpr std::size_t kType = 17;  // behind an address of 16 digits
            if (line.size() < kType + 3) continue;
            std::string name = line.substr(kType + 2);
            if (line[kType] == 'U') {
                symbols.wanted.insert(name);
            } else if (std::string_view("bdrs").find(line[kType]) != std::string_view::npos) {
                // _ZL5table, _ZN4nameL5tableE: static, of the namespace that would have table,
                // _ZN4name5tableE.
                if (name.starts_with("_ZL")) {
                    name.erase(0, name.find_first_not_of("0123456789", 3));
                } else if (const std::size_t mark = mark_of_static(name); mark != std::string::npos) {
                    name.erase(mark, 1);
                }
                symbols.own.insert(name);
            }
        }
    }

    // The `L` before the last name of a static variable in a namespace; npos: it is none.
    static std::size_t mark_of_static(const std::string& name) {
        std::size_t at = 3;
        while (name.starts_with("_ZN") && at < name.size() && std::isdigit(name[at]) != 0) {
            std::size_t digits = 0;
            const int length = std::stoi(name.substr(at, 4), &digits);
            at += digits + static_cast<std::size_t>(length);
        }
        return at < name.size() && name[at] == 'L' ? at : std::string::npos;
    }

    // `extern __device__ int table[4];` in one file, and the table in another.
    void tell_of_own_variables(const Arguments& inputs) const {
        if (command_.dry_run || command_.shares_device_variables) return;
        Symbols symbols;
        for (const std::string& input : inputs)
            if (!input.starts_with("-")) add_symbols_of(input, symbols);
        for (const std::string& name : symbols.wanted) {
            if (!symbols.own.contains(name)) continue;
            int failed = 0;
            char* const readable = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &failed);
            std::fprintf(stderr,
                         "nvcc: one file refers to '%s', a __device__ or static variable that another file "
                         "has for itself: for device variables that .cu files share, compile all of them "
                         "with -rdc=true (or -dc)\n",
                         failed == 0 ? readable : name.c_str());
            std::free(readable);
        }
    }

    // Kernels of modules have variables of their own, also if a template of the same name is
    // elsewhere.
    static Command with_module_options(Command command) {
        if (command.action != Action::module) return command;
        command.host.push_back("-fPIC");
        const std::string compiler = command.compiler.empty() ? default_compiler() : command.compiler;
        if (!translator::is_clang(compiler)) command.host.push_back("-fno-gnu-unique");
        return command;
    }

    const Command command_;
    std::string compiler_;
    std::string library_option_;
};

}  // namespace

int main(int count, char** values) {
    try {
        const Command command = nvcc::parse({values + 1, values + count});
        if (command.action == Action::print_version || command.action == Action::print_help) {
            std::fputs(command.action == Action::print_version ? kVersion : kHelp, stdout);
            return 0;
        }
        return Driver(command).make();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "nvcc fatal   : %s\n", error.what());
        return 1;
    }
}
