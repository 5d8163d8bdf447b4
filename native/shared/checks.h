/*
 * Argument checks of the operations, shared by the CPU core and the CUDA backend, so that both return the same status.
 * For the CPU only. *nothing: the arguments are valid and there is nothing to do.
 */
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "engine.h"

namespace latentkit {

/* *product = a * b; false if it overflows. */
inline bool multiply(size_t a, size_t b, size_t *product) { return !__builtin_mul_overflow(a, b, product); }

/* Elements of a shape; false if they overflow. */
inline bool elements(const engine_shape4 &shape, size_t *count) {
  return multiply(shape.n, shape.c, count) && multiply(*count, shape.h, count) && multiply(*count, shape.w, count);
}

/* Sides of planes that kernels index with 32 bits. */
inline bool fits_planes(size_t in_h, size_t in_w, size_t out_h, size_t out_w) {
  return in_h <= INT32_MAX && in_w <= INT32_MAX && out_h <= INT32_MAX && out_w <= INT32_MAX;
}

/* Whether `size` of a whole lie inside it, those from `from` on. */
inline bool is_inside(size_t from, size_t size, size_t whole) { return size <= whole && from <= whole - size; }

/* A sum of operands, which out holds *copies times. */
inline engine_status check_sum(size_t out_len, const engine_cf32 *x, size_t count, size_t *copies) {
  if (count == 0 || count > ENGINE_MAX_TERMS) return ENGINE_BAD_ARGUMENT;
  const size_t n = x[0].len;
  for (size_t k = 1; k < count; k++) {
    if (x[k].len != n) return ENGINE_BAD_LENGTH;
  }
  if (n == 0 ? out_len != 0 : out_len == 0 || out_len % n != 0) return ENGINE_BAD_LENGTH;
  *copies = n == 0 ? 1 : out_len / n;
  return ENGINE_OK;
}

inline engine_status check_resize(size_t out_len, size_t x_len, size_t planes, size_t in_h, size_t in_w, size_t out_h,
                                  size_t out_w, bool *nothing) {
  size_t in_count, out_count;
  if (!elements({1, planes, in_h, in_w}, &in_count) || !elements({1, planes, out_h, out_w}, &out_count)) {
    return ENGINE_BAD_LENGTH;
  }
  if (x_len != in_count || out_len != out_count) return ENGINE_BAD_LENGTH;
  *nothing = out_count == 0;
  if (*nothing) return ENGINE_OK;
  if (in_count == 0) return ENGINE_BAD_LENGTH;
  return fits_planes(in_h, in_w, out_h, out_w) ? ENGINE_OK : ENGINE_BAD_ARGUMENT;
}

inline engine_status check_blend(size_t out_len, size_t a_len, size_t b_len, size_t mask_len, size_t batch,
                                 size_t channels, size_t plane, size_t mask_batch, bool *nothing) {
  size_t count, mask_count;
  if (!elements({1, batch, channels, plane}, &count) || !multiply(mask_batch, plane, &mask_count)) {
    return ENGINE_BAD_LENGTH;
  }
  if (out_len != count || a_len != count || b_len != count || mask_len != mask_count) return ENGINE_BAD_LENGTH;
  *nothing = count == 0;
  return *nothing || mask_batch > 0 ? ENGINE_OK : ENGINE_BAD_ARGUMENT;
}

inline engine_status check_add_masked(size_t destination_len, const engine_shape4 &shape, size_t source_len,
                                      const engine_area &area, size_t mask_len, size_t mask_batch, bool *nothing) {
  size_t count, source_count, mask_count;
  if (!elements(shape, &count) || !elements({shape.n, shape.c, area.h, area.w}, &source_count) ||
      !elements({1, mask_batch, area.h, area.w}, &mask_count)) {
    return ENGINE_BAD_LENGTH;
  }
  if (destination_len != count || source_len != source_count || mask_len != mask_count) return ENGINE_BAD_LENGTH;
  if (!is_inside(area.y, area.h, shape.h) || !is_inside(area.x, area.w, shape.w)) return ENGINE_BAD_ARGUMENT;
  *nothing = source_count == 0;
  return *nothing || mask_batch == 1 || mask_batch == shape.n ? ENGINE_OK : ENGINE_BAD_ARGUMENT;
}

/* Whether x has `items` equal parts. */
inline engine_status check_items(size_t items, size_t x_len) {
  return items == 0 ? (x_len == 0 ? ENGINE_OK : ENGINE_BAD_LENGTH) : x_len % items == 0 ? ENGINE_OK : ENGINE_BAD_LENGTH;
}

struct Overlap {
  size_t from, to, count; /* first position in the source, in the destination, and how many */
};

inline Overlap overlap(int64_t offset, size_t source, size_t destination) {
  // magnitudes first: the least int64 cannot be negated
  size_t shift = offset < 0 ? 0 - static_cast<size_t>(offset) : static_cast<size_t>(offset);
  if (offset < 0) {
    if (shift >= source) return {0, 0, 0};
    return {shift, 0, std::min(source - shift, destination)};
  }
  if (shift >= destination) return {0, 0, 0};
  return {0, shift, std::min(source, destination - shift)};
}

/* mask_len 0: no mask. */
inline engine_status check_composite(size_t destination_len, const engine_shape4 &shape, size_t source_len,
                                     const engine_shape4 &source_shape, int64_t x, int64_t y, size_t mask_len,
                                     size_t mask_batch, Overlap *across, Overlap *down, bool *nothing) {
  size_t count, source_count, mask_count;
  if (!elements(shape, &count) || !elements(source_shape, &source_count) ||
      !elements({1, mask_batch, source_shape.h, source_shape.w}, &mask_count)) {
    return ENGINE_BAD_LENGTH;
  }
  if (destination_len != count || source_len != source_count) return ENGINE_BAD_LENGTH;
  if (mask_len > 0 && mask_len != mask_count) return ENGINE_BAD_LENGTH;
  if (source_shape.c != shape.c && source_shape.c != 1) return ENGINE_BAD_LENGTH;
  *across = overlap(x, source_shape.w, shape.w);
  *down = overlap(y, source_shape.h, shape.h);
  *nothing = count == 0 || source_count == 0 || across->count == 0 || down->count == 0;
  return ENGINE_OK;
}

inline engine_status check_inject(size_t out_len, size_t base_len, size_t noise_len,
                                  const engine_inject_options &options) {
  if (out_len != base_len || noise_len != base_len) return ENGINE_BAD_LENGTH;
  if (options.mix > 0.0 && options.random.len != base_len) return ENGINE_BAD_LENGTH;
  if (!std::isfinite(options.strength) || !std::isfinite(options.mix)) return ENGINE_BAD_ARGUMENT;
  if (options.mask.len == 0) return ENGINE_OK;
  const engine_shape4 &shape = options.shape;
  size_t count, mask_count;
  if (!elements(shape, &count) || count != base_len) return ENGINE_BAD_LENGTH;
  if (!elements({1, options.mask_n, options.mask_h, options.mask_w}, &mask_count)) return ENGINE_BAD_LENGTH;
  if (mask_count != options.mask.len) return ENGINE_BAD_LENGTH;
  if (options.mask_n > shape.n && count > 0) return ENGINE_BAD_LENGTH;
  return fits_planes(options.mask_h, options.mask_w, shape.h, shape.w) ? ENGINE_OK : ENGINE_BAD_ARGUMENT;
}

/* The factors of the mix: f32(1-m), f32(m) and f32(sqrt(m^2 + (1-m)^2)). */
struct MixFactors {
  float keep, add, length;

