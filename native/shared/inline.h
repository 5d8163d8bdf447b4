/*
 * Functions that the CPU core and the CUDA kernels both compile, so that one arithmetic serves both. A header of this
 * folder that holds arithmetic includes C headers only and keeps everything in an anonymous namespace: the kernels of
 * one instruction set must not share an inline function with those of another.
 */
#pragma once

#if defined(__CUDACC__)
#define LK_INLINE __device__ __forceinline__
#define LK_APART __device__ __noinline__
#else
#define LK_INLINE inline
#define LK_APART inline
#endif
