#include "staging.h"

#include <algorithm>
#include <cstring>

// decision 78
namespace latentkit::cuda {
namespace {

constexpr unsigned kWithoutTiming = 2;

}  // namespace

int Staging::prepare() {
  for (Piece &piece : pieces_) {
    if (piece.memory != nullptr) continue;
    if (int error = driver_.host_alloc(&piece.memory, kBytes, 0); error != 0) return error;
  }
  for (Piece &piece : pieces_) {
    if (piece.done == nullptr) {
      if (int error = driver_.event_create(&piece.done, kWithoutTiming); error != 0) return error;
      // nothing has used it yet
      if (int error = driver_.event_record(piece.done, stream_); error != 0) return error;
    }
  }
  return 0;
}

int Staging::upload(Address to, const void *from, size_t bytes) {
  if (bytes == 0) return 0;
  std::lock_guard lock(mutex_);
  const int unready = prepare();
  if (unready == kOutOfMemory && !has_memory()) return driver_.copy_in(to, from, bytes, stream_);
  if (unready != 0) return unready;
  const auto *next = static_cast<const char *>(from);
  while (bytes > 0) {
    Piece &piece = pieces_[next_++ % kPieces];
    const size_t count = std::min(bytes, kBytes);
    if (int error = driver_.event_wait(piece.done); error != 0) return error;
    std::memcpy(piece.memory, next, count);
    if (int error = driver_.copy_in(to, piece.memory, count, stream_); error != 0) return error;
    if (int error = driver_.event_record(piece.done, stream_); error != 0) return error;
    to += count;
    next += count;
    bytes -= count;
  }
  return 0;
}

int Staging::download(void *to, Address from, size_t bytes, const std::function<void()> &then) {
  if (bytes == 0) return 0;
  std::lock_guard lock(mutex_);
  const int unready = prepare();
  if (unready == kOutOfMemory && !has_memory()) {
    if (int error = driver_.copy_out(to, from, bytes, stream_); error != 0) return error;
    if (then) then();
    return driver_.stream_wait(stream_);
  }
  if (unready != 0) return unready;
  auto *next = static_cast<char *>(to);
  // one piece is on its way while the one before it is copied out
  Piece *arriving = nullptr;
  size_t arriving_bytes = 0;
  while (bytes > 0 || arriving != nullptr) {
    Piece *piece = nullptr;
    const size_t count = std::min(bytes, kBytes);
    if (count > 0) {
      piece = &pieces_[next_++ % kPieces];
      if (int error = driver_.event_wait(piece->done); error != 0) return error;
      if (int error = driver_.copy_out(piece->memory, from, count, stream_); error != 0) return error;
      if (int error = driver_.event_record(piece->done, stream_); error != 0) return error;
      from += count;
      bytes -= count;
      if (then && bytes == 0) then();
    }
    if (arriving != nullptr) {
      if (int error = driver_.event_wait(arriving->done); error != 0) return error;
      std::memcpy(next, arriving->memory, arriving_bytes);
      next += arriving_bytes;
    }
    arriving = piece;
    arriving_bytes = count;
  }
  return 0;
}

void Staging::clear() {
  std::lock_guard lock(mutex_);
  for (Piece &piece : pieces_) {
    if (piece.done != nullptr) driver_.event_destroy(piece.done);
    if (piece.memory != nullptr) driver_.host_free(piece.memory);
    piece = {};
  }
}

}  // namespace latentkit::cuda
