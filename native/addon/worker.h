// Work away from JavaScript's thread, reported back as a promise.
#pragma once
#include <napi.h>

#include <memory>

#include "engine.h"

namespace latentkit {

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
