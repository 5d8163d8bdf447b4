// Memory of the devices: CPU memory between guards, filled with a pattern.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "state.h"

namespace fake {
namespace {

constexpr size_t kGuard = 256;
constexpr int kGuardByte = 0xB7, kFresh = 0xCB, kDead = 0xDD;

struct Block {
  const Device *device;
  size_t bytes;
  unsigned char *whole;
};

std::map<uint64_t, Block> &blocks() {
  static auto *instance = new std::map<uint64_t, Block>;
  return *instance;
}

std::map<const char *, size_t> &pinned_blocks() {
  static auto *instance = new std::map<const char *, size_t>;
  return *instance;
}

bool guarded(const unsigned char *guard) {
  for (size_t i = 0; i < kGuard; i++) {
    if (guard[i] != kGuardByte) return false;
  }
  return true;
}

int release(std::map<uint64_t, Block>::iterator at) {
  const Block block = at->second;
  const bool whole = guarded(block.whole) && guarded(block.whole + kGuard + block.bytes);
  blocks().erase(at);
  std::memset(block.whole, kDead, block.bytes + 2 * kGuard);
  std::free(block.whole);
  return whole ? 0
               : state().misuse("something was written outside a block of " + std::to_string(block.bytes) + " bytes");
}

}  // namespace

uint64_t taken(const Device &device) {
  uint64_t bytes = 0;
  for (const auto &[address, block] : blocks()) bytes += block.device == &device ? block.bytes : 0;
  return bytes;
}

int take(Device &device, size_t bytes, uint64_t *address) {
  if (bytes == 0) return kInvalidValue;
  const uint64_t used = taken(device);
  if (used > state().settings.memory || bytes > state().settings.memory - used) return kOutOfMemory;
  auto *whole = static_cast<unsigned char *>(std::aligned_alloc(kGuard, (bytes + 3 * kGuard - 1) / kGuard * kGuard));
  if (whole == nullptr) return kOutOfMemory;
  std::memset(whole, kGuardByte, kGuard);
  std::memset(whole + kGuard, kFresh, bytes);
  std::memset(whole + kGuard + bytes, kGuardByte, kGuard);
  *address = reinterpret_cast<uint64_t>(whole + kGuard);
  blocks().emplace(*address, Block{&device, bytes, whole});
  return 0;
}

int give(Device &device, uint64_t address) {
  const auto at = blocks().find(address);
  if (at == blocks().end() || at->second.device != &device)
    return state().misuse("freed memory that is not a block of the device");
  return release(at);
}

bool holds(const Device &device, uint64_t address, size_t bytes) {
  auto at = blocks().upper_bound(address);
  if (at == blocks().begin()) return false;
  --at;
  const uint64_t within = address - at->first;
  return at->second.device == &device && within <= at->second.bytes && bytes <= at->second.bytes - within;
}

void drop(Device &device) {
  for (auto at = blocks().begin(); at != blocks().end();) {
    const auto here = at++;
    if (here->second.device != &device) continue;
    state().counts["leaked"]++;
    release(here);
  }
}

int pin(size_t bytes, void **memory) {
  *memory = std::malloc(bytes);
  if (*memory == nullptr) return kOutOfMemory;
  std::memset(*memory, kFresh, bytes);
  pinned_blocks().emplace(static_cast<const char *>(*memory), bytes);
  return 0;
}

int unpin(void *memory) {
  if (pinned_blocks().erase(static_cast<const char *>(memory)) == 0) return state().misuse("freed what is not pinned");
  std::free(memory);
  return 0;
}

bool pinned(const void *memory, size_t bytes) {
  const auto *address = static_cast<const char *>(memory);
  auto at = pinned_blocks().upper_bound(address);
  if (at == pinned_blocks().begin()) return false;
  --at;
  const auto within = static_cast<size_t>(address - at->first);
  return within <= at->second && bytes <= at->second - within;
}

}  // namespace fake
