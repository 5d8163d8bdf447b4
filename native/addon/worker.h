// Work away from JavaScript's thread, reported back as a promise, and the memory it owns.
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

// not a vector: whole images are overwritten at once, and clearing them first would cost a pass
struct Bytes {
  explicit Bytes(size_t count) : data(static_cast<uint8_t *>(engine_scratch_take(count))), len(count) {
    if (data == nullptr) throw std::bad_alloc();
  }
  std::unique_ptr<uint8_t[], GiveScratch> data;
  size_t len;
};

// V8 owns what JavaScript gets: other memory could not be transferred to another thread
inline Napi::ArrayBuffer CopyOut(Napi::Env env, const uint8_t *data, size_t len) {
  Napi::ArrayBuffer buffer = Napi::ArrayBuffer::New(env, len);
  if (len > 0) std::memcpy(buffer.Data(), data, len);
  return buffer;
}

/* One piece of work. It owns all its memory: the environment that submitted it may end first. */
class Job {
 public:
  virtual ~Job() = default;
  /* On a thread of the core, without JavaScript. *reason may be set to a static phrase. */
  virtual engine_status Work(const char **reason) = 0;
  /* On JavaScript's thread, after Work returned ENGINE_OK. */
  virtual Napi::Value Result(Napi::Env env) = 0;
  virtual const char *Name() const = 0;
};

/* Once for each environment, when the module loads. */
void OpenChannel(Napi::Env env);

/* Queues the job; the promise resolves to its result or rejects with an Error that has `status`. */
Napi::Value Submit(Napi::Env env, std::unique_ptr<Job> job);

}  // namespace latentkit
