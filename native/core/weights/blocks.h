// Blocks of quantised weights, taken apart: whole numbers, and a scale and an offset for each group of them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace latentkit {

constexpr size_t kMostBlockValues = 256;

/* A block whose values are scales[i / group] * numbers[i], plus offsets[i / group] where its type has offsets. */
struct Block {
  int8_t numbers[kMostBlockValues];
  float scales[16], offsets[16];
};

struct BlockType {
  uint32_t id; /* as in GGUF files */
  size_t values, bytes, group;
  bool has_offsets;
  /* Whether its numbers take two codes of 4 bits, and the number whose code is the middle one. Where that is not 0,
   * offsets take it up: sums are smaller, and so are their roundings. */
  bool has_lows;
  int centre;
  void (*take_apart)(Block &to, const uint8_t *from);
};

/* The type of that number; NULL where it is none of blocks, or not known. */
const BlockType *block_type(uint32_t id);

}  // namespace latentkit
