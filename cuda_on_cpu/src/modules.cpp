#include "modules.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "cuda_on_cpu/launch.h"
#include "module_ranges.hpp"
#include "module_text.hpp"

CUmod_st::~CUmod_st() {
    cuda_on_cpu::close_file_of_module(dynamic);
}

namespace cuda_on_cpu {
namespace {

constexpr std::string_view kElfMark = ELFMAG;
// The kernel object of a function whose encoding is E is _ZZ E E19cuda_on_cpu_kernel_.
constexpr std::string_view kKernelPrefix = "_ZZ";
constexpr std::string_view kKernelSuffix = "E19cuda_on_cpu_kernel_";

// --- Images --------------------------------------------------------------------------------------

CUresult refuse(const char* function, CUresult error, const std::string& why) {
    const char* name = "";
    cuGetErrorName(error, &name);
    std::fprintf(stderr, "cuda_on_cpu: %s: %s (%s)\n", function, why.c_str(), name);
    return error;
}

constexpr const char* kHowToMake =
    ". Modules are made here by nvcc of cuda_on_cpu, with -ptx, -cubin or -fatbin, or by NVRTC";

// The size of an ELF file in memory. It ends with its last section or with the section header
// table.
std::size_t elf_size(const Elf64_Ehdr& header) {
    const char* base = reinterpret_cast<const char*>(&header);
    std::size_t size = header.e_shoff + std::size_t{header.e_shnum} * header.e_shentsize;
    for (unsigned i = 0; i < header.e_shnum; ++i) {
        Elf64_Shdr section;
        std::memcpy(&section, base + header.e_shoff + i * header.e_shentsize, sizeof section);
        if (section.sh_type != SHT_NOBITS) size = std::max(size, section.sh_offset + section.sh_size);
    }
    return size;
}

// Is the section header table complete? It is the last part of a shared object.
bool has_all_sections(std::string_view bytes) {
    Elf64_Ehdr header;
    if (bytes.size() < sizeof header) return false;
    std::memcpy(&header, bytes.data(), sizeof header);
    return header.e_shoff <= bytes.size() &&
           std::size_t{header.e_shnum} * header.e_shentsize <= bytes.size() - header.e_shoff;
}

std::string bytes_of_text(const char* text) {
    std::string bytes;
    int high = -1;
    for (; *text != 0; ++text) {
        const char* digit = std::find(kModuleDigits, kModuleDigits + 16, *text);
        if (digit == kModuleDigits + 16) continue;
        const int value = static_cast<int>(digit - kModuleDigits);
        if (high < 0) {
            high = value;
        } else {
            bytes += static_cast<char>(high * 16 + value);
            high = -1;
        }
    }
    return bytes;
}

// --- Symbols -------------------------------------------------------------------------------------

struct ElfSymbol {
    std::string_view name;
    std::uint64_t value;
    std::uint64_t size;
    bool is_function;
};

std::vector<Elf64_Shdr> sections_of(std::string_view file) {
    Elf64_Ehdr header;
    std::memcpy(&header, file.data(), sizeof header);
    std::vector<Elf64_Shdr> sections(header.e_shnum);
    for (std::size_t i = 0; i < sections.size(); ++i)
        std::memcpy(&sections[i], file.data() + header.e_shoff + i * header.e_shentsize, sizeof sections[i]);
    return sections;
}

// The entries of a section that contains a table.
template <class Entry>
std::vector<Entry> entries_of(std::string_view file, const Elf64_Shdr& section) {
    std::vector<Entry> entries(section.sh_size / sizeof(Entry));
    std::memcpy(entries.data(), file.data() + section.sh_offset, entries.size() * sizeof(Entry));
    return entries;
}

// All symbols of the symbol table, including local ones.
std::vector<ElfSymbol> elf_symbols(std::string_view file) {
    std::vector<ElfSymbol> symbols;
    const std::vector<Elf64_Shdr> sections = sections_of(file);
    for (const Elf64_Shdr& table : sections) {
        if (table.sh_type != SHT_SYMTAB) continue;
        const char* names = file.data() + sections[table.sh_link].sh_offset;
        for (const Elf64_Sym& symbol : entries_of<Elf64_Sym>(file, table)) {
            const unsigned type = ELF64_ST_TYPE(symbol.st_info);
            if (symbol.st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_OBJECT)) continue;
            symbols.push_back({names + symbol.st_name, symbol.st_value, symbol.st_size, type == STT_FUNC});
        }
    }
    return symbols;
}

// The address that the loader writes to `place`, relative to the start of the shared object.
std::uint64_t relocated(std::string_view file, std::uint64_t place) {
    const std::vector<Elf64_Shdr> sections = sections_of(file);
    for (const Elf64_Shdr& table : sections) {
        if (table.sh_type != SHT_RELA) continue;
        for (const Elf64_Rela& entry : entries_of<Elf64_Rela>(file, table)) {
            if (entry.r_offset != place) continue;
            const auto addend = static_cast<std::uint64_t>(entry.r_addend);
            const std::size_t symbol = ELF64_R_SYM(entry.r_info);
            if (symbol == 0) return addend;
            return entries_of<Elf64_Sym>(file, sections[table.sh_link])[symbol].st_value + addend;
        }
    }
    return 0;
}

bool is_kernel_object(std::string_view name) {
    return name.starts_with(kKernelPrefix) && name.ends_with(kKernelSuffix);
}

// extern "C" vectorAdd gives _ZZ 9vectorAdd E19...; a C++ function with the mangled name _Z E gives
// _ZZ E E19...
std::vector<std::string> names_of_kernel(std::string_view object) {
    const std::string encoding(
        object.substr(kKernelPrefix.size(), object.size() - kKernelPrefix.size() - kKernelSuffix.size()));
    const std::size_t digits = std::min(encoding.find_first_not_of("0123456789"), encoding.size());
    return {"_Z" + encoding, encoding.substr(digits)};
}

// A variable with internal linkage is mangled as _ZL 4name.
std::string name_of_variable(std::string_view symbol) {
    if (!symbol.starts_with("_ZL")) return std::string(symbol);
    return std::string(symbol.substr(std::min(symbol.find_first_not_of("0123456789", 3), symbol.size())));
}

void take_symbols(CUmod_st& module, std::string_view file, char* base) {
    const std::vector<ElfSymbol> symbols = elf_symbols(file);
    std::map<std::string_view, const ElfSymbol*> functions;
    for (const ElfSymbol& symbol : symbols) {
        if (symbol.is_function) functions[symbol.name] = &symbol;
    }
    for (const ElfSymbol& symbol : symbols) {
        if (symbol.is_function) continue;
        if (!is_kernel_object(symbol.name)) {
            module.variables[name_of_variable(symbol.name)] = {base + symbol.value, symbol.size};
            continue;
        }
        for (const std::string& name : names_of_kernel(symbol.name)) {
            const auto found = functions.find(name);
            if (found == functions.end()) continue;
            module.kernels[name] = {base + found->second->value, found->second->size};
            break;
        }
    }
}

// --- Loading -------------------------------------------------------------------------------------

// The file from which a shared object is loaded. It is unlinked as soon as it is loaded, so that a
// crash leaves no file behind and a child process that ends does not delete its parent's file.
// Messages read line numbers from the open file.
class ModuleFile {
  public:
    explicit ModuleFile(std::string_view bytes)
        : name_((std::filesystem::temp_directory_path() / "cuda_module_XXXXXX").string()),
          file_(mkostemp(name_.data(), O_CLOEXEC)) {
        is_complete_ =
            file_ >= 0 && write(file_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
    }
    ~ModuleFile() {
        if (file_ < 0) return;
        unlink(name_.c_str());
        if (!is_loaded_) close(file_);
    }
    ModuleFile(const ModuleFile&) = delete;
    ModuleFile& operator=(const ModuleFile&) = delete;

    bool is_complete() const { return is_complete_; }
    // Null: dlerror() returns the reason.
    link_map* load() {
        void* const handle = dlopen(name_.c_str(), RTLD_NOW | RTLD_LOCAL);
        link_map* map = nullptr;
        if (handle == nullptr || dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) return nullptr;
        note_module(map->l_ld, file_);
        is_loaded_ = true;
        return map;
    }

  private:
    std::string name_;
    int file_;
    bool is_complete_ = false;
    bool is_loaded_ = false;
};

}  // namespace

Image image_at(const void* data) {
    if (data == nullptr) return {"", CUDA_ERROR_INVALID_VALUE, "the image is null"};
    const char* text = static_cast<const char*>(data);
    const auto starts_with = [text](std::string_view mark) {
        return std::strncmp(text, mark.data(), mark.size()) == 0;
    };
    std::uint32_t word = 0;
    std::memcpy(&word, data, sizeof word);
    constexpr std::uint32_t kFatBinaries[] = {0xBA55ED50, 0x466243B1};
    if (std::ranges::find(kFatBinaries, word) != std::end(kFatBinaries))
        return {"", CUDA_ERROR_NO_BINARY_FOR_GPU,
                std::string("the image is a fat binary of NVIDIA's compiler: code for GPUs") + kHowToMake};
    if (starts_with(kModuleTextMark)) {
        std::string bytes = bytes_of_text(text + kModuleTextMark.size());
        if (!has_all_sections(bytes))
            return {"", CUDA_ERROR_INVALID_IMAGE, "the text of the module is incomplete"};
        return {std::move(bytes)};
    }
    if (starts_with(kElfMark)) {
        Elf64_Ehdr header;
        std::memcpy(&header, data, sizeof header);
        constexpr unsigned kCuda = 190;
#ifdef __aarch64__
        constexpr unsigned kHost = EM_AARCH64;
#else
        constexpr unsigned kHost = EM_X86_64;
#endif
        if (header.e_machine == kCuda)
            return {
                "", CUDA_ERROR_NO_BINARY_FOR_GPU,
                std::string("the image is a cubin of NVIDIA's compiler: machine code of a GPU") + kHowToMake};
        if (header.e_machine != kHost || header.e_type != ET_DYN)
            return {"", CUDA_ERROR_INVALID_IMAGE,
                    std::string("the image is an ELF file, but no shared object for this CPU") + kHowToMake};
        return {std::string(text, elf_size(*reinterpret_cast<const Elf64_Ehdr*>(data)))};
    }
    const std::string_view begin(text, strnlen(text, 4096));
    if (begin.find(".version") != std::string_view::npos && begin.find(".target") != std::string_view::npos)
        return {
            "", CUDA_ERROR_INVALID_PTX,
            std::string("the image is PTX, an assembler of GPUs, which is not translated here") + kHowToMake};
    return {"", CUDA_ERROR_INVALID_IMAGE, std::string("the image is no module") + kHowToMake};
}

CUresult load_module(const char* function, CUmodule* module, const Image& image) {
    if (image.error != CUDA_SUCCESS) return refuse(function, image.error, image.why);
    ModuleFile file(image.bytes);
    if (!file.is_complete())
        return refuse(function, CUDA_ERROR_OUT_OF_MEMORY, "the module cannot be written to a temporary file");
    const link_map* const map = file.load();
    if (map == nullptr) {
        const std::string why = dlerror();
        const bool unlinked = why.find("undefined symbol") != std::string::npos;
        return refuse(
            function, CUDA_ERROR_SHARED_OBJECT_INIT_FAILED,
            why + (unlinked ? ". A program that loads modules is linked by nvcc of cuda_on_cpu with "
                              "-lcuda, so that they find the stand-in in it"
                            : ""));
    }
    auto made = std::make_unique<CUmod_st>();
    made->dynamic = map->l_ld;
    take_symbols(*made, image.bytes, reinterpret_cast<char*>(map->l_addr));
    *module = made.release();
    return CUDA_SUCCESS;
}

std::string pointed_to(std::string_view shared_object, std::string_view pointer) {
    const std::vector<ElfSymbol> symbols = elf_symbols(shared_object);
    const auto variable = std::ranges::find(symbols, pointer, &ElfSymbol::name);
    if (variable == symbols.end()) return "";
    const std::uint64_t target = relocated(shared_object, variable->value);
    const auto found = std::ranges::find_if(symbols, [&](const ElfSymbol& symbol) {
        return symbol.value == target && !is_kernel_object(symbol.name);
    });
    if (found == symbols.end()) return "";
    return found->is_function ? std::string(found->name) : name_of_variable(found->name);
}

}  // namespace cuda_on_cpu
