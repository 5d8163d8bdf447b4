#include <new>
#include <string>

#include "operations.h"
#include "worker.h"

namespace latentkit {

void SetAll(Napi::Object to, std::initializer_list<Operation> operations) {
  for (const Operation &operation : operations) {
    const auto guarded = [call = operation.call](const Napi::CallbackInfo &info) {
      try {
        return call(info);
      } catch (const std::bad_alloc &) {
        throw StatusError(info.Env(), ENGINE_NO_MEMORY, std::string(engine_status_text(ENGINE_NO_MEMORY)) + ".");
      }
    };
    to.Set(operation.name, Napi::Function::New(to.Env(), guarded, operation.name, const_cast<char *>(operation.name)));
  }
}

namespace {

Napi::Object Init(Napi::Env env, Napi::Object core) {
  const Exports exports{core, Napi::Object::New(env)};
  for (const auto fill : {ExportSystem, ExportNoise, ExportSampling, ExportTensors, ExportImages, ExportPngEncode,
                          ExportPngDecode, ExportCudaMemory, ExportWeights})
    fill(exports);
  core.Set("cuda", exports.cuda);
  OpenChannel(env);
  return core;
}

}  // namespace

NODE_API_MODULE(latentkit, Init)

}  // namespace latentkit
