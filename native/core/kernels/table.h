/*
 * The kernels of one instruction set. Every set is the same source compiled with other flags, and gives the same bits.
 * Plain C on purpose: a unit compiled for AVX-512 must not share an inline function with one that is not.
 * Kernels check nothing: their callers check lengths and pointers. `stream`: write around the caches.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Bits on their way into a deflate stream. Whole bytes are written, never at or past limit. */
typedef struct lk_bits {
  uint8_t *next, *limit;
  uint64_t bits;  /* not yet written, from the lowest */
  uint32_t count; /* fewer than 8 between calls */
} lk_bits;

/* The codes of a block, each entry bits << 8 | number of bits; lengths hold their extra bits. */
typedef struct lk_codes {
  uint32_t literal[256]; /* at most 14 bits each: four of them and 7 more fit into 64 */
  uint32_t length[256];  /* of a match, less 3 */
  uint32_t distance[30]; /* by distance symbol */
  uint32_t end;
} lk_codes;

/* Literals, then a match. */
typedef struct lk_sequence {
  uint32_t literals;
  uint16_t length, distance; /* 3 to 258; 1 to 32768 */
} lk_sequence;

/* 2^(i / LK_POWERS) from 1 up: rounded, and what the rounding left. */
#define LK_POWER_BITS 7
#define LK_POWERS (1 << LK_POWER_BITS)
typedef struct lk_powers {
  float high[LK_POWERS], low[LK_POWERS];
} lk_powers;

/* Bytes to one anchor on average, in data without runs; every byte of a run of zeros is one. */
#define LK_ANCHOR_SPACING 64

#define LK_MT_WORDS 624
/* Streams of MT19937 that are seeded at once: one seeding waits for its own last word at every word. */
#define LK_SEEDED_AT_ONCE 16

/* Elements of a Brownian path that are cut at once: the right halves that a request needs fit into the first cache. */
#define LK_PIECE 192

/* An increment of a range of elements, or of one piece of it after the other in the same memory. */
typedef struct lk_part {
  const float *x;
  int is_piece;
} lk_part;

/* One cut of an increment: its left half lies over the normals, or was made before. The right one has memory for a
 * piece; NULL if nothing needs it, which is never the case for a left half that was made before. */
typedef struct lk_cut {
  lk_part whole;
  float *left, *right;
  float length, reciprocal, spread;
  int is_drawn;
} lk_cut;

