// Weights of 4 and 8 bits whose scales lie beside them: mxfp8, nvfp4, NF4.
#include "runtime/runtime.h"
#include "weights/half.h"

namespace {

/* Where the scale of row r and column c of scales lies: in blocks of 128 rows and 4 columns, 32 x 4 x 4 inside. */
size_t place(size_t r, size_t c, size_t blocks_across) {
  return (r / 128 * blocks_across + c / 4) * 512 + r % 32 * 16 + r % 128 / 32 * 4 + c % 4;
}

/* Rows of values with a scale for each `group` of them; `scales` has whole blocks. */
struct Rows {
  size_t count, groups, blocks_across;
};

bool rows_of(size_t values, size_t columns, size_t group, size_t first, size_t scales, Rows *rows) {
  if (columns == 0 || columns % group != 0 || values % columns != 0) return false;
  rows->count = values / columns;
  rows->groups = columns / group;
  rows->blocks_across = (rows->groups + 3) / 4;
  const size_t block_rows = scales / 512 / rows->blocks_across;
  return first <= block_rows * 128 && rows->count <= block_rows * 128 - first;
}

/* body(row) for every row. */
template <class Body>
void for_rows(size_t rows, size_t columns, Body &&body) {
  latentkit::for_items(rows, columns, [&](size_t begin, size_t end) {
    for (size_t row = begin; row < end; row++) body(row);
  });
}

/* Twice the values of floats of 4 bits, as whole numbers. */
constexpr int8_t kTwice[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

constexpr float kFours[16] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                              -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

float power_of_two(uint8_t exponent) {
  if (exponent == 0) return 0x1p-127f;
  return latentkit::float_of_bits(exponent == 255 ? 0x7fc00000 : static_cast<uint32_t>(exponent) << 23);
}

}  // namespace

engine_status engine_unpack_mxfp8(engine_f32 out, engine_cu8 codes, engine_cu8 scales, size_t columns, size_t first) {
  Rows rows;
  if (out.len != codes.len || !rows_of(out.len, columns, 32, first, scales.len, &rows)) return ENGINE_BAD_LENGTH;
  for_rows(rows.count, columns, [&](size_t row) {
    for (size_t group = 0; group < rows.groups; group++) {
      const float scale = power_of_two(scales.data[place(first + row, group, rows.blocks_across)]);
      const size_t at = row * columns + group * 32;
      for (size_t i = at; i < at + 32; i++) out.data[i] = latentkit::e4m3_value(codes.data[i]) * scale;
    }
  });
  return ENGINE_OK;
}

engine_status engine_repack_nvfp4(engine_u8 codes, engine_u8 lows, engine_f32 group_scales, engine_cu8 values,
                                  engine_cu8 scales, float factor, size_t columns, size_t first) {
  Rows rows;
  if (codes.len != values.len || lows.len != values.len || values.len > SIZE_MAX / 2 ||
      group_scales.len != values.len / 8 || !rows_of(2 * values.len, columns, 16, first, scales.len, &rows))
    return ENGINE_BAD_LENGTH;
  for_rows(rows.count, columns, [&](size_t row) {
    for (size_t group = 0; group < rows.groups; group++) {
      const float scale = latentkit::e4m3_value(scales.data[place(first + row, group, rows.blocks_across)]) * factor;
      group_scales.data[row * rows.groups + group] = 0.5f * scale;
    }
    for (size_t i = row * columns / 2; i < (row + 1) * columns / 2; i++) {
      const int one = kTwice[values.data[i] >> 4], other = kTwice[values.data[i] & 15];
      codes.data[i] = latentkit::code_pair(latentkit::high_code(one), latentkit::high_code(other));
      lows.data[i] = latentkit::code_pair(latentkit::low_code(one), latentkit::low_code(other));
    }
  });
  return ENGINE_OK;
}

engine_status engine_unpack_nvfp4(engine_f32 out, engine_cu8 values, engine_cu8 scales, float factor, size_t columns,
                                  size_t first) {
  Rows rows;
  if (out.len / 2 != values.len || out.len % 2 != 0 || !rows_of(out.len, columns, 16, first, scales.len, &rows)) {
    return ENGINE_BAD_LENGTH;
  }
  for_rows(rows.count, columns, [&](size_t row) {
    for (size_t group = 0; group < rows.groups; group++) {
      const float scale = latentkit::e4m3_value(scales.data[place(first + row, group, rows.blocks_across)]) * factor;
      const size_t at = row * columns + group * 16;
      for (size_t i = at; i < at + 16; i += 2) {
        const uint8_t both = values.data[i / 2];
        out.data[i] = kFours[both >> 4] * scale;
        out.data[i + 1] = kFours[both & 15] * scale;
      }
    }
  });
  return ENGINE_OK;
}

engine_status engine_unpack_nf4(engine_f32 out, engine_cu8 codes, engine_cf32 table, engine_cf32 largest,
                                size_t group) {
  if (group < 2 || group % 2 != 0) return ENGINE_BAD_ARGUMENT;
  if (table.len != 16 || out.len % 2 != 0 || out.len / 2 != codes.len || largest.len != (out.len + group - 1) / group) {
    return ENGINE_BAD_LENGTH;
  }
  for_rows(largest.len, group, [&](size_t row) {
    const size_t end = row + 1 == largest.len ? out.len : (row + 1) * group;
    for (size_t i = row * group; i < end; i += 2) {
      out.data[i] = table.data[codes.data[i / 2] >> 4] * largest.data[row];
      out.data[i + 1] = table.data[codes.data[i / 2] & 15] * largest.data[row];
    }
  });
  return ENGINE_OK;
}
