// The usual benchmark case: the versions of a day, its CPU reference, a library and a plain copy,
// all on the same data.
//
//     course::UsualCase<Data> usual("vector_add 1048576", "float", std::make_shared<Data>(n));
//     usual.output(&Data::c_device, [](Data& d, const auto& got) { return verify(got, d.expected); });
//     usual.versions(day01::versions(), n, [](auto& version, Data& d, cudaStream_t stream) { ... });
//     usual.limit_copy(&Data::a_device, &Data::c_device);
//     return usual.result;
//
// `Data` holds the inputs, the outputs and the expected values. All functions of the case share it.
// A case that is put together wrongly throws std::logic_error.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "common/bench/plain_loop.hpp"
#include "common/bench/program.hpp"
#include "common/bench/work.hpp"
#include "common/check/check.hpp"
#include "common/check/verify.hpp"

namespace course {

template <class Data>
class UsualCase {
  public:
    UsualCase(std::string problem, std::string dtype, std::shared_ptr<Data> shared)
        : result{.problem = std::move(problem), .dtype = std::move(dtype)}, data(std::move(shared)) {}

    // The guarded output: spoiled before each measurement, and compared afterwards by verify(data,
    // contents of the output) -> VerifyResult, which may also report damage to other buffers. A
    // case has one such output.
    template <class Buffer, class Verify>
    void output(Buffer Data::*buffer, Verify verify) {
        output_in_place(buffer, [buffer, verify](Data& d) { return verify(d, (d.*buffer).to_host()); });
    }

    // The same for an output that is not copied to the host: verify(data) compares it in device
    // memory.
    template <class Buffer, class Verify>
    void output_in_place(Buffer Data::*buffer, Verify verify) {
        if (result.verify)
            throw std::logic_error("UsualCase: " + result.problem +
                                   " has a verify already; expected one call of output()");
        also_spoil([buffer](Data& d) { (d.*buffer).spoil(); });
        result.verify = [data = data, buffer, verify] {
            VerifyResult verified = verify(*data);
            verified.damage += ((*data).*buffer).damage();
            return verified;
        };
    }

    // Another buffer to overwrite before a measurement, so that an old result cannot pass for a
    // new one.
    template <class Spoil>
    void also_spoil(Spoil spoil) {
        result.spoil = [data = data, before = result.spoil, spoil] {
            if (before) before();
            spoil(*data);
        };
    }

    // The CPU reference as a peer: run(data), timed by the host's clock, and verify(data) ->
    // VerifyResult.
    template <class Run, class Verify>
    Contestant& cpu(const Work& work, Run run, Verify verify) {
        return add({.name = "cpu_openmp",
                    .role = Role::kPeer,
                    .launch = [data = data, run](cudaStream_t) { run(*data); },
                    .work = work,
                    .on_host = true,
                    .verify = [data = data, verify] { return verify(*data); }});
    }

    // A plain loop as a peer, on one thread, in about so many seconds, and on all: loop(data, out,
    // threads) fills what make_out() has made, and verify(data, out) -> VerifyResult checks it.
    template <class MakeOut, class Loop, class Verify>
    void plain_loop(const Work& work, double seconds, MakeOut make_out, Loop loop, Verify verify) {
        for (Contestant& peer : plain_loops(
                 work, seconds, make_out,
                 [data = data, loop](auto&out, int threads) { loop(std::as_const(*data), out, threads); },
                 [data = data, verify](const auto&out) { return verify(std::as_const(*data), out); }))
            add(std::move(peer));
    }

    // Adds a contestant for each version of the list, with a copy of the version: launch(version,
    // data, stream). The version provides `work` and, if its launcher has them, the kernel's
    // resources. If the versions compute different results, verify(version, data) -> VerifyResult
    // checks each of them.
    template <class Versions, class Problem, class Launch, class Verify = std::nullptr_t>
    void versions(const Versions& list, const Problem& problem, Launch launch, Verify verify = {}) {
        for (const auto& version : list) {
            Contestant& added = add({.name = version.name,
                                     .launch = [data = data, version, launch](
                                                   cudaStream_t stream) { launch(version, *data, stream); },
                                     .work = version.work(problem),
                                     .cannot_run = version.cannot_run(problem)});
            if constexpr (requires { version.launcher.resources; })
                added.resources = version.launcher.resources;
            if constexpr (!std::is_null_pointer_v<Verify>)
                added.verify = [data = data, version, verify] { return verify(version, *data); };
        }
    }

    // The bandwidth limit: cudaMemcpy of the first `size` bytes of one buffer to another. Without
    // `size` it copies all of `from`, and `to` must be as large.
    template <class From, class To>
    Contestant& limit_copy(From Data::*from, To Data::*to, std::optional<std::size_t> size = {},
                           std::string name = "cudaMemcpy") {
        const std::size_t from_bytes = bytes_of((*data).*from);
        const std::size_t to_bytes = bytes_of((*data).*to);
        const std::size_t bytes = size.value_or(from_bytes);
        if (size ? bytes > std::min(from_bytes, to_bytes) : from_bytes != to_bytes)
            throw std::logic_error("UsualCase: " + name + " of " + std::to_string(bytes) +
                                   " bytes, from a buffer of " + std::to_string(from_bytes) + " to one of " +
                                   std::to_string(to_bytes) +
                                   (size ? "; expected no more than either has" : "; expected equal sizes"));
        return add(
            {.name = std::move(name),
             .role = Role::kLimit,
             .launch =
                 [data = data, from, to, bytes](cudaStream_t stream) {
                     CUDA_CHECK(cudaMemcpyAsync(((*data).*to).data(), ((*data).*from).data(), bytes,
                                                cudaMemcpyDeviceToDevice, stream));
                 },
             .work = {.bytes = 2.0 * static_cast<double>(bytes), .written = static_cast<double>(bytes)}});
    }

    Contestant& add(Contestant contestant) {
        result.contestants.push_back(std::move(contestant));
        return result.contestants.back();
    }

    Case result;
    std::shared_ptr<Data> data;

  private:
    template <class Buffer>
    static std::size_t bytes_of(Buffer& buffer) {
        return buffer.size() * sizeof(*buffer.data());
    }
};

// The extent of a one-dimensional size. Throws std::invalid_argument for other sizes.
inline std::size_t only_extent(const Dims& size, const std::string& of_what) {
    if (size.size() != 1)
        throw std::invalid_argument("size has " + std::to_string(size.size()) +
                                    " numbers; expected one, the number of " + of_what +
                                    ", for example 1048576");
    return size[0];
}

}  // namespace course
