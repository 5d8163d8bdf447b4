// Every kernel: its name, its parameters, and whether its threads wait for each other. Launches have one dimension.
#pragma once

#include "kernels/platform.h"
#include "shared/elementwise.h"
#include "shared/inline.h"

/* by, above 0; below 2^32 the reciprocal of Granlund and Montgomery ("Division by Invariant Integers using
 * Multiplication", figure 4.1), exact for every dividend below 2^32. */
struct lk_divisor {
  uint64_t by;
  uint32_t factor;
  uint32_t halves; /* 0 for 1 */
  uint32_t shift;

  lk_divisor() = default;
  explicit lk_divisor(uint64_t divisor) : by(divisor), factor(1), halves(divisor > 1), shift(0) {
    if (divisor < 2 || divisor >> 32 != 0) return;
    while (((uint64_t)2 << shift) < divisor) shift++;
    factor = (uint32_t)(((((uint64_t)2 << shift) - divisor) << 32) / divisor) + 1;
  }
};

// Divisors come with their reciprocals: five instructions instead of twenty.
namespace {

struct Divided {
  uint64_t quotient, rest;
};

/* Apart, since a compiler would repeat its own short cuts wherever it stood. */
LK_APART uint64_t wide_quotient(uint64_t a, uint64_t b) { return a / b; }

LK_INLINE Divided divided(uint64_t a, const lk_divisor &b) {
  if ((a | b.by) >> 32 == 0) {
    const uint32_t n = (uint32_t)a, high = wide_product(b.factor, n).high;
    const uint32_t quotient = (high + ((n - high) >> b.halves)) >> b.shift;
    return {quotient, n - quotient * (uint32_t)b.by};
  }
  const uint64_t quotient = wide_quotient(a, b.by);
  return {quotient, a - quotient * b.by};
}

}  // namespace

#define LK_BLOCK 256 /* threads of a block, of every kernel */

/* ALONE(name): threads work on their own. TOGETHER(name): they meet. */
// clang-format off
#define LK_KERNELS(ALONE, TOGETHER)                                             \
  ALONE(scale) ALONE(axpy) ALONE(average) ALONE(lerp)                           \
  ALONE(weighted_sum) ALONE(add_masked)                                         \
  ALONE(philox_normals) ALONE(philox_words)                                     \
  ALONE(resize) ALONE(blend) ALONE(composite) ALONE(inject) ALONE(inject_drawn) \
  ALONE(to_bytes) ALONE(from_bytes) ALONE(channel_mask) ALONE(planes_to_image)  \
  TOGETHER(sums) TOGETHER(squares) TOGETHER(scaled_errors) TOGETHER(filter_rows)
// clang-format on

LK_KERNEL lk_scale(float *out, const float *x, float k, uint64_t n);
LK_KERNEL lk_axpy(float *out, const float *x, const float *y, float k, uint64_t n);
LK_KERNEL lk_average(float *out, const float *x, const float *y, uint64_t n);
LK_KERNEL lk_lerp(float *out, const float *a, const float *b, float t, uint64_t n);

#define LK_TERMS 8 /* of a weighted sum, at most */

struct lk_terms {
  const float *x[LK_TERMS]; /* NULL past the count */
  lk_coefficient coefficients[LK_TERMS];
  uint32_t count; /* above 0 */

  template <class F>
  void each_pointer(F &&f) const {
    for (const float *operand : x) f(operand);
  }
};

/* `copies` sums, one after the other. */
LK_KERNEL lk_weighted_sum(float *out, uint64_t copies, lk_terms terms, uint64_t n);

/* A launch of PyTorch's generator. */
struct lk_draw {
  uint64_t seed;
  uint64_t first;     /* counter: the generator's offset / 4 */
  lk_divisor threads; /* of the launch, a multiple of LK_BLOCK */
  uint64_t counters;  /* of each thread a row, in all of them */
  float k;            /* factor of each normal */
};

LK_KERNEL lk_philox_normals(float *out, lk_draw draw, uint64_t n);
LK_KERNEL lk_philox_words(uint32_t *out, uint64_t n, uint64_t seed, uint64_t counter, lk_divisor threads);