  explicit MixFactors(double mix) : keep(static_cast<float>(1.0 - mix)), add(static_cast<float>(mix)) {
    const double rest = 1.0 - mix;
    length = static_cast<float>(std::sqrt(mix * mix + rest * rest));
  }
};

inline engine_status check_channel(size_t out_len, size_t image_len, int channels, int channel) {
  if (channels != 1 && channels != 3 && channels != 4) return ENGINE_BAD_ARGUMENT;
  if (channel < 0 || channel > 2) return ENGINE_BAD_ARGUMENT;
  size_t count;
  const bool fits = multiply(out_len, static_cast<size_t>(channels), &count) && image_len == count;
  return fits ? ENGINE_OK : ENGINE_BAD_LENGTH;
}

inline engine_status check_planes_to_image(size_t out_len, size_t x_len, size_t batch, bool *nothing) {
  if (out_len != x_len) return ENGINE_BAD_LENGTH;
  *nothing = x_len == 0;
  if (*nothing) return ENGINE_OK;
  return batch == 0 || x_len % batch != 0 || x_len / batch % 3 != 0 ? ENGINE_BAD_LENGTH : ENGINE_OK;
}

constexpr size_t kPhiloxBlock = 256;

/* A launch of PyTorch's generator for n values: as many blocks as they need, at most the cap, and rows of counters. */
struct PhiloxLaunch {
  size_t threads;
  uint64_t rows; /* 0 if n is 0 */

  /* Increment of the generator's offset. */
  uint64_t moved() const { return 4 * rows; }
};

inline engine_status check_philox(size_t n, uint64_t offset, uint32_t cap, PhiloxLaunch *launch) {
  *launch = {};
  if (offset % 4 != 0 || cap % kPhiloxBlock != 0 || n > SIZE_MAX - kPhiloxBlock) return ENGINE_BAD_ARGUMENT;
  if (n == 0) return ENGINE_OK;
  const size_t needed = (n + kPhiloxBlock - 1) / kPhiloxBlock * kPhiloxBlock;
  launch->threads = cap == 0 ? needed : std::min<size_t>(needed, cap);
  launch->rows = (n - 1) / (4 * launch->threads) + 1;
  return ENGINE_OK;
}

}  // namespace latentkit
