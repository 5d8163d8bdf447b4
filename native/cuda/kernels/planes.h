// Bilinear resizes, blends through masks that may be resized on the way, and pasting; floats and bytes of images, and
// the filters of PNG rows.
#pragma once

#include "kernels/kernels.h"
#include "kernels/thread.h"
#include "shared/elementwise.h"
#include "shared/pixels.h"
#include "shared/resample.h"

namespace {

/* The value at (y, x) of a resized plane: across both rows, then between them, as the CPU does. */
LK_INLINE float resized(const float *plane, const lk_sizes &sizes, uint32_t y, uint32_t x) {
  Tap down = tap_at(y, sizes.in_h, sizes.ratio_y), across = tap_at(x, sizes.in_w, sizes.ratio_x);
  const float *top = plane + (uint64_t)down.first * sizes.in_w, *bottom = plane + (uint64_t)down.second * sizes.in_w;
  float first = weighted(top[across.first], across.first_weight, top[across.second], across.second_weight);
  float second = weighted(bottom[across.first], across.first_weight, bottom[across.second], across.second_weight);
  return weighted(first, down.first_weight, second, down.second_weight);
}

/* A position in a mask. */
struct MaskPosition {
  const float *plane;
  uint64_t within;
};

/* The position for element i of [batch, channels, plane]. */
LK_INLINE MaskPosition position_in(const lk_mask &mask, uint64_t i) {
  Divided at = divided(i, mask.plane);
  if (mask.count.by == 1) return {mask.data, at.rest};
  uint64_t image = divided(divided(at.quotient, mask.channels).quotient, mask.count).rest;
  uint64_t size = mask.resized ? (uint64_t)mask.sizes.in_h * mask.sizes.in_w : mask.plane.by;
  return {mask.data + image * size, at.rest};
}

LK_INLINE float mask_at(const lk_mask &mask, uint64_t i) {
  MaskPosition position = position_in(mask, i);
  if (!mask.resized) return position.plane[position.within];
  Divided at = divided(position.within, mask.sizes.w);
  return resized(position.plane, mask.sizes, (uint32_t)at.quotient, (uint32_t)at.rest);
}

/* True if the mask of every four elements from a multiple of 4 on lies in one plane, readable at once. */
LK_INLINE bool quads_of(const lk_mask &mask) { return mask.plane.by % 4 == 0 && (mask.resized || aligned(mask.data)); }

/* The mask of elements i to i + 3, if quads_of allows it. */
LK_INLINE float4 mask4_at(const lk_mask &mask, uint64_t i) {
  MaskPosition position = position_in(mask, i);
  if (!mask.resized) return load4(position.plane + position.within);
  Divided at = divided(position.within, mask.sizes.w);
  uint32_t y = (uint32_t)at.quotient, x = (uint32_t)at.rest;
  float m[4];
  for (int k = 0; k < 4; k++) {
    m[k] = resized(position.plane, mask.sizes, y, x);
    if (++x == mask.sizes.w.by) x = 0, y++;
  }
  return {m[0], m[1], m[2], m[3]};
}

/* body(destination, source, mask) for each of the n elements that are covered; the mask is NULL for none. */
template <class Body>
LK_INLINE void for_pasted(const lk_paste &p, uint64_t n, Body body) {
  for_each(n, [=](uint64_t i) {
    Divided column = divided(i, p.width), line = divided(column.quotient, p.height);
    Divided channel = divided(line.quotient, p.channels);
    uint64_t image = channel.quotient, y = p.from_y + line.rest, x = p.from_x + column.rest;
    uint64_t plane = divided(image, p.source_n).rest * p.source_c + (p.source_c == 1 ? 0 : channel.rest);
    float s = p.source[(plane * p.source_h + y) * p.source_w + x];
    float *d = p.destination + (line.quotient * p.h + p.to_y + line.rest) * p.w + p.to_x + column.rest;
    if (p.mask == nullptr) return body(d, s, nullptr);
    body(d, s, p.mask + (divided(image, p.mask_n).rest * p.source_h + y) * p.source_w + x);
  });
}

}  // namespace

LK_KERNEL lk_resize(float *out, const float *x, uint64_t n, lk_sizes sizes) {
  for_each(n, [=](uint64_t i) {
    Divided row = divided(i, sizes.w), plane = divided(row.quotient, sizes.h);
    const float *from = x + plane.quotient * sizes.in_h * sizes.in_w;
    out[i] = resized(from, sizes, (uint32_t)plane.rest, (uint32_t)row.rest);
  });
}

LK_KERNEL lk_blend(float *out, const float *a, const float *b, lk_mask mask, uint64_t n) {
  const Blend op;
  for_quads(
      n, aligned(out) && aligned(a) && aligned(b) && quads_of(mask),
      [=](uint64_t i) {
        float4 m = mask4_at(mask, i), u = load4(a + i), v = load4(b + i);
        store4(out + i, float4{op(m.x, u.x, v.x), op(m.y, u.y, v.y), op(m.z, u.z, v.z), op(m.w, u.w, v.w)});
      },
      [=](uint64_t i) { out[i] = op(mask_at(mask, i), a[i], b[i]); });
}