/* Planes of in_h x in_w read as if they were h x w; equal sizes are read as they are. */
struct lk_sizes {
  uint32_t in_h, in_w;
  lk_divisor h, w;
  float ratio_y, ratio_x; /* f32(in) / f32(out) */
};

/* A mask for elements [batch, channels, h, w]: shared by the channels, repeated over the batch. */
struct lk_mask {
  const float *data; /* [count, in_h, in_w]; NULL: none */
  lk_divisor count, channels, plane;
  int resized;    /* else sizes are not used */
  lk_sizes sizes; /* h * w is the plane */

  template <class F>
  void each_pointer(F &&f) const {
    f(data);
  }
};

LK_KERNEL lk_resize(float *out, const float *x, uint64_t n, lk_sizes sizes);
LK_KERNEL lk_blend(float *out, const float *a, const float *b, lk_mask mask, uint64_t n);

struct lk_paste {
  float *destination;
  const float *source, *mask; /* mask: NULL for none */
  uint64_t h, w;              /* of the destination */
  uint64_t source_c, source_h, source_w;
  uint64_t from_x, from_y, to_x, to_y;                  /* where the overlap begins */
  lk_divisor channels, source_n, mask_n, width, height; /* the last two of the overlap */

  template <class F>
  void each_pointer(F &&f) const {
    f(destination), f(source), f(mask);
  }
};

LK_KERNEL lk_composite(lk_paste paste, uint64_t n);
/* Adds source * mask, which is there, instead. */
LK_KERNEL lk_add_masked(lk_paste paste, uint64_t n);

/* x, or x with noise: half of both, or x + noise * k. */
struct lk_values {
  const float *x, *noise; /* noise: NULL for none */
  int average;
  float k;

  template <class F>
  void each_pointer(F &&f) const {
    f(x), f(noise);
  }
};

/* The results of the two summing kernels. */
struct lk_spread {
  double mean;
  float deviation;
};

/* partial: a double for every group of leaves; tickets: 0, and 0 again afterwards. */
LK_KERNEL lk_sums(lk_values values, uint64_t n, double *partial, uint32_t *tickets, lk_spread *spread);
LK_KERNEL lk_squares(lk_values values, uint64_t n, double *partial, uint32_t *tickets, lk_spread *spread);

struct lk_errors {
  const float *low, *high, *previous;
  double atol, rtol;

  template <class F>
  void each_pointer(F &&f) const {
    f(low), f(high), f(previous);
  }
};

/* partial and tickets as those of lk_sums. */
LK_KERNEL lk_scaled_errors(lk_errors errors, uint64_t n, double *partial, uint32_t *tickets, double *norm);

struct lk_injection {
  lk_values values;
  lk_mask mask;
  const lk_spread *spread; /* NULL: not normalised; a deviation of 0: nothing is written */
  int mixed;
  const float *random; /* NULL: not mixed, or drawn */
  float keep, add, length;

  template <class F>
  void each_pointer(F &&f) const {
    values.each_pointer(f), mask.each_pointer(f), f(spread), f(random);
  }
};

LK_KERNEL lk_inject(float *out, lk_injection injection, uint64_t n);
/* Mixes with normals that it makes. Everything can be read and written in fours, and the mask has its size. */
LK_KERNEL lk_inject_drawn(float *out, lk_injection injection, lk_draw draw, uint64_t n);

LK_KERNEL lk_to_bytes(uint8_t *out, const float *x, uint64_t n);
LK_KERNEL lk_from_bytes(float *out, const uint8_t *x, uint64_t n);
LK_KERNEL lk_channel_mask(float *out, const float *image, uint64_t n, uint32_t channels, uint32_t channel);
LK_KERNEL lk_planes_to_image(float *out, const float *x, uint64_t n, lk_divisor plane);
LK_KERNEL lk_filter_rows(uint8_t *out, const uint8_t *pixels, uint64_t row_bytes, uint64_t height, uint32_t step);
