#include "own_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include "build.hpp"
#include "cuda_on_cpu/translator/make_rule.hpp"
#include "days.hpp"
#include "device_side.hpp"
#include "errors.hpp"
#include "file_lock.hpp"
#include "styles.hpp"
#include "text_file.hpp"

namespace course::tool {
namespace {

namespace fs = std::filesystem;

bool has_kernels(const std::string& file) {
    return file.ends_with(".cu");
}

constexpr std::array<std::string_view, 5> kExtensions = {".cu", ".cpp", ".cc", ".cxx", ".c"};

// The options of the course's own kernels. Without a GPU only the language standard has an effect.
const Command kOptions = {"-std=c++20", "-arch=native", "-lineinfo", "--extended-lambda",
                          "--expt-relaxed-constexpr"};
const Command kDebugOptions = {"-std=c++20", "-g", "-G", "--extended-lambda", "--expt-relaxed-constexpr"};

bool is_source(const std::string& argument) {
    return std::ranges::find(kExtensions, fs::path(argument).extension()) != kExtensions.end();
}

fs::path gpu_compiler(const Checkout& checkout) {
    std::ifstream cache(checkout.build / "CMakeCache.txt");
    constexpr std::string_view kEntry = "COURSE_NVCC:FILEPATH=";
    for (std::string line; std::getline(cache, line);) {
        if (line.starts_with(kEntry)) return line.substr(kEntry.size());
    }
    throw BuildError(fmt::format("{} does not say where nvcc is: COURSE_NVCC is missing",
                                 (checkout.build / "CMakeCache.txt").string()));
}

struct Compiler {
    fs::path nvcc;
    std::vector<fs::path> runtime;  // the other inputs of a program's build
};

Compiler compiler_of(const Checkout& checkout) {
    if (load_calendar(checkout.calendar()).backend == "gpu") return {gpu_compiler(checkout), {}};
    build_target(checkout, "cuda_on_cpu_nvcc");
    const fs::path nvcc = checkout.build / "cuda" / "bin" / "nvcc";
    std::vector<fs::path> runtime = {nvcc, checkout.program("cuda_on_cpu_compile"),
                                     checkout.build / "cuda_on_cpu" / "libcuda_on_cpu.a"};
    const fs::path inspector = checkout.build / "cuda_on_cpu" / "inspector" / "libcuda_on_cpu_inspector.a";
    if (fs::exists(inspector)) runtime.push_back(inspector);
    return {nvcc, runtime};
}

// One directory for each combination of files and options.
fs::path directory_for(const Checkout& checkout, const std::vector<std::string>& files,
                       const ProgramBuild& how) {
    std::string all;
    for (const std::string& file : files)
        all += fs::absolute(file).string() + '\n';
    const std::string stem = fs::path(files.front()).stem();
    return checkout.build / "own" /
           fmt::format("{}_{:x}{}{}", stem, std::hash<std::string>()(all),
                       how.purpose == For::debugging ? "_debug" : "",
                       how.relocatable_device_code ? "_rdc" : "");
}

bool is_newer_than_all(const fs::path& made, const std::vector<fs::path>& files) {
    std::error_code error;
    const auto time = fs::last_write_time(made, error);
    if (error) return false;
    return std::ranges::all_of(files, [&](const fs::path& file) {
        const auto changed = fs::last_write_time(file, error);
        return !error && changed <= time;
    });
}

bool is_up_to_date(const fs::path& object, const fs::path& rule, const Compiler& compiler) {
    if (!fs::exists(rule)) return false;
    const std::vector<std::string> names = prerequisites(read_text_file(rule));
    std::vector<fs::path> files(names.begin(), names.end());
    files.insert(files.end(), compiler.runtime.begin(), compiler.runtime.end());
    return !names.empty() && is_newer_than_all(object, files);
}

// A library of the CUDA Toolkit is linked where the program includes its header.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kLibraries = {{
    {"cublas_v2.h", "cublas"},
    {"cublasLt.h", "cublasLt"},
    {"cuda.h", "cuda"},
    {"cufft.h", "cufft"},
    {"curand.h", "curand"},
    {"cusolverDn.h", "cusolver"},
    {"cusparse.h", "cusparse"},
    {"nccl.h", "nccl"},
    {"nvrtc.h", "nvrtc"},
}};