LK_KERNEL lk_composite(lk_paste paste, uint64_t n) {
  const Blend op;
  for_pasted(paste, n, [=](float *d, float s, const float *m) { *d = m == nullptr ? s : op(*m, s, *d); });
}

LK_KERNEL lk_add_masked(lk_paste paste, uint64_t n) {
  const AddProduct op;
  for_pasted(paste, n, [=](float *d, float s, const float *m) { *d = op(*d, s, *m); });
}

namespace {

LK_INLINE uint8_t byte_of(float x) { return (uint8_t)to_level(x); }

/* One row of a picture; above is NULL in front of the first. */
struct FilterRow {
  const uint8_t *row, *above;
  uint32_t step;

  template <Filter F>
  LK_INLINE uint8_t byte(uint64_t i) const {
    uint8_t left = i < step ? 0 : row[i - step], up = above == nullptr ? 0 : above[i];
    uint8_t corner = i < step || above == nullptr ? 0 : above[i - step];
    return (uint8_t)(row[i] - predict_byte<F>(left, up, corner));
  }

  LK_INLINE uint8_t byte(uint32_t filter, uint64_t i) const {
    switch (filter) {
      case kSub: return byte<kSub>(i);
      case kUp: return byte<kUp>(i);
      case kAverage: return byte<kAverage>(i);
      case kPaeth: return byte<kPaeth>(i);
      default: return byte<kNone>(i);
    }
  }
};

/* Costs of a row by filter. */
struct Costs {
  uint64_t of[kFilters];
};

/* The cheapest filter for a row of n bytes; the warp computes it together. */
LK_INLINE uint32_t cheapest(const FilterRow &row, uint64_t n) {
  Costs costs = {};
  for (uint64_t i = threadIdx.x % kWarp; i < n; i += kWarp) {
    costs.of[kNone] += byte_cost(row.byte<kNone>(i));
    costs.of[kSub] += byte_cost(row.byte<kSub>(i));
    costs.of[kUp] += byte_cost(row.byte<kUp>(i));
    costs.of[kAverage] += byte_cost(row.byte<kAverage>(i));
    costs.of[kPaeth] += byte_cost(row.byte<kPaeth>(i));
  }
  for (unsigned width = kWarp / 2; width > 0; width /= 2) {
    const Costs other = from_lane_above(costs, width);
    for (int k = 0; k < kFilters; k++) costs.of[k] += other.of[k];
  }
  uint32_t best = kNone;
  uint64_t least = costs.of[kNone];
  for (uint32_t k = 1; k < kFilters; k++) {
    if (costs.of[k] < least) best = k, least = costs.of[k];
  }
  // lane 0 has the whole sums
  return shuffled(best, 0);
}

}  // namespace

LK_KERNEL lk_to_bytes(uint8_t *out, const float *x, uint64_t n) {
  for_quads(
      n, aligned(x) && aligned(out, 4),
      [=](uint64_t i) {
        float4 v = load4(x + i);
        *(uchar4 *)(out + i) = uchar4{byte_of(v.x), byte_of(v.y), byte_of(v.z), byte_of(v.w)};
      },
      [=](uint64_t i) { out[i] = byte_of(x[i]); });
}

LK_KERNEL lk_from_bytes(float *out, const uint8_t *x, uint64_t n) {
  for_quads(
      n, aligned(x, 4) && aligned(out),
      [=](uint64_t i) {
        uchar4 v = *(const uchar4 *)(x + i);
        store4(out + i, float4{from_level(v.x), from_level(v.y), from_level(v.z), from_level(v.w)});
      },
      [=](uint64_t i) { out[i] = from_level(x[i]); });
}

LK_KERNEL lk_channel_mask(float *out, const float *image, uint64_t n, uint32_t channels, uint32_t channel) {
  for_each(n, [=](uint64_t i) { out[i] = mean_of_three(image[i * channels + channel]); });
}

LK_KERNEL lk_planes_to_image(float *out, const float *x, uint64_t n, lk_divisor plane) {
  for_each(n, [=](uint64_t i) {
    Divided at = divided(i, plane);
    const float *red = x + at.quotient * 3 * plane.by + at.rest;
    out[3 * i] = in_unit(red[0]);
    out[3 * i + 1] = in_unit(red[plane.by]);
    out[3 * i + 2] = in_unit(red[2 * plane.by]);
  });
}

/* A warp to a row. */
LK_KERNEL lk_filter_rows(uint8_t *out, const uint8_t *pixels, uint64_t row_bytes, uint64_t height, uint32_t step) {
  const unsigned lane = threadIdx.x % kWarp;
  for (uint64_t y = first_index() / kWarp; y < height; y += index_step() / kWarp) {
    const uint8_t *here = pixels + y * row_bytes;
    const FilterRow row = {here, y == 0 ? nullptr : here - row_bytes, step};
    const uint32_t best = cheapest(row, row_bytes);
    uint8_t *line = out + y * (row_bytes + 1);
    if (lane == 0) *line = (uint8_t)best;
    for (uint64_t i = lane; i < row_bytes; i += kWarp) line[1 + i] = row.byte(best, i);
  }
}
