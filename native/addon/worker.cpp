#include "worker.h"

#include <mutex>
#include <new>
#include <string>

#include "operations.h"

namespace latentkit {
namespace {

/* The way back into one environment; tasks share it, so it outlives the environment. */
struct Channel {
  std::mutex mutex;
  bool is_open = true;
  napi_threadsafe_function function = nullptr;
  size_t pending = 0;  // JavaScript's thread only
};

struct Task {
  std::shared_ptr<Channel> channel;
  std::unique_ptr<Job> job;
  napi_deferred deferred;
  engine_status status = ENGINE_OK;
  const char *reason = nullptr;
};

using Instance = std::shared_ptr<Channel>;

void Settle(napi_env raw, Task &task) {
  Napi::Env env(raw);
  const auto failure = [&] {
    const char *why = task.reason != nullptr ? task.reason : engine_status_text(task.status);
    return StatusError(env, task.status, std::string(task.job->Name()) + ": " + why + ".").Value();
  };
  // an environment that is ending refuses these calls: plain N-API, whose statuses may be ignored
  try {
    if (task.status != ENGINE_OK) {
      napi_reject_deferred(env, task.deferred, failure());
      return;
    }
    napi_resolve_deferred(env, task.deferred, task.job->Result(env));
  } catch (const Napi::Error &error) {
    napi_reject_deferred(env, task.deferred, error.Value());
  } catch (const std::exception &) {
    task.status = ENGINE_NO_MEMORY;
    task.reason = nullptr;
    napi_reject_deferred(env, task.deferred, failure());
  }
}

/* JavaScript's thread; env is NULL when the environment ended with the task in its queue. */
void Deliver(napi_env env, napi_value, void *, void *data) {
  const std::unique_ptr<Task> task(static_cast<Task *>(data));
  if (env == nullptr) return;
  if (--task->channel->pending == 0) napi_unref_threadsafe_function(env, task->channel->function);
  Settle(env, *task);
}

/* A thread of the core. */
void Run(void *data) {
  std::unique_ptr<Task> task(static_cast<Task *>(data));
  try {
    task->status = task->job->Work(&task->reason);
  } catch (const std::exception &) {
    task->status = ENGINE_NO_MEMORY;
  }
  const Instance channel = task->channel;
  const std::lock_guard<std::mutex> lock(channel->mutex);
  if (!channel->is_open) return;
  if (napi_call_threadsafe_function(channel->function, task.get(), napi_tsfn_nonblocking) == napi_ok) task.release();
}

void Close(void *data) {
  auto *channel = static_cast<Channel *>(data);
  const std::lock_guard<std::mutex> lock(channel->mutex);
  channel->is_open = false;
}

}  // namespace

void OpenChannel(Napi::Env env) {
  auto instance = std::make_unique<Instance>(std::make_shared<Channel>());
  Channel *channel = instance->get();
  const Napi::String name = Napi::String::New(env, "latentkit");
  const napi_status status = napi_create_threadsafe_function(env, nullptr, nullptr, name, 0, 1, nullptr, nullptr,
                                                             nullptr, Deliver, &channel->function);
  if (status != napi_ok)
    throw Napi::Error::New(env, "latentkit: could not create the function through which threads report back.");
  napi_unref_threadsafe_function(env, channel->function);
  env.SetInstanceData(instance.release());
  // hooks run last in, first out: no thread calls the function once Node takes it down
  napi_add_env_cleanup_hook(env, Close, channel);
}

Napi::Value Submit(Napi::Env env, std::unique_ptr<Job> job) {
  const Instance &channel = *env.GetInstanceData<Instance>();
  auto task = std::make_unique<Task>();
  task->channel = channel;
  task->job = std::move(job);
  napi_value promise = nullptr;
  if (napi_create_promise(env, &task->deferred, &promise) != napi_ok) throw Napi::Error::New(env);
  // a pending promise keeps the process alive
  if (channel->pending++ == 0) napi_ref_threadsafe_function(env, channel->function);
  Task *submitted = task.release();
  const engine_status status = engine_submit(Run, submitted);
  if (status != ENGINE_OK) {
    submitted->status = status;
    Deliver(env, nullptr, nullptr, submitted);
  }
  return Napi::Value(env, promise);
}

}  // namespace latentkit
