// The types of blocks in GGUF files, ggml's in its order of operations: as floats, or as an operator of a runtime takes
// them.
#include "runtime/runtime.h"
#include "weights/half.h"

namespace latentkit {
namespace {

constexpr size_t kMostBlockValues = 256;

/* A block whose values are scales[i / group] * numbers[i], plus offsets[i / group] if its type has offsets. */
struct Block {
  int8_t numbers[kMostBlockValues];
  float scales[16], offsets[16];
};

struct BlockType {
  uint32_t id; /* as in GGUF files */
  size_t values, bytes, group;
  bool has_offsets;
  /* Whether its numbers take two codes of 4 bits, and the number whose code is the middle one. If that is not 0,
   * offsets take it up: sums are smaller, and so are their roundings. */
  bool has_lows;
  int centre;
  void (*take_apart)(Block &to, const uint8_t *from);
};

/* Low halves of 16 bytes, then their high halves. */
void halves(int8_t *to, const uint8_t *from, int less) {
  for (int i = 0; i < 16; i++) {
    to[i] = static_cast<int8_t>((from[i] & 15) - less);
    to[i + 16] = static_cast<int8_t>((from[i] >> 4) - less);
  }
}

void q4_0(Block &to, const uint8_t *from) {
  to.scales[0] = half_at(from);
  halves(to.numbers, from + 2, 8);
}

void q4_1(Block &to, const uint8_t *from) {
  to.scales[0] = half_at(from);
  to.offsets[0] = half_at(from + 2);
  halves(to.numbers, from + 4, 0);
}

/* The halves with a fifth bit each, from 32 of them. */
void fives(int8_t *to, const uint8_t *fifths, const uint8_t *from, int less) {
  halves(to, from, less);
  for (int i = 0; i < 32; i++) to[i] = static_cast<int8_t>(to[i] + ((fifths[i / 8] >> (i % 8) & 1) << 4));
}

void q5_0(Block &to, const uint8_t *from) {
  to.scales[0] = half_at(from);
  fives(to.numbers, from + 2, from + 6, 16);
}

void q5_1(Block &to, const uint8_t *from) {
  to.scales[0] = half_at(from);
  to.offsets[0] = half_at(from + 2);
  fives(to.numbers, from + 4, from + 8, 0);
}

void q8_0(Block &to, const uint8_t *from) {
  to.scales[0] = half_at(from);
  for (int i = 0; i < 32; i++) to.numbers[i] = static_cast<int8_t>(from[i + 2]);
}

void q2_k(Block &to, const uint8_t *from) {
  const uint8_t *quants = from + 16;
  const float d = half_at(from + 80), least = half_at(from + 82);
  for (int group = 0; group < 16; group++) {
    to.scales[group] = d * static_cast<float>(from[group] & 15);
    to.offsets[group] = -(least * static_cast<float>(from[group] >> 4));
  }
  for (int i = 0; i < 256; i++) {
    to.numbers[i] = static_cast<int8_t>(quants[32 * (i / 128) + i % 32] >> (2 * (i % 128 / 32)) & 3);
  }
}

void q3_k(Block &to, const uint8_t *from) {
  const uint8_t *quants = from + 32, *scales = from + 96;
  const float d = half_at(from + 108);
  for (int j = 0; j < 16; j++) {
    const int low = j < 8 ? scales[j] & 15 : scales[j - 8] >> 4;
    const int high = scales[8 + j % 4] >> (2 * (j / 4)) & 3;
    to.scales[j] = d * static_cast<float>((low | high << 4) - 32);
  }
  for (int i = 0; i < 256; i++) {
    const int n = i / 128, k = i % 128 / 32, l = i % 32;
    const int low = quants[32 * n + l] >> (2 * k) & 3;
    to.numbers[i] = static_cast<int8_t>(low - ((from[l] >> (4 * n + k) & 1) != 0 ? 0 : 4));
  }
}

/* Scales and offsets of Q4_K and Q5_K: eight of six bits each in twelve bytes. */
void six_bits(Block &to, const uint8_t *from) {
  const float d = half_at(from), least = half_at(from + 2);
  const uint8_t *s = from + 4;
  for (int j = 0; j < 8; j++) {
    const int scale = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
    const int offset = j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | (s[j] >> 6) << 4;
    to.scales[j] = d * static_cast<float>(scale);
    to.offsets[j] = -(least * static_cast<float>(offset));
  }
}

void q4_k(Block &to, const uint8_t *from) {
  six_bits(to, from);
  const uint8_t *quants = from + 16;
  for (int i = 0; i < 256; i++) {
    to.numbers[i] = static_cast<int8_t>(quants[32 * (i / 64) + i % 32] >> (4 * (i / 32 % 2)) & 15);
  }
}

void q5_k(Block &to, const uint8_t *from) {
  six_bits(to, from);
  const uint8_t *fifths = from + 16, *quants = from + 48;
  for (int i = 0; i < 256; i++) {
    const int low = quants[32 * (i / 64) + i % 32] >> (4 * (i / 32 % 2)) & 15;
    to.numbers[i] = static_cast<int8_t>(low | (fifths[i % 32] >> (i / 32) & 1) << 4);
  }
}

void q6_k(Block &to, const uint8_t *from) {
  const uint8_t *highs = from + 128, *scales = from + 192;
  const float d = half_at(from + 208);
  for (int group = 0; group < 16; group++) {
    to.scales[group] = d * static_cast<float>(static_cast<int8_t>(scales[group]));
  }
  for (int i = 0; i < 256; i++) {
    const int n = i / 128, k = i % 128 / 32, l = i % 32;
    const int low = from[64 * n + 32 * (k % 2) + l] >> (4 * (k / 2)) & 15;
    const int high = highs[32 * n + l] >> (2 * k) & 3;
    to.numbers[i] = static_cast<int8_t>((low | high << 4) - 32);
  }
}

constexpr int8_t kUneven[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

void uneven(int8_t *to, const uint8_t *from) {
  halves(to, from, 0);
  for (int i = 0; i < 32; i++) to[i] = kUneven[to[i]];
}

void iq4_nl(Block &to, const uint8_t *from) {
  to.scales[0] = half_at(from);
  uneven(to.numbers, from + 2);
}

void iq4_xs(Block &to, const uint8_t *from) {
  const float d = half_at(from);
  const int highs = from[2] | from[3] << 8;
  for (int b = 0; b < 8; b++) {
    const int low = from[4 + b / 2] >> (4 * (b % 2)) & 15;
    to.scales[b] = d * static_cast<float>((low | (highs >> (2 * b) & 3) << 4) - 32);
    uneven(to.numbers + 32 * b, from + 8 + 16 * b);
  }
}

constexpr BlockType kTypes[] = {
    // number, values, bytes, group, offsets, lows, centre
    {2, 32, 18, 32, false, false, 0, q4_0},    {3, 32, 20, 32, true, false, 8, q4_1},
    {6, 32, 22, 32, false, true, 0, q5_0},     {7, 32, 24, 32, true, true, 16, q5_1},
    {8, 32, 34, 32, false, true, 8, q8_0},     {10, 256, 84, 16, true, false, 2, q2_k},
    {11, 256, 110, 16, false, false, 0, q3_k}, {12, 256, 144, 32, true, false, 8, q4_k},
    {13, 256, 176, 32, true, true, 16, q5_k},  {14, 256, 210, 16, false, true, 0, q6_k},
    {20, 32, 18, 32, false, true, 0, iq4_nl},  {23, 256, 136, 32, false, true, 0, iq4_xs},
};

/* The type of that number; NULL if it is not one of blocks, or not known. */
const BlockType *block_type(uint32_t id) {
  for (const BlockType &type : kTypes) {
    if (type.id == id) return &type;
  }
  return nullptr;
}

void codes_of(uint8_t *codes, uint8_t *lows, const BlockType &type, const Block &block) {
  for (size_t i = 0; i < type.values; i += 2) {
    const int first = block.numbers[i] - type.centre, second = block.numbers[i + 1] - type.centre;
    if (!type.has_lows) {
      codes[i / 2] = code_pair(first + 8, second + 8);
      continue;
    }
    codes[i / 2] = code_pair(high_code(first), high_code(second));
    lows[i / 2] = code_pair(low_code(first), low_code(second));
  }
}

}  // namespace
}  // namespace latentkit

using latentkit::Block;
using latentkit::block_type;
using latentkit::BlockType;

engine_status engine_unpack_blocks(engine_f32 out, engine_cu8 blocks, uint32_t id) {
  const BlockType *type = block_type(id);
  if (type == nullptr) return ENGINE_BAD_ARGUMENT;
  const size_t count = blocks.len / type->bytes;
  if (blocks.len % type->bytes != 0 || out.len % type->values != 0 || out.len / type->values != count) {
    return ENGINE_BAD_LENGTH;
  }
  latentkit::for_items(count, type->values, [&](size_t begin, size_t end) {
    Block block;
    for (size_t b = begin; b < end; b++) {
      type->take_apart(block, blocks.data + b * type->bytes);
      float *to = out.data + b * type->values;
      const int8_t *from = block.numbers;
      for (size_t g = 0; g < type->values / type->group; g++, from += type->group, to += type->group) {
        const float scale = block.scales[g], offset = block.offsets[g];
        for (size_t i = 0; i < type->group; i++) to[i] = scale * static_cast<float>(from[i]);
        if (!type->has_offsets) continue;
        for (size_t i = 0; i < type->group; i++) to[i] += offset;
      }
    }
  });
  return ENGINE_OK;
}

engine_status engine_repack_blocks(engine_u8 codes, engine_u8 lows, engine_f32 scales, engine_f32 offsets,
                                   engine_cu8 blocks, uint32_t id) {
  const BlockType *type = block_type(id);
  if (type == nullptr) return ENGINE_BAD_ARGUMENT;
  const size_t count = blocks.len / type->bytes, groups = type->values / type->group;
  const size_t code_bytes = type->values / 2;
  if (blocks.len % type->bytes != 0 || codes.len != count * code_bytes || scales.len != count * groups ||
      lows.len != (type->has_lows ? codes.len : 0) || offsets.len != (type->has_offsets ? scales.len : 0)) {
    return ENGINE_BAD_LENGTH;
  }
  latentkit::for_items(count, type->values, [&](size_t begin, size_t end) {
    Block block;
    for (size_t b = begin; b < end; b++) {
      type->take_apart(block, blocks.data + b * type->bytes);
      codes_of(codes.data + b * code_bytes, type->has_lows ? lows.data + b * code_bytes : nullptr, *type, block);
      for (size_t g = 0; g < groups; g++) {
        scales.data[b * groups + g] = block.scales[g];
        if (!type->has_offsets) continue;
        offsets.data[b * groups + g] = static_cast<float>(type->centre) * block.scales[g] + block.offsets[g];
      }
    }
  });
  return ENGINE_OK;
}
