// Quantised weights.
#include "operations.h"

namespace latentkit {
namespace {

constexpr int64_t kMostType = 255;

void Apart(const Args &a, engine_u8 out, engine_cu8 in, const char *name) {
  a.apart(out.data, out.len, in.data, in.len, name, false);
}

void Apart(const Args &a, engine_f32 out, engine_cu8 in, const char *name) {
  a.apart(out.data, out.len * 4, in.data, in.len, name, false);
}

Napi::Value UnpackBlocks(const Napi::CallbackInfo &info) {
  const Args a(info);
  const auto type = static_cast<uint32_t>(a.integer(2, "type", 0, kMostType));
  const engine_f32 out = a.out(0, "out");
  const engine_cu8 blocks = a.bytes_in(1, "blocks");
  Apart(a, out, blocks, "blocks");
  return a.done(engine_unpack_blocks(out, blocks, type));
}

Napi::Value RepackBlocks(const Napi::CallbackInfo &info) {
  const Args a(info);
  const auto type = static_cast<uint32_t>(a.integer(5, "type", 0, kMostType));
  const engine_u8 codes = a.bytes_out(0, "codes"), lows = a.bytes_out(1, "lows");
  const engine_f32 scales = a.out(2, "scales"), offsets = a.out(3, "offsets");
  const engine_cu8 blocks = a.bytes_in(4, "blocks");
  Apart(a, scales, blocks, "blocks");
  Apart(a, offsets, blocks, "blocks");
  Apart(a, codes, blocks, "blocks");
  Apart(a, lows, blocks, "blocks");
  return a.done(engine_repack_blocks(codes, lows, scales, offsets, blocks, type));
}

Napi::Value UnpackMxfp8(const Napi::CallbackInfo &info) {
  const Args a(info);
  const size_t columns = a.size(3, "columns"), first = a.size(4, "first");
  const engine_f32 out = a.out(0, "out");
  const engine_cu8 codes = a.bytes_in(1, "codes"), scales = a.bytes_in(2, "scales");
  Apart(a, out, codes, "codes");
  Apart(a, out, scales, "scales");
  return a.done(engine_unpack_mxfp8(out, codes, scales, columns, first));
}

Napi::Value UnpackNvfp4(const Napi::CallbackInfo &info) {
  const Args a(info);
  const float factor = a.f32(3, "factor");
  const size_t columns = a.size(4, "columns"), first = a.size(5, "first");
  const engine_f32 out = a.out(0, "out");
  const engine_cu8 values = a.bytes_in(1, "values"), scales = a.bytes_in(2, "scales");
  Apart(a, out, values, "values");
  Apart(a, out, scales, "scales");
  return a.done(engine_unpack_nvfp4(out, values, scales, factor, columns, first));
}

Napi::Value RepackNvfp4(const Napi::CallbackInfo &info) {
  const Args a(info);
  const float factor = a.f32(5, "factor");
  const size_t columns = a.size(6, "columns"), first = a.size(7, "first");
  const engine_u8 codes = a.bytes_out(0, "codes"), lows = a.bytes_out(1, "lows");
  const engine_f32 group_scales = a.out(2, "groupScales");
  const engine_cu8 values = a.bytes_in(3, "values"), scales = a.bytes_in(4, "scales");
  Apart(a, group_scales, values, "values");
  Apart(a, group_scales, scales, "scales");
  Apart(a, codes, values, "values");
  Apart(a, codes, scales, "scales");
  Apart(a, lows, values, "values");
  Apart(a, lows, scales, "scales");
  return a.done(engine_repack_nvfp4(codes, lows, group_scales, values, scales, factor, columns, first));
}

Napi::Value UnpackNf4(const Napi::CallbackInfo &info) {
  const Args a(info);
  const size_t group = a.size(4, "group");
  const engine_f32 out = a.out(0, "out");
  const engine_cu8 codes = a.bytes_in(1, "codes");
  const engine_cf32 table = a.in(2, "table"), largest = a.in(3, "largest");
  Apart(a, out, codes, "codes");
  a.apart(out, table, "table", false);
  a.apart(out, largest, "largest", false);
  return a.done(engine_unpack_nf4(out, codes, table, largest, group));
}

}  // namespace

void ExportWeights(const Exports &exports) {
  SetAll(exports.core, {{"unpackBlocks", UnpackBlocks},
                        {"repackBlocks", RepackBlocks},
                        {"unpackMxfp8", UnpackMxfp8},
                        {"unpackNvfp4", UnpackNvfp4},
                        {"repackNvfp4", RepackNvfp4},
                        {"unpackNf4", UnpackNf4}});
}

}  // namespace latentkit