typedef struct lk_kernels {
  /* States of MT19937 for `count` seeds, LK_SEEDED_AT_ONCE at most; that of a stream begins `pitch` words after the one
   * before. If count is not 1, there is room for LK_SEEDED_AT_ONCE states, and there are as many seeds. */
  void (*mt_seed)(uint32_t *states, size_t pitch, const uint32_t *seeds, size_t count);
  /* The n next raw words of MT19937 from the last 624 of them, which are replaced; n >= 624. The state is followed by
   * memory for 3 words that may be read. */
  void (*mt_extend)(uint32_t *state, uint32_t *out, size_t n);
  /* Raw words to normals in blocks of 16; out may be the words. */
  void (*mt_normals)(float *out, const uint32_t *words, size_t blocks);
  /* Philox 4x32-10 of the counters (row, thread + i), i < n: word k goes to words[k][i]. */
  void (*philox_words)(uint32_t *const words[4], size_t n, uint64_t seed, uint64_t row, uint64_t thread);
  /* The normals of the same counters: lane k goes to lanes[k][i]; a suffix of the lanes may be NULL. */
  void (*philox_normals)(float *const lanes[4], size_t n, uint64_t seed, uint64_t row, uint64_t thread, float k);

  void (*scale)(float *out, const float *x, float k, size_t n, int stream);
  void (*divide)(float *out, const float *x, float k, size_t n, int stream);
  void (*axpy)(float *out, const float *x, const float *y, float k, size_t n, int stream);
  void (*average)(float *out, const float *x, const float *y, size_t n, int stream);
  void (*lerp)(float *out, const float *a, const float *b, float t, size_t n, int stream);
  /* Sum of coefficients[k] * x[k], 1 to 8 of them, `copies` times, at every `pitch` elements of out. */
  void (*weighted_sum)(float *out, size_t copies, size_t pitch, const float *const *x, const double *coefficients,
                       size_t count, size_t n, int stream);
  /* (p * x + q * y) / d */
  void (*mix)(float *out, const float *x, const float *y, float p, float q, float d, size_t n, int stream);
  /* m * a + (1 - m) * b */
  void (*blend)(float *out, const float *a, const float *b, const float *mask, size_t n, int stream);
  /* base + x * mask */
  void (*add_product)(float *out, const float *base, const float *x, const float *mask, size_t n, int stream);

  /* Makes the cuts of n elements, piece by piece, and of each piece the sum of the terms, from the first to the last,
   * divided. */
  void (*cut_range)(float *out, const lk_cut *cuts, size_t count, const lk_part *terms, size_t term_count,
                    float divisor, size_t n);

  /* Sums of one leaf of shared/tree.h, in double: of x, and of (x - mean)^2. */
  double (*sum)(const float *x, size_t n);
  double (*squares)(const float *x, size_t n, double mean);
  /* The same of ScaledError. */
  double (*scaled_errors)(const float *low, const float *high, const float *previous, size_t n, double atol,
                          double rtol);

  /* origin + step * first, origin + step * (first + 1) …, one rounding each. */
  void (*ramp)(float *out, size_t n, float origin, float step, int32_t first);
  /* e^x in place, within 0.57 ulp; |x| <= 87. */
  void (*exponentials)(float *x, size_t n, const lk_powers *powers);

  void (*to_bytes)(uint8_t *out, const float *x, size_t n, int stream);
  void (*from_bytes)(float *out, const uint8_t *x, size_t n, int stream);
  void (*channel_mask)(float *out, const float *image, int channels, int channel, size_t pixels, int stream);

  /* Red, green and blue of n pixels side by side, clamped to 0 … 1; NaN is 0. */
  void (*colours_last)(float *out, const float *red, const float *green, const float *blue, size_t n);

  /* Three planes of n values each, `stride` apart as those of x are; the arithmetic is in engine_latent_to_rgb. */
  void (*latent_colours)(float *out, const float *x, size_t stride, size_t n, size_t channels, const double *factors,
                         const double *bias, double shift, double scale);

  /*
   * Across a row of a bilinear resize: w0 * row[i0] + w1 * row[i1], the second term added by fma; the row has `len`
   * floats. Works in whole vectors: up to 15 past n are read of indices, all of them within the row, and weights, and
   * written of out.
   */
  void (*resize_across)(float *out, const float *row, size_t len, const int32_t *i0, const int32_t *i1, const float *w0,
                        const float *w1, size_t n);
  /* Between two such rows: f0 * top + f1 * bottom, the second term added by fma; up to 15 past n are read of them. */
  void (*resize_between)(float *out, const float *top, const float *bottom, float f0, float f1, size_t n, int stream);
  /* resize_between, clamped to 0 … 1, NaN 0; and the bytes that to_bytes makes of these floats. */
  void (*resize_between_in_unit)(float *out, const float *top, const float *bottom, float f0, float f1, size_t n,
                                 int stream);
  void (*resize_between_bytes)(uint8_t *out, const float *top, const float *bottom, float f0, float f1, size_t n,
                               int stream);

  /* row[at[i]] */
  void (*nearest_across)(float *out, const float *row, const int32_t *at, size_t n);
  /*
   * Across a row of a bicubic resize: the sum of weights[k * stride + i] * row[at[k * stride + i]] over four k, in
   * their order; otherwise as resize_across. cubic_between: the same between four such rows.
   */
  void (*cubic_across)(float *out, const float *row, size_t len, const int32_t *at, const float *weights, size_t stride,
                       size_t n);
  void (*cubic_between)(float *out, const float *const rows[4], const float weights[4], size_t n, int stream);
  /*
   * Means of windows of `rows` rows, `len` floats apart: window i has widths[i] values from first[i], `step` apart,
   * that is `least` or one more; then more[i] is the last, else first[i]; more is NULL if none has one more. Up to
   * 15 past n are read of these lists.
   */
  void (*area_across)(float *out, const float *top, size_t len, size_t rows, const int32_t *first, const int32_t *more,
                      const float *widths, size_t least, size_t step, size_t n);

  /*
   * Pixels of 3 or 4 channels, in rows of a resize; `at` counts floats. The first `inside` of the n pixels may be read,
   * and written, as four floats whatever their channels. Each has two, four or one of `at` and weights, side by side;
   * the arithmetic is that of resize_across, cubic_across, nearest_across and area_across. shares: 1 / widths if all
   * of these are powers of two, else NULL.
   */
  void (*linear_pixels)(float *out, const float *row, const int32_t *at, const float *weights, size_t channels,
                        size_t inside, size_t n);
  void (*cubic_pixels)(float *out, const float *row, const int32_t *at, const float *weights, size_t channels,
                       size_t inside, size_t n);
  void (*nearest_pixels)(float *out, const float *row, const int32_t *at, size_t channels, size_t inside, size_t n);
  void (*area_pixels)(float *out, const float *top, size_t len, size_t rows, const int32_t *first, const float *widths,
                      const float *shares, size_t channels, size_t inside, size_t n);

  /* The values x [rows, columns], rows `stride` apart, as out [columns, rows], these `out_stride` apart. */
  void (*transpose_bytes)(uint8_t *out, size_t out_stride, const uint8_t *x, size_t stride, size_t rows,
                          size_t columns);
  void (*transpose_floats)(float *out, size_t out_stride, const float *x, size_t stride, size_t rows, size_t columns);
  /*
   * Weighted sums of `taps` rows of n bytes, `stride` apart: (sum + 2^21) >> 22, clipped to 0 … 255. Weights are those
   * of two rows at a time, the odd one out with 0: their low 15 bits side by side in one word, the bits above, with the
   * sign, in the next.
   */
  void (*weigh_bytes)(uint8_t *out, const uint8_t *rows, size_t stride, const uint32_t *weights, size_t taps, size_t n);
  /* The same of floats: from 0 on, each product added in double and the sum rounded to float. */
  void (*weigh_floats)(float *out, const float *rows, size_t stride, const float *weights, size_t taps, size_t n);

  /* One row of a PNG, n bytes in pixels of `step` (1, 2, 3, 4, 6 or 8), its filter (0 to 4) undone; `above` is the row
   * before, undone. out may overlap row if it begins at least a byte in front of it. */
  void (*unfilter)(int filter, uint8_t *out, const uint8_t *row, const uint8_t *above, size_t n, size_t step);

  /* One row of a PNG: the filter whose bytes have the least sum of distances from 0, the lowest of equals, then its n
   * bytes. `step`: bytes of a pixel, at most 4 and at most n. */
  void (*filter_row)(uint8_t *out, const uint8_t *row, const uint8_t *above, size_t n, size_t step);
  /* filter_row with this filter, 0 to 4. */
  void (*filter_row_by)(int filter, uint8_t *out, const uint8_t *row, const uint8_t *above, size_t n, size_t step);
  /* Bit i of masks[w]: an anchor is at 64 w + i, chosen by the four bytes there; reads 3 bytes more than 64 words. */
  void (*anchors)(uint64_t *masks, const uint8_t *raw, size_t words);
  /* Adds to counts[b] how often each byte b is among the n, below 2^32. */
  void (*count_bytes)(uint32_t counts[256], const uint8_t *raw, size_t n);
  /* The codes of the sequences, then of the literals that are left of the `len` bytes at `raw`. */
  void (*put_symbols)(lk_bits *to, const lk_codes *codes, const uint8_t *raw, size_t len, const lk_sequence *sequences,
                      size_t count);
} lk_kernels;

/* Each kernel unit fills its part of the table of its own set: lk_noise_avx2(&table) … */
// clang-format off
#define LK_PARTS(X, isa)                                                                        \
  X(brownian, isa) X(deflate, isa) X(elementwise, isa) X(noise, isa) X(pixels, isa) X(png, isa) \
  X(reduce, isa) X(resize, isa) X(weigh, isa)
// clang-format on
#define LK_JOIN_(part, isa) lk_##part##_##isa
#define LK_JOIN(part, isa) LK_JOIN_(part, isa)
#define LK_DECLARE(part, isa) void LK_JOIN(part, isa)(lk_kernels * table);

#ifdef __cplusplus
extern "C" {
#endif
LK_PARTS(LK_DECLARE, baseline)
LK_PARTS(LK_DECLARE, avx2)
LK_PARTS(LK_DECLARE, avx512)
#ifdef __cplusplus
}
#endif
