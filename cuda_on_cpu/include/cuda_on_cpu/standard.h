// cuda::std: on the CPU the host's own standard library.
#pragma once

namespace std {}

namespace cuda::std {

using namespace ::std;

}  // namespace cuda::std
