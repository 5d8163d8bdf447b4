// Shared by every operation: the kernels in use, the thread pool, cached memory, and two rules about spans.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>

#include "engine.h"
#include "kernels/table.h"

namespace latentkit {

/* ---- kernels: the instruction set in use ---- */
enum class Isa { baseline, avx2, avx512 };

Isa isa();
const lk_kernels &kernels();

/* ---- the pool: chunks do not depend on the number of threads, so results do not either ---- */
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

/* body(begin, end) over [0, n) in ranges of `grain`. */
template <class Body>
void for_grains(size_t n, size_t grain, Body &&body) {
  for_chunks((n + grain - 1) / grain, [&](size_t chunk) {
    size_t begin = chunk * grain;
    body(begin, n - begin < grain ? n : begin + grain);
  });
}

/* for_grains; one range if n is small. */
template <class Body>
void for_ranges(size_t n, size_t grain, Body &&body) {
  if (n == 0) return;
  if (n <= ENGINE_PARALLEL_MIN) return body(size_t{0}, n);
  for_grains(n, grain, body);
}

/* for_ranges over items of `size` elements each: a range has about kGrain elements. */
template <class Body>
void for_items(size_t count, size_t size, Body &&body) {
  if (count == 0) return;
  if (count * size <= ENGINE_PARALLEL_MIN) return body(size_t{0}, count);
  for_grains(count, size < kGrain ? kGrain / size : 1, body);
}

/* ---- scratch: a cache of large blocks, since the pages of fresh memory cost more than the work in them ---- */
/* Frees all cached blocks. */
void drop_scratch();

struct GiveScratch {
  void operator()(uint8_t *block) const { engine_scratch_give(block); }
};
using Scratch = std::unique_ptr<uint8_t[], GiveScratch>;

/* Memory that is written before it is read. Throws std::bad_alloc. */
inline Scratch scratch(size_t bytes) {
  auto *block = static_cast<uint8_t *>(engine_scratch_take(bytes));
  if (block == nullptr) throw std::bad_alloc();
  return Scratch(block);
}

/* Calls body(memory, take) once in each worker, each with its own `room` bytes of memory; take(&block) gives it the
 * next of `blocks`, in rising order, and is false when none is left. Throws std::bad_alloc. */
template <class Body>
void for_workers(size_t blocks, size_t room, Body &&body) {
  const size_t workers = std::min(blocks, static_cast<size_t>(engine_threads()));
  // bodies must not throw, so all of them get their memory here; each reuses its own, still warm, from block to block
  const Scratch memory = scratch(std::max<size_t>(workers * room, 1));
  std::atomic<size_t> next{0};
  const auto take = [&](size_t *block) { return (*block = next.fetch_add(1, std::memory_order_relaxed)) < blocks; };
  for_chunks(workers, [&](size_t worker) { body(memory.get() + worker * room, take); });
}

/* ---- spans ---- */
/* True if outputs should bypass the caches: beyond 8 MiB in all, counted in floats, they would push the inputs out. */
inline int streams(size_t floats) { return floats > (size_t{2} << 20); }

/* Runs body and turns a failed allocation into a status: no exception crosses engine.h. */
template <class Body>
engine_status guarded(Body &&body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    return ENGINE_NO_MEMORY;
  } catch (...) {
    return ENGINE_BAD_LENGTH;
  }
}

}  // namespace latentkit
