#include "scratch.h"

#include <cstdint>
#include <cstdlib>
#include <mutex>

namespace latentkit {
namespace {

constexpr size_t kHeader = 64; /* as malloc aligns, and apart from the first line of the block */
constexpr size_t kUnit = size_t{64} << 10;
constexpr size_t kSlots = 8;
constexpr size_t kMaxBytes = size_t{PTRDIFF_MAX} - kHeader;
constexpr size_t kCached = size_t{64} << 20;
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kCaches = false; /* a block of its own for every use shows the first byte past its end */
#else
constexpr bool kCaches = true;
#endif

/* In front of every block. */
struct Block {
  size_t capacity; /* 0: never cached */
};

class BlockCache {
 public:
  Block *take(size_t capacity) {
    std::lock_guard<std::mutex> lock(mutex_);
    // the last given back is the warmest; one far too large is left for others
    for (size_t i = count_; i-- > 0;) {
      Block *block = blocks_[i];
      if (block->capacity < capacity || block->capacity / 2 > capacity) continue;
      remove(i);
      return block;
    }
    return nullptr;
  }

  void give(Block *block) {
    std::lock_guard<std::mutex> lock(mutex_);
    while (count_ > 0 && (count_ == kSlots || bytes_ + block->capacity > kCached)) std::free(remove(0));
    blocks_[count_++] = block;
    bytes_ += block->capacity;
  }

  void drop() {
    std::lock_guard<std::mutex> lock(mutex_);
    while (count_ > 0) std::free(remove(count_ - 1));
  }

 private:
  Block *remove(size_t at) {
    Block *block = blocks_[at];
    for (count_--; at < count_; at++) blocks_[at] = blocks_[at + 1];
    bytes_ -= block->capacity;
    return block;
  }

  std::mutex mutex_;
  Block *blocks_[kSlots] = {}; /* oldest first */
  size_t count_ = 0, bytes_ = 0;
};

// never destroyed: a thread may give back after static destructors
BlockCache &cache() {
  static BlockCache *instance = new BlockCache;
  return *instance;
}

}  // namespace

void drop_scratch() { cache().drop(); }

}  // namespace latentkit

void *engine_scratch_take(size_t bytes) {
  using namespace latentkit;
  size_t capacity = 0, room = bytes;
  if (kCaches && bytes >= kUnit && bytes <= kCached / 2) capacity = room = (bytes + kUnit - 1) / kUnit * kUnit;
  Block *block = capacity > 0 ? cache().take(capacity) : nullptr;
  if (block == nullptr) {
    if (bytes > kMaxBytes) return nullptr;
    block = static_cast<Block *>(std::malloc(room + kHeader));
    if (block == nullptr) return nullptr;
    block->capacity = capacity;
  }
  return reinterpret_cast<uint8_t *>(block) + kHeader;
}

void engine_scratch_give(void *memory) {
  using namespace latentkit;
  if (memory == nullptr) return;
  auto *block = reinterpret_cast<Block *>(static_cast<uint8_t *>(memory) - kHeader);
  if (block->capacity > 0) cache().give(block);
  else std::free(block);
}
