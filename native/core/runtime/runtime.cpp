// Which kernels run, the cache of scratch memory, and the texts of the statuses.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "runtime/runtime.h"

/* ---- kernels ---- */
namespace latentkit {
namespace {

struct Set {
  Isa isa;
  const char *name;
  lk_kernels table;
  bool supported;
};

#define LK_FILL_PART(part, isa) LK_JOIN(part, isa)(&table);
#define LK_FILL(isa)            \
  [] {                          \
    lk_kernels table{};         \
    LK_PARTS(LK_FILL_PART, isa) \
    return table;               \
  }()

// best first
struct Sets {
#if defined(__x86_64__)
  Set sets[3] = {
      {Isa::avx512, "avx512", LK_FILL(avx512),
       __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")},
      {Isa::avx2, "avx2", LK_FILL(avx2),
       __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")},
      {Isa::baseline, "baseline", LK_FILL(baseline), true},
  };
#else
  Set sets[1] = {{Isa::baseline, "baseline", LK_FILL(baseline), true}};
#endif
  std::atomic<const Set *> current{nullptr};

  const Set *find(const char *name) const {
    for (const Set &set : sets) {
      if (name != nullptr && set.supported && std::strcmp(set.name, name) == 0) return &set;
    }
    return nullptr;
  }

  Sets() {
    const Set *chosen = find(std::getenv("LATENTKIT_ISA"));
    for (const Set &set : sets) {
      if (chosen == nullptr && set.supported) chosen = &set;
    }
    current.store(chosen, std::memory_order_relaxed);
  }
};

Sets &sets() {
  static Sets instance;
  return instance;
}

const Set &current() { return *sets().current.load(std::memory_order_relaxed); }

}  // namespace

Isa isa() { return current().isa; }

const lk_kernels &kernels() { return current().table; }

}  // namespace latentkit

const char *engine_isa(void) { return latentkit::current().name; }

int engine_isa_supported(const char *name) { return latentkit::sets().find(name) != nullptr; }

engine_status engine_set_isa(const char *name) {
  const latentkit::Set *set = latentkit::sets().find(name);
  if (set == nullptr) return ENGINE_UNSUPPORTED;
  latentkit::sets().current.store(set, std::memory_order_relaxed);
  return ENGINE_OK;
}

/* ---- scratch ---- */
namespace latentkit {
namespace {

constexpr size_t kHeader = 64; /* as malloc aligns, and apart from the first line of the block */
constexpr size_t kUnit = size_t{64} << 10;
constexpr size_t kSlots = 8;
constexpr size_t kMaxBytes = size_t{PTRDIFF_MAX} - kHeader;
constexpr size_t kCached = size_t{64} << 20;
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kCaches = false; /* a separate block for every use exposes the first byte past its end */
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

const char *engine_status_text(engine_status status) {
  switch (status) {
    case ENGINE_OK: return "no error";
    case ENGINE_BAD_LENGTH: return "lengths do not match";
    case ENGINE_BAD_ARGUMENT: return "a number is outside its range";
    case ENGINE_NO_MEMORY: return "out of memory";
    case ENGINE_NO_SPACE: return "the output is too short";
    case ENGINE_ZERO_DEVIATION: return "the standard deviation is 0";
    case ENGINE_BAD_FILE: return "the file is damaged or not of this format";
    case ENGINE_TOO_LARGE: return "the image has too many pixels";
    case ENGINE_UNSUPPORTED: return "not supported";
    case ENGINE_DEVICE_LOST: return "the GPU reported a fault";
  }
  return "unknown status";
}
