#include <cstdint>

#include "check.h"

namespace {

void blocks_are_apart() {
  std::vector<uint8_t *> taken;
  for (size_t i = 0; i < 20; i++) {
    const size_t bytes = (i % 5 + 1) << 16;
    auto *block = static_cast<uint8_t *>(engine_scratch_take(bytes));
    CHECK(block != nullptr && reinterpret_cast<uintptr_t>(block) % 16 == 0);
    std::memset(block, static_cast<int>(i), bytes);
    taken.push_back(block);
  }
  for (size_t i = 0; i < taken.size(); i++) {
    for (size_t at = 0; at < (i % 5 + 1) << 16; at += 4096) CHECK(taken[i][at] == i);
  }
  for (uint8_t *block : taken) engine_scratch_give(block);
}

void any_size() {
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{65535}, size_t{65536}, size_t{65537}, size_t{48} << 20}) {
    auto *block = static_cast<uint8_t *>(engine_scratch_take(bytes));
    CHECK(block != nullptr);
    if (bytes > 0) block[0] = block[bytes - 1] = 1;
    engine_scratch_give(block);
  }
  CHECK(engine_scratch_take(SIZE_MAX) == nullptr);
  CHECK(engine_scratch_take(SIZE_MAX - 64) == nullptr);
  engine_scratch_give(nullptr);
}

}  // namespace

int main() {
  blocks_are_apart();
  any_size();
  engine_shutdown();
  blocks_are_apart();
  return report();
}
