// The compute pool. Work is cut into chunks that do not depend on the number of threads, so neither do results.
#pragma once

#include <cstddef>
#include <type_traits>

#include "engine.h"

namespace latentkit {

using ChunkBody = void (*)(void *context, size_t chunk);

/* Calls body(context, chunk) for every chunk below `chunks`, on the caller and the pool's threads, and returns when all
 * are done. Inside a body, and while another caller uses the pool, everything runs on the calling thread.
 * A body must not throw. */
void run_chunks(size_t chunks, ChunkBody body, void *context) noexcept;

template <class Body>
void for_chunks(size_t chunks, Body &&body) {
  using Plain = std::remove_reference_t<Body>;
  auto call = [](void *context, size_t chunk) { (*static_cast<Plain *>(context))(chunk); };
  run_chunks(chunks, call, &body);
}

/* Elements of one chunk of a large span. */
constexpr size_t kGrain = 32768;

/* body(begin, end) over [0, n) in pieces of `grain`; one piece where n is small. */
template <class Body>
void for_ranges(size_t n, size_t grain, Body &&body) {
  if (n == 0) return;
  if (n <= ENGINE_PARALLEL_MIN) return body(size_t{0}, n);
  for_chunks((n + grain - 1) / grain, [&](size_t chunk) {
    size_t begin = chunk * grain;
    body(begin, n - begin < grain ? n : begin + grain);
  });
}

}  // namespace latentkit
