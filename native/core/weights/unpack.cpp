// Quantised weights as floats, or in the form that an operator of a runtime takes.
#include "runtime/parallel.h"
#include "weights/blocks.h"
#include "weights/half.h"

using latentkit::Block;
using latentkit::block_type;
using latentkit::BlockType;

namespace {

/* body(begin, end) over ranges of blocks of that many values. */
template <class Body>
void for_blocks(size_t blocks, size_t values, Body &&body) {
  if (blocks * values <= ENGINE_PARALLEL_MIN) return body(size_t{0}, blocks);
  const size_t grain = latentkit::kGrain / values;
  latentkit::for_chunks((blocks + grain - 1) / grain, [&](size_t chunk) {
    const size_t begin = chunk * grain;
    body(begin, blocks - begin < grain ? blocks : begin + grain);
  });
}

void codes_of(uint8_t *codes, uint8_t *lows, const BlockType &type, const Block &block) {
  for (size_t i = 0; i < type.values; i += 2) {
    const int first = block.numbers[i] - type.centre, second = block.numbers[i + 1] - type.centre;
    if (!type.has_lows) {
      codes[i / 2] = latentkit::code_pair(first + 8, second + 8);
      continue;
    }
    codes[i / 2] = latentkit::code_pair(latentkit::high_code(first), latentkit::high_code(second));
    lows[i / 2] = latentkit::code_pair(latentkit::low_code(first), latentkit::low_code(second));
  }
}

}  // namespace

engine_status engine_unpack_blocks(engine_f32 out, engine_cu8 blocks, uint32_t id) {
  const BlockType *type = block_type(id);
  if (type == nullptr) return ENGINE_BAD_ARGUMENT;
  const size_t count = blocks.len / type->bytes;
  if (blocks.len % type->bytes != 0 || out.len % type->values != 0 || out.len / type->values != count) {
    return ENGINE_BAD_LENGTH;
  }
  for_blocks(count, type->values, [&](size_t begin, size_t end) {
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
  for_blocks(count, type->values, [&](size_t begin, size_t end) {
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
