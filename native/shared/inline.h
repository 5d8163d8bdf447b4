/*
 * Functions that the CPU core and the CUDA kernels both compile, so that one arithmetic serves both. A header of this
 * folder that holds arithmetic includes C headers only and keeps everything in an anonymous namespace: the kernels of
 * one instruction set must not share an inline function with those of another.
 */
#pragma once

#include <stdint.h>

#if defined(__CUDACC__)
#define LK_INLINE __device__ __forceinline__
#define LK_APART __device__ __noinline__
#else
#define LK_INLINE inline
#define LK_APART inline
#endif

namespace {

struct WideProduct {
  uint32_t high, low;
};

LK_INLINE WideProduct wide_product(uint32_t a, uint32_t b) {
#if defined(__CUDACC__)
  // its compiler would stay with 64 bits from one product to the next, whose multiplications are several
  return {__umulhi(a, b), a * b};
#else
  uint64_t product = (uint64_t)a * b;
  return {(uint32_t)(product >> 32), (uint32_t)product};
#endif
}

}  // namespace
