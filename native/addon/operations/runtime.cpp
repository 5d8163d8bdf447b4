// Instruction sets and threads of the core.
#include "args.h"
#include "operations.h"

namespace latentkit {
namespace {

const char *const kSets[] = {"avx512", "avx2", "baseline"};

Napi::Value Isa(const Napi::CallbackInfo &info) { return Napi::String::New(info.Env(), engine_isa()); }

Napi::Value Isas(const Napi::CallbackInfo &info) {
  Napi::Array list = Napi::Array::New(info.Env());
  for (const char *name : kSets)
    if (engine_isa_supported(name)) list.Set(list.Length(), Napi::String::New(info.Env(), name));
  return list;
}

Napi::Value SetIsa(const Napi::CallbackInfo &info) {
  const Args a(info);
  const std::string name = a.text(0, "name");
  const engine_status status = engine_set_isa(name.c_str());
  if (status == ENGINE_OK) return info.Env().Undefined();
  throw StatusError(info.Env(), status, a.where("name") + "expected a set of this processor, received " + name + ".");
}

Napi::Value Threads(const Napi::CallbackInfo &info) { return Napi::Number::New(info.Env(), engine_threads()); }

Napi::Value SetThreads(const Napi::CallbackInfo &info) {
  const Args a(info);
  return a.done(engine_set_threads(static_cast<int>(a.integer(0, "count", 1, 256))));
}

}  // namespace

void ExportRuntime(const Exports &exports) {
  SetAll(exports.core,
         {{"isa", Isa}, {"isas", Isas}, {"setIsa", SetIsa}, {"threads", Threads}, {"setThreads", SetThreads}});
}

}  // namespace latentkit
