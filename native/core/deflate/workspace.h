// Memory and the compute pool for searches. Work on the pool must not throw, so it returns false where memory is short.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "runtime/parallel.h"
#include "runtime/scratch.h"

namespace latentkit::deflate {

/* Uninitialised memory for n objects that need no destructor; NULL where there is none. */
template <class T>
class Workspace {
 public:
  explicit Workspace(size_t n) : block_(static_cast<uint8_t *>(engine_scratch_take(n * sizeof(T)))) {}
  T *get() const { return reinterpret_cast<T *>(block_.get()); }

 private:
  Scratch block_;
};

/* Calls body(first, last) for every stripe of `count` units, on the pool. Throws std::bad_alloc where one is false. */
template <class Body>
void in_stripes(size_t count, size_t stripe, Body &&body) {
  std::atomic<bool> is_short{false};
  for_chunks((count + stripe - 1) / stripe, [&](size_t k) {
    if (!body(k * stripe, std::min(k * stripe + stripe, count))) is_short = true;
  });
  if (is_short) throw std::bad_alloc();
}

}  // namespace latentkit::deflate