void add_libraries_of(const fs::path& rule, std::set<std::string>& libraries) {
    for (const std::string& file : prerequisites(read_text_file(rule))) {
        for (const auto& [header, library] : kLibraries)
            if (fs::path(file).filename() == header) libraries.emplace(library);
    }
}

// The target of a library in a build for the CPU; "" for one that is no target, or that the build
// leaves out. lib64 has a text for the linker, which names it: "INPUT(-lcuda_on_cpu_cublas ...)".
std::string target_of_library(const Checkout& checkout, const std::string& library) {
    const fs::path script = checkout.build / "cuda" / "lib64" / ("lib" + library + ".so");
    constexpr std::string_view kBegin = "INPUT(-l";
    const std::string text = fs::exists(script) ? read_text_file(script) : "";
    if (!text.starts_with(std::string(kBegin) + "cuda_on_cpu_")) return "";
    return text.substr(kBegin.size(), text.find(' ') - kBegin.size());
}

bool is_there(const Checkout& checkout, const std::string& library) {
    return fs::exists(checkout.build / "cuda" / "lib64" / ("lib" + library + ".so"));
}

// What compilers and linkers print where device code of one file uses that of another one: nvcc of
// cuda_on_cpu; ptxas; nvcc, for `extern __device__ int x;`, which then is a second variable.
constexpr std::array<std::string_view, 3> kSignsOfSharedDeviceCode = {
    "-rdc=true", "Unresolved extern function", "is treated as a static definition"};

// Looks for these signs in what is printed, and names the option of ./course once. A program of one
// .cu file has no use for it.
class DeviceLinkingHint {
  public:
    DeviceLinkingHint(const std::vector<std::string>& files, const ProgramBuild& how)
        : files_(files),
          looks_(!how.relocatable_device_code && std::ranges::count_if(files, has_kernels) > 1) {}

    int run(const Command& command) {
        if (!looks_) return tool::run(command);
        return capture(command, [this](std::string_view line) { show(line); }).exit_code;
    }
    void give() {
        if (!found_) return;
        looks_ = found_ = false;
        fmt::print(stderr, "{}\n",
                   styled("course: device code of one file uses a __device__ function or variable of "
                          "another one. The option --rdc compiles the files so that they share them "
                          "(nvcc -rdc=true): ./course run --rdc " +
                              shell_quoted(files_),
                          kNotice, stderr));
    }

  private:
    void show(std::string_view line) {
        fmt::print(stderr, "{}\n", line);
        for (const std::string_view sign : kSignsOfSharedDeviceCode)
            found_ |= line.find(sign) != line.npos;
    }

    const std::vector<std::string>& files_;
    bool looks_ = false;
    bool found_ = false;
};

// A failed build must not leave an object file that is newer than its source.
void run_compiler(const Command& command, const fs::path& made, const std::string& what,
                  DeviceLinkingHint& hint) {
    const int exit_code = hint.run(command);
    if (exit_code == kSuccess) return;
    std::error_code ignored;
    fs::remove(made, ignored);
    if (exit_code == kInterrupted) throw Interrupted();
    hint.give();
    throw BuildError(fmt::format("{} failed: {}", what, shell_quoted(command)));
}

// The program is compiled for the CPU, where a kernel may call any function.
void warn_of_host_code(const std::string& file, const fs::path& root) {
    const HostCode uses = host_code_in_program(file, root);
    if (!uses.named.empty() || !uses.by_clang.empty())
        fmt::print(stderr, "{}\n{}{}",
                   styled("course: it runs on the CPU, but nvcc does not compile it:", kNotice, stderr),
                   uses.named, uses.by_clang);
    else if (!uses.not_looked_at.empty())
        fmt::print(stderr, "{}\n",
                   styled(fmt::format("course: not looked at: calls of host functions in kernels ({})",
                                      uses.not_looked_at),
                          kQuiet, stderr));
}

