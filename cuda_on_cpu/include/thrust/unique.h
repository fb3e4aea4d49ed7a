// With what NVIDIA's header of that name brings along.
#pragma GCC system_header  // #include_next

#if !__has_include_next(<thrust/unique.h>)
#error "Thrust is not installed; install it (Debian: libthrust-dev, libcub-dev)"
#endif
#ifdef CUDA_ON_CPU_INSIDE_THRUST  // a header of Thrust's own includes it
#include_next <thrust/unique.h>
#else
#define CUDA_ON_CPU_INSIDE_THRUST
#include <thrust/copy.h>
#include <thrust/fill.h>
#include <thrust/for_each.h>
#include <thrust/functional.h>
#include <thrust/iterator/constant_iterator.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/pair.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/transform.h>
#include <thrust/tuple.h>
#include_next <thrust/unique.h>
#undef CUDA_ON_CPU_INSIDE_THRUST
#endif
