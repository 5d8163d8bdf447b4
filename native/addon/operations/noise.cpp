// PyTorch's generators.
#include <cstring>

#include "cuda.h"
#include "operations.h"

namespace latentkit {
namespace {

engine_u8 StateSpan(const Args &a) {
  const engine_u8 span = a.bytes_out(0, "state");
  a.expect("state", span.len, {sizeof(engine_mt19937)});
  return span;
}

Napi::Value MtSeed(const Napi::CallbackInfo &info) {
  const Args a(info);
  const uint64_t seed = a.u64(1, "seed");
  const engine_u8 state = StateSpan(a);
  engine_mt19937 generator;
  std::memset(&generator, 0, sizeof generator);
  engine_mt_seed(&generator, seed);
  std::memcpy(state.data, &generator, sizeof generator);
  return info.Env().Undefined();
}

/* The normals of a stream from its beginning. */
Napi::Value MtNormals(const Napi::CallbackInfo &info) {
  const Args a(info);
  const uint64_t seed = a.u64(1, "seed");
  const engine_f32 out = a.out(0, "out");
  engine_mt19937 generator;
  engine_mt_seed(&generator, seed);
  return a.done(engine_mt_randn(&generator, out));
}

Napi::Value MtRandn(const Napi::CallbackInfo &info) {
  const Args a(info);
  const engine_u8 state = StateSpan(a);
  const engine_f32 out = a.out(1, "out");
  a.apart(out.data, out.len * 4, state.data, state.len, "state", false);
  engine_mt19937 generator;  // the caller's bytes may be unaligned
  std::memcpy(&generator, state.data, sizeof generator);
  if (generator.next > 624 || generator.has_normal > 1)
    a.range_error("state", "bytes that mtSeed wrote", "other bytes");
  const engine_status status = engine_mt_randn(&generator, out);
  if (status == ENGINE_OK) std::memcpy(state.data, &generator, sizeof generator);
  return a.done(status);
}

/* Words as Uint32Array. They and the span share no memory, so that writing it changes no cut that was checked. */
engine_u32 Words(const Args &a, size_t i, const char *name, engine_f32 out, engine_f32 lefts) {
  const engine_u32 words = a.words_out(i, name);
  a.apart(out.data, out.len * 4, words.data, words.len * 4, name, false);
  a.apart(lefts.data, lefts.len * 4, words.data, words.len * 4, name, false);
  return words;
}

Napi::Value Brownian(const Napi::CallbackInfo &info) {
  static_assert(sizeof(engine_cut) == 7 * sizeof(uint32_t));
  const Args a(info);
  const engine_f32 out = a.out(0, "out"), lefts = a.out(2, "lefts");
  const engine_cf32 root = a.in(1, "root", out.len);
  a.apart(out, root, "root", false);
  a.apart(out, {lefts.data, lefts.len}, "lefts", false);
  a.apart(lefts, root, "root", false);
  const size_t pitch = a.size(3, "pitch");
  const engine_u32 ends = Words(a, 4, "ends", out, lefts), cuts = Words(a, 5, "cuts", out, lefts),
                   terms = Words(a, 6, "terms", out, lefts);
  a.expect("cuts", cuts.len, {cuts.len / 7, 7});
  return a.done(engine_brownian(out, root, lefts, pitch, ends.data, ends.len,
                                reinterpret_cast<const engine_cut *>(cuts.data), cuts.len / 7, terms.data, terms.len,
                                a.f32(7, "divisor")));
}

template <class A>
Napi::Value PhiloxRandn(const Napi::CallbackInfo &info) {
  const A a(info);
  const engine_f32 out = a.out(0, "out");
  uint64_t offset = a.u64(2, "offset");
  const auto threads = static_cast<uint32_t>(a.integer(3, "threads", 0, UINT32_MAX));
  a.done(a.run(engine_philox_randn, &engine_cuda_table::philox_randn, out, a.u64(1, "seed"), &offset, threads,
               a.f32(4, "k")));
  return Napi::BigInt::New(info.Env(), offset);
}

Napi::Value PhiloxSkip(const Napi::CallbackInfo &info) {
  const Args a(info);
  uint64_t offset = a.u64(1, "offset");
  const auto threads = static_cast<uint32_t>(a.integer(2, "threads", 0, UINT32_MAX));
  a.done(engine_philox_skip(a.size(0, "count"), &offset, threads));
  return Napi::BigInt::New(info.Env(), offset);
}

template <class A>
Napi::Value PhiloxWords(const Napi::CallbackInfo &info) {
  const A a(info);
  const engine_u32 out = a.words_out(0, "out");
  const auto threads = static_cast<uint32_t>(a.integer(3, "threads", 0, UINT32_MAX));
  return a.done(
      a.run(engine_philox_words, &engine_cuda_table::philox_words, out, a.u64(1, "seed"), a.u64(2, "offset"), threads));
}

template <class A>
constexpr std::initializer_list<Operation> kOperations = {{"philoxRandn", PhiloxRandn<A>},
                                                          {"philoxWords", PhiloxWords<A>}};

}  // namespace

void ExportNoise(const Exports &exports) {
  exports.core.Set("mtStateBytes", Napi::Number::New(exports.core.Env(), sizeof(engine_mt19937)));
  SetAll(exports.core, kOperations<Args>);
  SetAll(exports.cuda, kOperations<CudaArgs>);
  SetAll(exports.core, {{"mtSeed", MtSeed},
                        {"mtNormals", MtNormals},
                        {"mtRandn", MtRandn},
                        {"brownian", Brownian},
                        {"philoxSkip", PhiloxSkip}});
}

}  // namespace latentkit
