// Floats and bytes of images, masks from channels, planes to pixels, and the filters of PNG rows.
#pragma once

#include "kernels/grid.h"
#include "kernels/kernels.h"
#include "shared/filter.h"
#include "shared/levels.h"

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