// No name of a day has an extension.
bool names_a_file(const std::string& argument) {
    return !argument.starts_with("-") && fs::path(argument).has_extension();
}

}  // namespace

std::vector<std::string> own_files(const std::vector<std::string>& arguments) {
    if (arguments.empty() || !names_a_file(arguments.front())) return {};
    return {arguments.begin(), std::find_if_not(arguments.begin() + 1, arguments.end(), is_source)};
}

std::vector<std::string> prerequisites(const std::string& rule) {
    return translator::names_in(translator::prerequisites(rule));
}

void require_program(const std::vector<std::string>& files) {
    constexpr std::string_view kExpected =
        "expected a day, such as day01, or the files of a program, at least one of which ends with .cu";
    for (const std::string& file : files) {
        if (!fs::is_regular_file(file))
            throw UsageError(
                fmt::format("there is no file '{}' in {}; {}", file, fs::current_path().string(), kExpected));
    }
    if (std::ranges::none_of(files, has_kernels))
        throw UsageError(fmt::format("'{}' is not a .cu file; {}", files.front(), kExpected));
}

void require_no_device_linking(bool relocatable_device_code, const std::string& name) {
    if (relocatable_device_code)
        throw UsageError(fmt::format(
            "--rdc: expected the files of a program of your own, such as my.cu more.cu, not '{}'", name));
}

fs::path build_own_program(const Checkout& checkout, const std::vector<std::string>& files,
                           const ProgramBuild& how) {
    require_program(files);
    const Compiler compiler = compiler_of(checkout);
    const fs::path directory = directory_for(checkout, files, how);
    Command options = how.purpose == For::debugging ? kDebugOptions : kOptions;
    if (how.relocatable_device_code) options.emplace_back("-rdc=true");
    const bool on_cpu = !compiler.runtime.empty();  // nvcc itself refuses host code in kernels
    fs::create_directories(directory);
    const FileLock lock(directory / "lock", "building " + files.front());

    DeviceLinkingHint hint(files, how);
    std::vector<fs::path> objects = compiler.runtime;
    std::set<std::string> libraries;
    Command link = {compiler.nvcc};
    link.insert(link.end(), options.begin(), options.end());
    for (std::size_t i = 0; i < files.size(); ++i) {
        const fs::path object = directory / fmt::format("{}_{}.o", fs::path(files[i]).stem().string(), i);
        const fs::path rule = fs::path(object).replace_extension(".d");
        if (!is_up_to_date(object, rule, compiler)) {
            Command compile = {compiler.nvcc};
            compile.insert(compile.end(), options.begin(), options.end());
            compile.insert(compile.end(), {"-c", files[i], "-o", object, "-MD", "-MF", rule});
            run_compiler(compile, object, "compiling " + files[i], hint);
            if (on_cpu && files[i].ends_with(".cu")) warn_of_host_code(files[i], checkout.root);
        }
        add_libraries_of(rule, libraries);
        objects.push_back(object);
        link.push_back(object);
    }
    // A header may be included, and its library not used: one that this machine lacks is named only
    // if the program does not link without it.
    Command with_all = link;
    for (const std::string& library : libraries) {
        with_all.push_back("-l" + library);
        if (on_cpu && !is_there(checkout, library)) continue;
        link.push_back("-l" + library);
        if (const std::string target = on_cpu ? target_of_library(checkout, library) : ""; !target.empty()) {
            build_target(checkout, target);
            objects.push_back(checkout.build / "cuda" / "lib64" / ("lib" + target + ".a"));
        }
    }
    const fs::path program = directory / fs::path(files.front()).stem();
    link.insert(link.end(), {"-o", program});
    with_all.insert(with_all.end(), {"-o", program});
    if (is_newer_than_all(program, objects)) return program;
    const std::string linking = "linking " + program.string();
    try {
        run_compiler(link, program, linking, hint);
    } catch (const BuildError&) {
        if (with_all == link) throw;
        run_compiler(with_all, program, linking, hint);
    }
    hint.give();
    return program;
}

}  // namespace course::tool
