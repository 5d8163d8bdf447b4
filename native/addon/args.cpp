#include "operations.h"

#include <cmath>
#include <cstdio>

namespace latentkit {
namespace {

std::string Show(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

std::string Describe(Napi::Value value) {
  switch (value.Type()) {
    case napi_undefined: return "undefined";
    case napi_null: return "null";
    case napi_boolean: return "a boolean";
    case napi_number: return Show(value.As<Napi::Number>().DoubleValue());
    case napi_string: return "a string";
    case napi_symbol: return "a symbol";
    case napi_function: return "a function";
    case napi_bigint: return "a bigint";
    default: return value.IsTypedArray() ? "another typed array" : "an object";
  }
}

}  // namespace

const char *StatusName(engine_status status) {
  switch (status) {
    case ENGINE_OK: return "ok";
    case ENGINE_BAD_LENGTH: return "bad-length";
    case ENGINE_BAD_ARGUMENT: return "bad-argument";
    case ENGINE_NO_MEMORY: return "no-memory";
    case ENGINE_NO_SPACE: return "no-space";
    case ENGINE_ZERO_DEVIATION: return "zero-deviation";
    case ENGINE_BAD_FILE: return "bad-file";
    case ENGINE_TOO_LARGE: return "too-large";
    case ENGINE_UNSUPPORTED: return "unsupported";
    case ENGINE_DEVICE_LOST: return "device-lost";
  }
  return "unknown";
}

Napi::Error StatusError(Napi::Env env, engine_status status, const std::string &message) {
  const bool at_fault = status == ENGINE_BAD_FILE || status == ENGINE_UNSUPPORTED || status == ENGINE_NO_MEMORY ||
                        status == ENGINE_DEVICE_LOST;
  Napi::Error error = at_fault ? Napi::Error::New(env, message) : Napi::RangeError::New(env, message);
  error.Set("status", Napi::String::New(env, StatusName(status)));
  return error;
}

std::string Args::where(const char *name) const { return std::string(function_) + ": argument \"" + name + "\": "; }

void Args::type_error(const char *name, const char *expected, Napi::Value received) const {
  throw Napi::TypeError::New(env(), where(name) + "expected " + expected + ", received " + Describe(received) + ".");
}

void Args::range_error(const char *name, const std::string &expected, const std::string &received) const {
  throw Napi::RangeError::New(env(), where(name) + "expected " + expected + ", received " + received + ".");
}

View Args::view(Napi::Value value, const char *name, const char *expected) const {
  View view{};
  napi_value buffer = nullptr;
  size_t offset = 0;
  if (napi_get_typedarray_info(env(), value, &view.type, &view.len, &view.data, &buffer, &offset) != napi_ok)
    type_error(name, expected, value);
  bool is_own = false;
  // another thread could change shared memory under the kernel
  if (napi_is_arraybuffer(env(), buffer, &is_own) != napi_ok || !is_own)
    throw Napi::TypeError::New(env(), where(name) + "expected an ordinary ArrayBuffer, received a SharedArrayBuffer.");
  bool is_detached = false;
  if (view.len == 0 && napi_is_detached_arraybuffer(env(), buffer, &is_detached) == napi_ok && is_detached)
    throw Napi::TypeError::New(env(), where(name) + "expected a usable ArrayBuffer, received a detached one.");
  return view;
}

View Args::typed(Napi::Value value, const char *name, napi_typedarray_type type, const char *expected) const {
  const View array = view(value, name, expected);
  if (array.type != type) type_error(name, expected, value);
  return array;
}

engine_f32 Args::out(size_t i, const char *name) const {
  const View v = typed(info_[i], name, napi_float32_array, "a Float32Array");
  return {static_cast<float *>(v.data), v.len};
}

engine_cf32 Args::in(Napi::Value value, const char *name) const {
  const View v = typed(value, name, napi_float32_array, "a Float32Array");
  return {static_cast<const float *>(v.data), v.len};
}

engine_cf32 Args::in(size_t i, const char *name) const { return in(info_[i], name); }

engine_cf32 Args::in(size_t i, const char *name, size_t length) const {
  const engine_cf32 span = in(info_[i], name);
  expect(name, span.len, {length});
  return span;
}

engine_u8 Args::bytes_out(size_t i, const char *name) const {
  const View v = typed(info_[i], name, napi_uint8_array, "a Uint8Array");
  return {static_cast<uint8_t *>(v.data), v.len};
}

engine_cu8 Args::bytes_in(size_t i, const char *name) const {
  const engine_u8 span = bytes_out(i, name);
  return {span.data, span.len};
}

engine_u32 Args::words_out(size_t i, const char *name) const {
  const View v = typed(info_[i], name, napi_uint32_array, "a Uint32Array");
  return {static_cast<uint32_t *>(v.data), v.len};
}

const double *Args::doubles_in(size_t i, const char *name, size_t unit, size_t *count) const {
  const View v = typed(info_[i], name, napi_float64_array, "a Float64Array");
  *count = v.len / unit;
  expect(name, v.len, {*count, unit});
  return static_cast<const double *>(v.data);
}

double Args::number(Napi::Value value, const char *name) const {
  double result = 0;
  if (napi_get_value_double(env(), value, &result) != napi_ok) type_error(name, "a number", value);
  return result;
}

bool Args::boolean(Napi::Value value, const char *name) const {
  bool result = false;
  if (napi_get_value_bool(env(), value, &result) != napi_ok) type_error(name, "a boolean", value);
  return result;
}

int32_t Args::bit_depth(size_t i) const {
  if (!has(i)) return 8;
  const auto depth = static_cast<int32_t>(integer(i, "bitDepth", 8, 16));
  if (depth != 8 && depth != 16) range_error("bitDepth", "8 or 16", std::to_string(depth));
  return depth;
}

int64_t Args::integer(Napi::Value value, const char *name, int64_t low, int64_t high) const {
  const double result = number(value, name);
  if (!(result >= static_cast<double>(low) && result <= static_cast<double>(high)) || std::trunc(result) != result)
    range_error(name, "a whole number from " + std::to_string(low) + " to " + std::to_string(high), Show(result));
  return static_cast<int64_t>(result);
}

uint64_t Args::u64(Napi::Value value, const char *name) const {
  uint64_t result = 0;
  bool is_lossless = false;
  if (napi_get_value_bigint_uint64(env(), value, &result, &is_lossless) != napi_ok) type_error(name, "a bigint", value);
  if (!is_lossless) range_error(name, "a bigint from 0 to 2^64-1", "one outside that range");
  return result;
}

std::string Args::text(Napi::Value value, const char *name) const {
  if (!value.IsString()) type_error(name, "a string", value);
  return value.As<Napi::String>().Utf8Value();
}

Napi::Object Args::object(Napi::Value value, const char *name) const {
  if (!value.IsObject()) type_error(name, "an object", value);
  return value.As<Napi::Object>();
}

void Args::sizes(Napi::Value value, const char *name, size_t *out, size_t count) const {
  if (!value.IsArray()) type_error(name, "a list of sizes", value);
  const Napi::Array list = value.As<Napi::Array>();
  if (list.Length() != count) range_error(name, std::to_string(count) + " sizes", std::to_string(list.Length()));
  for (uint32_t k = 0; k < count; k++) out[k] = static_cast<size_t>(integer(list.Get(k), name, 0, kMaxSize));
}

void Args::expect(const char *name, size_t length, std::initializer_list<size_t> dimensions) const {
  size_t count = 1;
  bool overflows = false;
  for (const size_t d : dimensions) overflows = __builtin_mul_overflow(count, d, &count) || overflows;
  if (overflows) range_error(name, "a shape that fits in memory", "a larger one");
  if (length != count) range_error(name, std::to_string(count) + " elements", std::to_string(length));
}

void Args::apart(const void *out, size_t out_bytes, const void *in, size_t in_bytes, const char *name,
                 bool same_allowed) const {
  const auto o = reinterpret_cast<uintptr_t>(out);
  const auto i = reinterpret_cast<uintptr_t>(in);
  if (o == i && out_bytes == in_bytes && same_allowed) return;
  if (o < i + in_bytes && i < o + out_bytes)
    range_error(name, "memory separate from the output", "memory that overlaps it");
}

Napi::Value Args::done(engine_status status, const char *reason) const {
  if (status == ENGINE_OK) return env().Undefined();
  const char *const why = reason != nullptr ? reason : engine_status_text(status);
  throw StatusError(env(), status, std::string(function_) + ": " + why + ".");
}

}  // namespace latentkit
