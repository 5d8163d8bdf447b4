// Element by element, four floats to a thread if the addresses allow it. out may be one of the inputs.
#pragma once

#include "kernels/kernels.h"
#include "kernels/thread.h"
#include "shared/elementwise.h"
#include "shared/weighted_sum.h"

namespace {

template <class Op>
LK_INLINE void map(float *out, const float *x, uint64_t n, Op op) {
  for_quads(
      n, aligned(out) && aligned(x),
      [=](uint64_t i) {
        float4 v = load4(x + i);
        store4(out + i, float4{op(v.x), op(v.y), op(v.z), op(v.w)});
      },
      [=](uint64_t i) { out[i] = op(x[i]); });
}

template <class Op>
LK_INLINE void map(float *out, const float *x, const float *y, uint64_t n, Op op) {
  for_quads(
      n, aligned(out) && aligned(x) && aligned(y),
      [=](uint64_t i) {
        float4 a = load4(x + i), b = load4(y + i);
        store4(out + i, float4{op(a.x, b.x), op(a.y, b.y), op(a.z, b.z), op(a.w, b.w)});
      },
      [=](uint64_t i) { out[i] = op(x[i], y[i]); });
}

template <unsigned N>
LK_INLINE void sum_terms(float *out, uint64_t copies, const lk_terms &terms, uint64_t n) {
  bool quads = aligned(out) && (copies == 1 || n % 4 == 0);
  for (unsigned k = 0; k < N; k++) quads = quads && aligned(terms.x[k]);
  for_quads(
      n, quads,
      [&](uint64_t i) {
        float4 x[N];
        for (unsigned k = 0; k < N; k++) x[k] = load4(terms.x[k] + i);
        const auto sum = [&](auto part) {
          return weighted_sum(N, terms.coefficients, [&](unsigned k) { return part(x[k]); });
        };
        const float4 sums = {sum([](float4 v) { return v.x; }), sum([](float4 v) { return v.y; }),
                             sum([](float4 v) { return v.z; }), sum([](float4 v) { return v.w; })};
        for (uint64_t copy = 0; copy < copies; copy++) store4(out + copy * n + i, sums);
      },
      [&](uint64_t i) {
        const float sum = weighted_sum(N, terms.coefficients, [&](unsigned k) { return terms.x[k][i]; });
        for (uint64_t copy = 0; copy < copies; copy++) out[copy * n + i] = sum;
      });
}

}  // namespace

LK_KERNEL lk_weighted_sum(float *out, uint64_t copies, lk_terms terms, uint64_t n) {
  with_count(terms.count, [&](auto count) { sum_terms<decltype(count)::value>(out, copies, terms, n); });
}

LK_KERNEL lk_scale(float *out, const float *x, float k, uint64_t n) { map(out, x, n, Scale{k}); }

LK_KERNEL lk_axpy(float *out, const float *x, const float *y, float k, uint64_t n) { map(out, x, y, n, Axpy{k}); }

LK_KERNEL lk_average(float *out, const float *x, const float *y, uint64_t n) { map(out, x, y, n, Average{}); }

LK_KERNEL lk_lerp(float *out, const float *a, const float *b, float t, uint64_t n) { map(out, a, b, n, Lerp{t}); }
