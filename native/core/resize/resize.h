// Pictures whose rows are resized over the pool, and the methods of engine_resize.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/runtime.h"

namespace latentkit {

/* Kernels read lists in whole vectors: this many past the last may be read. */
constexpr size_t kPadding = 16;

/* Planes have one channel; pixels have `channels` values side by side. All sizes are above 0. */
struct Pictures {
  size_t count, in_h, in_w, out_h, out_w, channels;

  size_t in_row() const { return in_w * channels; }
  size_t out_row() const { return out_w * channels; }
  size_t in_picture() const { return in_h * in_row(); }
  size_t out_size() const { return count * out_h * out_row(); }
};

/* Calls row(state, picture, y) for each row of the results. Each worker has its own state, make(memory), with
 * `room` floats of memory. `work`: how many floats a row reads or writes. Throws std::bad_alloc. */
template <class Make, class Row>
void for_rows(const Pictures &of, size_t work, size_t room, Make &&make, Row &&row) {
  const size_t total = of.count * of.out_h;
  const size_t rows_per_block = total * work <= ENGINE_PARALLEL_MIN ? total : work >= kGrain ? 1 : kGrain / work;
  const size_t blocks = (total + rows_per_block - 1) / rows_per_block;
  for_workers(blocks, room * sizeof(float), [&](uint8_t *memory, auto &&take) {
    auto state = make(reinterpret_cast<float *>(memory));
    for (size_t block; take(&block);) {
      const size_t end = std::min(total, (block + 1) * rows_per_block);
      for (size_t i = block * rows_per_block; i < end; i++) row(state, i / of.out_h, i % of.out_h);
    }
  });
}

/* How many of the leading pixels of an output row may be read and written as four floats; last(i): where the last value
 * that pixel i reads begins. */
template <class Last>
size_t whole_pixels(const Pictures &of, Last &&last) {
  size_t i = 0;
  while (i < of.out_w && last(i) + 4 <= of.in_row() && i * of.channels + 4 <= of.out_row()) i++;
  return i;
}

/* Whether the kernels for pixels take them. */
inline bool fills_vector(const Pictures &of) { return of.channels == 3 || of.channels == 4; }

/* The methods of engine_resize. Sizes are checked; all of them throw std::bad_alloc. */
void resize_nearest(float *out, const float *x, const Pictures &of);
void resize_bilinear(float *out, const float *x, const Pictures &of);
void resize_bicubic(float *out, const float *x, const Pictures &of);
void resize_area(float *out, const float *x, const Pictures &of);
void resize_bytes(float *out, const float *x, const Pictures &of, int method);
void resize_bislerp(float *out, const float *x, const engine_resize_options &options);

}  // namespace latentkit
