// The operations that JavaScript can call, by subject; src/native/bindings.ts is their TypeScript face. Arguments of a
// call are converted and checked: every failure is a TypeError or RangeError that names the argument.
#pragma once
#include <napi.h>

#include <initializer_list>
#include <string>

#include "engine.h"

namespace latentkit {

struct Operation {
  const char *name;
  Napi::Value (*call)(const Napi::CallbackInfo &info);
};

/* The module's object, whose operations work on typed arrays, and its `cuda`, whose operations work on device memory.
 */
struct Exports {
  Napi::Object core, cuda;
};

/* Makes each operation a property of `to`; one that runs out of memory throws an Error with a status. */
void SetAll(Napi::Object to, std::initializer_list<Operation> operations);

void ExportCudaMemory(const Exports &exports);
void ExportImages(const Exports &exports);
void ExportNoise(const Exports &exports);
void ExportPngDecode(const Exports &exports);
void ExportPngEncode(const Exports &exports);
void ExportSampling(const Exports &exports);
void ExportSystem(const Exports &exports);
void ExportTensors(const Exports &exports);
void ExportWeights(const Exports &exports);

/* The status in kebab case, as the `status` property of an error. */
const char *StatusName(engine_status status);
/* An Error (RangeError unless the file is at fault) with `status` set. */
Napi::Error StatusError(Napi::Env env, engine_status status, const std::string &message);

/* A typed array, detached and shared memory refused. Valid until JavaScript runs again. */
struct View {
  void *data;
  size_t len;
  napi_typedarray_type type;
};

/*
 * Reading a property can run JavaScript that moves or frees any buffer: take objects and lists apart first, spans last.
 */
class Args {
 public:
  /* Arguments of a function that SetAll registered: its data is its name. */
  explicit Args(const Napi::CallbackInfo &info) : info_(info), function_(static_cast<const char *>(info.Data())) {}

  Napi::Env env() const { return info_.Env(); }
  bool has(size_t i) const { return i < info_.Length() && !info_[i].IsUndefined(); }

  engine_f32 out(size_t i, const char *name) const;
  engine_cf32 in(size_t i, const char *name) const;
  engine_cf32 in(Napi::Value value, const char *name) const;
  /* Like in(), with exactly this length. */
  engine_cf32 in(size_t i, const char *name, size_t length) const;
  engine_u8 bytes_out(size_t i, const char *name) const;
  engine_cu8 bytes_in(size_t i, const char *name) const;
  engine_u32 words_out(size_t i, const char *name) const;
  /* A Float64Array of a multiple of `unit` elements; *count: how many times that. */
  const double *doubles_in(size_t i, const char *name, size_t unit, size_t *count) const;
  /* Any typed array; `expected` is for the message. */
  View view(Napi::Value value, const char *name, const char *expected) const;
  Napi::Value at(size_t i) const { return info_[i]; }

  double number(size_t i, const char *name) const { return number(info_[i], name); }
  double number(Napi::Value value, const char *name) const;
  float f32(size_t i, const char *name) const { return static_cast<float>(number(i, name)); }
  bool boolean(size_t i, const char *name) const { return boolean(info_[i], name); }
  bool boolean(Napi::Value value, const char *name) const;
  /* A whole number in low … high. */
  int64_t integer(size_t i, const char *name, int64_t low, int64_t high) const {
    return integer(info_[i], name, low, high);
  }
  int64_t integer(Napi::Value value, const char *name, int64_t low, int64_t high) const;
  size_t size(size_t i, const char *name) const { return static_cast<size_t>(integer(i, name, 0, kMaxSize)); }
  /* A bigint in 0 … 2^64-1. */
  uint64_t u64(size_t i, const char *name) const { return u64(info_[i], name); }
  uint64_t u64(Napi::Value value, const char *name) const;
  /* Bits of a sample, 8 or 16; 8 if absent. */
  int32_t bit_depth(size_t i) const;
  std::string text(size_t i, const char *name) const { return text(info_[i], name); }
  std::string text(Napi::Value value, const char *name) const;
  Napi::Object object(size_t i, const char *name) const { return object(info_[i], name); }
  Napi::Object object(Napi::Value value, const char *name) const;
  /* A list of exactly `count` sizes. */
  void sizes(Napi::Value value, const char *name, size_t *out, size_t count) const;

  /* Fails if the span does not have as many elements as the dimensions say. */
  void expect(const char *name, size_t length, std::initializer_list<size_t> dimensions) const;
  /* Fails if out and in overlap; the very same memory is allowed if `same_allowed`. */
  void apart(const void *out, size_t out_bytes, const void *in, size_t in_bytes, const char *name,
             bool same_allowed) const;
  void apart(engine_f32 out, engine_cf32 in, const char *name, bool same_allowed) const {
    apart(out.data, out.len * 4, in.data, in.len * 4, name, same_allowed);
  }

  /* Calls the operation's function of the core. CudaArgs, whose spans lie on a device, calls the other one. */
  template <class Core, class Cuda, class... Values>
  engine_status run(Core function, Cuda, Values... values) const {
    return function(values...);
  }

  /* undefined, or the failure thrown. */
  Napi::Value done(engine_status status, const char *reason = nullptr) const;
  [[noreturn]] void type_error(const char *name, const char *expected, Napi::Value received) const;
  [[noreturn]] void range_error(const char *name, const std::string &expected, const std::string &received) const;
  /* "function: argument "name": " */
  std::string where(const char *name) const;

  static constexpr int64_t kMaxSize = (int64_t{1} << 53) - 1;

 private:
  View typed(Napi::Value value, const char *name, napi_typedarray_type type, const char *expected) const;

  const Napi::CallbackInfo &info_;
  const char *function_;
};

}  // namespace latentkit
