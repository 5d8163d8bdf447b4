// Element by element, four floats to a thread where the addresses allow it. out may be one of the inputs.
#ifndef LATENTKIT_CUDA_ELEMENTWISE_H
#define LATENTKIT_CUDA_ELEMENTWISE_H

#include "kernels/grid.h"
#include "kernels/kernels.h"
#include "shared/elementwise.h"

namespace {

LK_INLINE float4 load4(const float *p) { return *(const float4 *)p; }
LK_INLINE void store4(float *p, float4 v) { *(float4 *)p = v; }

template <class Op>
LK_INLINE void map(float *out, const float *x, uint64_t n, Op op) {
  uint64_t i = first_index(), step = index_step(), done = 0;
  if (aligned(out) && aligned(x)) {
    done = n & ~(uint64_t)3;
    for (uint64_t k = 4 * i; k < done; k += 4 * step) {
      float4 v = load4(x + k);
      store4(out + k, float4{op(v.x), op(v.y), op(v.z), op(v.w)});
    }
  }
  for (uint64_t k = done + i; k < n; k += step) out[k] = op(x[k]);
}

template <class Op>
LK_INLINE void map(float *out, const float *x, const float *y, uint64_t n, Op op) {
  uint64_t i = first_index(), step = index_step(), done = 0;
  if (aligned(out) && aligned(x) && aligned(y)) {
    done = n & ~(uint64_t)3;
    for (uint64_t k = 4 * i; k < done; k += 4 * step) {
      float4 a = load4(x + k), b = load4(y + k);
      store4(out + k, float4{op(a.x, b.x), op(a.y, b.y), op(a.z, b.z), op(a.w, b.w)});
    }
  }
  for (uint64_t k = done + i; k < n; k += step) out[k] = op(x[k], y[k]);
}

}  // namespace

LK_KERNEL lk_scale(float *out, const float *x, float k, uint64_t n) { map(out, x, n, Scale{k}); }

#endif
