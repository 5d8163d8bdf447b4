// Planes or pixels that are resized one by one, and the rows of their results, split over the pool.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "engine.h"
#include "runtime/parallel.h"
#include "runtime/scratch.h"

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

/* Calls body(memory, take) once in each worker, with `room` bytes of memory of its own; take(&block) gives it the next
 * of `blocks`, in rising order, and is false where none is left. Throws std::bad_alloc. */
template <class Body>
void for_workers(size_t blocks, size_t room, Body &&body) {
  const size_t workers = std::min(blocks, static_cast<size_t>(engine_threads()));
  // bodies must not throw, so all of them get their memory here; each goes from block to block with its own, still warm
  const Scratch memory = scratch(std::max<size_t>(workers * room, 1));
  std::atomic<size_t> next{0};
  const auto take = [&](size_t *block) { return (*block = next.fetch_add(1, std::memory_order_relaxed)) < blocks; };
  for_chunks(workers, [&](size_t worker) { body(memory.get() + worker * room, take); });
}

/* Calls row(state, picture, y) for each row of the results. Each worker has a state of its own, make(memory), with
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

}  // namespace latentkit
