/* Four floats in a vector, whatever the instruction set: a pixel. Only for kernel units; everything has internal
 * linkage. */
#pragma once

#include "core/kernels/lanes.h"

namespace {

typedef float Quad __attribute__((vector_size(16)));
typedef float QuadAt __attribute__((vector_size(16), aligned(4), may_alias));

inline Quad quad(const float *p) { return *(const QuadAt *)p; }

/* A pixel of which only `channels` floats may be read. */
inline Quad pixel(const float *p, size_t channels) {
  Quad v = {};
  for (size_t c = 0; c < channels; c++) v[c] = p[c];
  return v;
}

#if LK_LANES > 4
inline Quad fused(Quad a, Quad b, Quad c) { return (Quad)_mm_fmadd_ps((__m128)a, (__m128)b, (__m128)c); }
inline Quad fused(Quad a, float b, Quad c) { return fused(a, Quad{b, b, b, b}, c); }
#endif

}  // namespace
