// cuda::std: on the CPU it is the host's standard library.
#pragma once

namespace std {}

namespace cuda::std {

using namespace ::std;

}  // namespace cuda::std
