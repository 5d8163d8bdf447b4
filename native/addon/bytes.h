// Memory of jobs, and its copies for JavaScript.
#pragma once
#include <napi.h>

#include <cstring>
#include <memory>
#include <new>

#include "engine.h"

namespace latentkit {

struct GiveScratch {
  void operator()(uint8_t *memory) const { engine_scratch_give(memory); }
};

// not a vector: whole images are written over at once, clearing them first would cost a pass
struct Bytes {
  explicit Bytes(size_t count) : data(static_cast<uint8_t *>(engine_scratch_take(count))), len(count) {
    if (data == nullptr) throw std::bad_alloc();
  }
  std::unique_ptr<uint8_t[], GiveScratch> data;
  size_t len;
};

// V8 owns what JavaScript gets: memory of others could not be transferred to another thread
inline Napi::ArrayBuffer CopyOut(Napi::Env env, const uint8_t *data, size_t len) {
  Napi::ArrayBuffer buffer = Napi::ArrayBuffer::New(env, len);
  if (len > 0) std::memcpy(buffer.Data(), data, len);
  return buffer;
}

}  // namespace latentkit
