// Quantised weights: their two forms have the same values, with any number of threads, and lengths are checked. The
// values themselves are compared with golden files in TypeScript.
#include <cmath>

#include "check.h"

namespace {

struct Type {
  uint32_t id;
  size_t values, bytes, group;
  int bits; /* of its codes, both together */
  bool has_offsets;
};

constexpr Type kTypes[] = {
    {2, 32, 18, 32, 4, false},    {3, 32, 20, 32, 4, true},    {6, 32, 22, 32, 8, false},
    {7, 32, 24, 32, 8, true},     {8, 32, 34, 32, 8, false},   {10, 256, 84, 16, 4, true},
    {11, 256, 110, 16, 4, false}, {12, 256, 144, 32, 4, true}, {13, 256, 176, 32, 8, true},
    {14, 256, 210, 16, 8, false}, {20, 32, 18, 32, 8, false},  {23, 256, 136, 32, 8, false},
};

/* Bytes whose halves, wherever they lie, are finite: the upper byte of none has all bits of an exponent. */
std::vector<uint8_t> bytes_of(size_t count, uint32_t seed) {
  const std::vector<float> random = numbers(count, seed, 128.0f);
  std::vector<uint8_t> bytes(count);
  for (size_t i = 0; i < count; i++) bytes[i] = static_cast<uint8_t>(static_cast<int>(random[i] + 128.0f) & 0xbb);
  return bytes;
}

void blocks(const Type &type, size_t count) {
  const std::vector<uint8_t> packed = bytes_of(count * type.bytes, type.id);
  const engine_cu8 from{packed.data(), packed.size()};
  const size_t values = count * type.values, groups = values / type.group;
  const std::vector<float> got = everywhere([&] {
    std::vector<float> unpacked(values);
    CHECK(engine_unpack_blocks(out(unpacked), from, type.id) == ENGINE_OK);
    return unpacked;
  });
  std::vector<float> scales(groups), offsets(type.has_offsets ? groups : 0);
  std::vector<uint8_t> codes(values / 2), lows(type.bits == 8 ? codes.size() : 0);
  const engine_u8 to{codes.data(), codes.size()}, below{lows.data(), lows.size()};
  CHECK(engine_repack_blocks(to, below, out(scales), out(offsets), from, type.id) == ENGINE_OK);
  for (size_t i = 0; i < values; i++) {
    const int code = (codes[i / 2] >> (4 * (i % 2)) & 15) - 8;
    const int low = type.bits == 8 ? (lows[i / 2] >> (4 * (i % 2)) & 15) - 8 : 0;
    const int number = type.bits == 8 ? 16 * code + low + (type.id == 8 ? 8 : 0) : code;
    const float scale = scales[i / type.group], offset = type.has_offsets ? offsets[i / type.group] : 0.0f;
    const float product = scale * static_cast<float>(number);
    // without offsets weights are exact, with them a rounding of 16 scales and one of the sum away
    if (!type.has_offsets) CHECK(product == got[i]);
    else CHECK(std::fabs(product + offset - got[i]) <= 0x1p-22f * (16 * std::fabs(scale) + std::fabs(offset)));
  }
  std::vector<float> wrong(values + 1);
  CHECK(engine_unpack_blocks(out(wrong), from, type.id) == ENGINE_BAD_LENGTH);
  CHECK(engine_unpack_blocks(out(wrong), {packed.data(), packed.size() - 1}, type.id) == ENGINE_BAD_LENGTH);
  CHECK(engine_repack_blocks(to, below, out(wrong), out(offsets), from, type.id) == ENGINE_BAD_LENGTH);
  CHECK(engine_repack_blocks(to, below, out(scales), out(wrong), from, type.id) == ENGINE_BAD_LENGTH);
  CHECK(engine_repack_blocks(to, {codes.data(), lows.size() + 1}, out(scales), out(offsets), from, type.id) ==
        ENGINE_BAD_LENGTH);
  CHECK(engine_repack_blocks({codes.data(), codes.size() - 1}, below, out(scales), out(offsets), from, type.id) ==
        ENGINE_BAD_LENGTH);
}

/* Q4_0 written out: a scale, the low halves, the high halves. */
void order() {
  uint8_t block[18] = {0x00, 0x38, 0x21, 0xf0};  // 0.5
  std::vector<float> values(32), scales(1), offsets;
  CHECK(engine_unpack_blocks(out(values), {block, 18}, 2) == ENGINE_OK);
  CHECK(values[0] == -3.5f && values[1] == -4.0f && values[16] == -3.0f && values[17] == 3.5f && values[31] == -4.0f);
  uint8_t codes[16];
  CHECK(engine_repack_blocks({codes, 16}, {nullptr, 0}, out(scales), out(offsets), {block, 18}, 2) == ENGINE_OK);
  CHECK(codes[0] == 0x01 && codes[8] == 0xf2 && scales[0] == 0.5f);
  for (uint32_t type : {0u, 1u, 9u, 15u, 16u, 30u, 255u}) {
    CHECK(engine_unpack_blocks(out(values), {block, 18}, type) == ENGINE_BAD_ARGUMENT);
    CHECK(engine_repack_blocks({codes, 16}, {nullptr, 0}, out(scales), out(offsets), {block, 18}, type) ==
          ENGINE_BAD_ARGUMENT);
  }
  // a subnormal, an infinity and a NaN as scale
  const uint8_t halves[][2] = {{1, 0x80}, {0, 0x7c}, {1, 0x7c}};
  block[2] = 0x09;
  for (int i = 0; i < 3; i++) {
    block[0] = halves[i][0], block[1] = halves[i][1];
    CHECK(engine_unpack_blocks(out(values), {block, 18}, 2) == ENGINE_OK);
    CHECK(i == 0 ? values[0] == -0x1p-24f : i == 1 ? std::isinf(values[0]) : std::isnan(values[0]));
  }
}

void scaled() {
  const size_t rows = 260, columns = 224;
  const std::vector<uint8_t> codes = bytes_of(rows * columns, 1), exponents = bytes_of(384 * 8, 2);
  const engine_cu8 scales{exponents.data(), exponents.size()};
  const std::vector<float> whole = everywhere([&] {
    std::vector<float> values(rows * columns);
    CHECK(engine_unpack_mxfp8(out(values), {codes.data(), codes.size()}, scales, columns, 0) == ENGINE_OK);
    return values;
  });
  // rows in two parts
  std::vector<float> parts(rows * columns);
  const size_t first = 131, start = first * columns;
  CHECK(engine_unpack_mxfp8({parts.data(), start}, {codes.data(), start}, scales, columns, 0) == ENGINE_OK);
  CHECK(engine_unpack_mxfp8({parts.data() + start, parts.size() - start}, {codes.data() + start, codes.size() - start},
                            scales, columns, first) == ENGINE_OK);
  CHECK(same_bytes(whole, parts));
  CHECK(engine_unpack_mxfp8(out(parts), {codes.data(), codes.size()}, scales, columns, 125) == ENGINE_BAD_LENGTH);
  CHECK(engine_unpack_mxfp8(out(parts), {codes.data(), codes.size()}, scales, 0, 0) == ENGINE_BAD_LENGTH);
  CHECK(engine_unpack_mxfp8(out(parts), {codes.data(), codes.size()}, scales, columns, SIZE_MAX) == ENGINE_BAD_LENGTH);
  CHECK(engine_unpack_mxfp8(out(parts), {codes.data(), codes.size() - 1}, scales, columns, 0) == ENGINE_BAD_LENGTH);

  const size_t narrow = 64;
  const std::vector<uint8_t> packed = bytes_of(rows * narrow / 2, 3), floats = bytes_of(384 * 4, 4);
  const engine_cu8 eights{floats.data(), floats.size()}, from{packed.data(), packed.size()};
  const std::vector<float> values = everywhere([&] {
    std::vector<float> unpacked(rows * narrow);
    CHECK(engine_unpack_nvfp4(out(unpacked), from, eights, 0.3f, narrow, 0) == ENGINE_OK);
    return unpacked;
  });
  std::vector<uint8_t> highs(packed.size()), lows(packed.size());
  std::vector<float> groups(values.size() / 16);
  const engine_u8 to{highs.data(), highs.size()}, below{lows.data(), lows.size()};
  CHECK(engine_repack_nvfp4(to, below, out(groups), from, eights, 0.3f, narrow, 0) == ENGINE_OK);
  for (size_t i = 0; i < values.size(); i++) {
    const auto half = [&](const std::vector<uint8_t> &codes) { return (codes[i / 2] >> (4 * (i % 2)) & 15) - 8; };
    CHECK(groups[i / 16] * static_cast<float>(16 * half(highs) + half(lows)) == values[i]);
  }
  CHECK(engine_repack_nvfp4(to, below, out(groups), from, eights, 0.3f, 24, 0) == ENGINE_BAD_LENGTH);
  CHECK(engine_repack_nvfp4(to, {lows.data(), lows.size() - 1}, out(groups), from, eights, 0.3f, narrow, 0) ==
        ENGINE_BAD_LENGTH);
  groups.push_back(0);
  CHECK(engine_repack_nvfp4(to, below, out(groups), from, eights, 0.3f, narrow, 0) == ENGINE_BAD_LENGTH);
  CHECK(engine_unpack_nvfp4(out(groups), from, eights, 0.3f, narrow, 0) == ENGINE_BAD_LENGTH);

  std::vector<float> table(16), largest = {2.0f, 3.0f}, last(96);
  for (int i = 0; i < 16; i++) table[i] = static_cast<float>(i);
  const engine_cu8 halves{packed.data(), 48};
  CHECK(engine_unpack_nf4(out(last), halves, in(table), in(largest), 64) == ENGINE_OK);
  CHECK(last[0] == 2.0f * static_cast<float>(packed[0] >> 4) && last[65] == 3.0f * static_cast<float>(packed[32] & 15));
  CHECK(engine_unpack_nf4(out(last), halves, in(table), in(largest), 63) == ENGINE_BAD_ARGUMENT);
  CHECK(engine_unpack_nf4(out(last), halves, in(table), in(largest), 32) == ENGINE_BAD_LENGTH);
  CHECK(engine_unpack_nf4(out(last), halves, in(largest), in(largest), 64) == ENGINE_BAD_LENGTH);
}

}  // namespace

int main() {
  for (const Type &type : kTypes) {
    for (size_t count : {0, 1, 3, 5000}) blocks(type, count);
  }
  order();
  scaled();
  return report();
}
