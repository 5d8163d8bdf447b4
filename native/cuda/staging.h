// Copies between CPU memory of any kind and the device, through pinned memory: the driver's own way for pageable
// memory waits for the stream first. That way is left where no pinned memory is to be had.
#pragma once

#include <functional>
#include <mutex>

#include "driver.h"

namespace latentkit::cuda {

/* The device's context must be current. Functions return 0 or the driver's error. */
class Staging {
 public:
  Staging(const Driver &driver, const Stream &stream) : driver_(driver), stream_(stream) {}

  /* Returns when `from` is read; the copy is queued on the stream. */
  int upload(Address to, const void *from, size_t bytes);
  /* Waits for the stream's work so far, and for the copy; not for what `then` queues behind it. */
  int download(void *to, Address from, size_t bytes, const std::function<void()> &then = {});
  void clear();

 private:
  static constexpr size_t kPieces = 2;
  static constexpr size_t kBytes = size_t{4} << 20;

  struct Piece {
    void *memory = nullptr;
    Event done = nullptr;
  };

  const Driver &driver_;
  const Stream &stream_;
  std::mutex mutex_;
  Piece pieces_[kPieces];
  size_t next_ = 0;

  int prepare();
  bool has_memory() const { return pieces_[kPieces - 1].memory != nullptr; }
};

}  // namespace latentkit::cuda
