#include "pool.h"

#include <bit>

// decision 77
namespace latentkit::cuda {

size_t rounded_size(size_t bytes) {
  constexpr size_t kLeast = 512;
  if (bytes <= kLeast) return kLeast;
  const size_t step = std::bit_floor(bytes - 1) / 4;
  return bytes > SIZE_MAX - step ? 0 : (bytes + step - 1) / step * step;
}

int Pool::take(size_t bytes, Address *memory) {
  const size_t size = rounded_size(bytes);
  if (size == 0) return kOutOfMemory;
  std::lock_guard lock(mutex_);
  if (auto same_size = cached_.find(size); same_size != cached_.end() && !same_size->second.empty()) {
    *memory = same_size->second.back();
    lent_.emplace(*memory, size);
    same_size->second.pop_back();
    cached_bytes_ -= size;
  } else {
    int error = driver_.memory_alloc(memory, size);
    if (error == kOutOfMemory && cached_bytes_ > 0) {
      if (error = trim_locked(); error != 0) return error;
      error = driver_.memory_alloc(memory, size);
    }
    if (error != 0) return error;
    try {
      lent_.emplace(*memory, size);
    } catch (...) {
      driver_.memory_free(*memory);
      throw;
    }
  }
  lent_bytes_ += size;
  return 0;
}

void Pool::give(Address memory) {
  std::lock_guard lock(mutex_);
  const auto block = lent_.find(memory);
  if (block == lent_.end()) return;
  const size_t size = block->second;
  lent_.erase(block);
  lent_bytes_ -= size;
  try {
    cached_[size].push_back(memory);
    cached_bytes_ += size;
  } catch (...) {
    driver_.memory_free(memory);  // waits for the work that uses it
  }
}

int Pool::trim() {
  std::lock_guard lock(mutex_);
  return trim_locked();
}

int Pool::trim_locked() {
  if (int error = driver_.stream_wait(stream_); error != 0) return error;
  int first = 0;
  for (const auto &[size, blocks] : cached_) {
    for (Address block : blocks) {
      if (int error = driver_.memory_free(block); error != 0 && first == 0) first = error;
    }
  }
  cached_.clear();
  cached_bytes_ = 0;
  return first;
}

void Pool::clear() {
  std::lock_guard lock(mutex_);
  for (const auto &[memory, size] : lent_) driver_.memory_free(memory);
  for (const auto &[size, blocks] : cached_) {
    for (Address block : blocks) driver_.memory_free(block);
  }
  lent_.clear();
  cached_.clear();
  lent_bytes_ = cached_bytes_ = 0;
}

void Pool::sizes(uint64_t *lent, uint64_t *cached) {
  std::lock_guard lock(mutex_);
  *lent = lent_bytes_;
  *cached = cached_bytes_;
}

}  // namespace latentkit::cuda
