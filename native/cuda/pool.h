// Free device memory cached by size for the next caller: the driver's own allocation waits for the GPU.
#pragma once

#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "driver.h"
#include "engine_cuda.h"

namespace latentkit::cuda {

/* All work is on one stream, so a block that was given back may be lent again while queued work still uses it. The
 * device's context must be current. */
class Pool {
 public:
  Pool(const Driver &driver, const Stream &stream) : driver_(driver), stream_(stream) {}

  /* 0 or the driver's error. Where there is no memory: waits, frees the cached blocks, and tries once more. */
  int take(size_t bytes, Address *memory);
  /* A block that take lent; anything else is left alone. */
  void give(Address memory);
  /* Waits, and frees the cached blocks. */
  int trim();
  /* Frees everything, lent blocks too. */
  void clear();

  void sizes(uint64_t *lent, uint64_t *cached);

 private:
  const Driver &driver_;
  const Stream &stream_;
  std::mutex mutex_;
  std::unordered_map<Address, size_t> lent_;
  std::map<size_t, std::vector<Address>> cached_;
  uint64_t lent_bytes_ = 0, cached_bytes_ = 0;

  int trim_locked();
};

/* At least 512 bytes, then four sizes to each power of two: a block fits its next user more often. 0: too large. */
size_t rounded_size(size_t bytes);

}  // namespace latentkit::cuda
