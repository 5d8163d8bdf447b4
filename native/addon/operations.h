// The operations that JavaScript can call, by subject; src/native/bindings.ts is their TypeScript face.
#pragma once
#include <napi.h>

#include <initializer_list>

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

}  // namespace latentkit
