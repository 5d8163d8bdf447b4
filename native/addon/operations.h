// Every operation that JavaScript can call; src/native/bindings.ts is their TypeScript face.
#pragma once
#include <napi.h>

namespace latentkit {

Napi::Value Isa(const Napi::CallbackInfo &info);
Napi::Value Isas(const Napi::CallbackInfo &info);
Napi::Value SetIsa(const Napi::CallbackInfo &info);
Napi::Value Threads(const Napi::CallbackInfo &info);
Napi::Value SetThreads(const Napi::CallbackInfo &info);

size_t MtStateBytes();
Napi::Value MtSeed(const Napi::CallbackInfo &info);
Napi::Value MtRandn(const Napi::CallbackInfo &info);
Napi::Value PhiloxRandn(const Napi::CallbackInfo &info);
Napi::Value PhiloxWords(const Napi::CallbackInfo &info);

Napi::Value SamplingTable(const Napi::CallbackInfo &info);
Napi::Value SamplingTimestep(const Napi::CallbackInfo &info);
Napi::Value SamplingSigma(const Napi::CallbackInfo &info);
Napi::Value Schedule(const Napi::CallbackInfo &info);

Napi::Value Scale(const Napi::CallbackInfo &info);
Napi::Value Axpy(const Napi::CallbackInfo &info);
Napi::Value Average(const Napi::CallbackInfo &info);
Napi::Value Lerp(const Napi::CallbackInfo &info);
Napi::Value Std(const Napi::CallbackInfo &info);
Napi::Value ResizeBilinear(const Napi::CallbackInfo &info);
Napi::Value MaskedBlend(const Napi::CallbackInfo &info);
Napi::Value Composite(const Napi::CallbackInfo &info);
Napi::Value InjectNoise(const Napi::CallbackInfo &info);

Napi::Value ChannelToMask(const Napi::CallbackInfo &info);
Napi::Value PlanesToImage(const Napi::CallbackInfo &info);
Napi::Value FloatToByte(const Napi::CallbackInfo &info);
Napi::Value ByteToFloat(const Napi::CallbackInfo &info);
Napi::Value EncodePng(const Napi::CallbackInfo &info);
Napi::Value DecodePng(const Napi::CallbackInfo &info);

}  // namespace latentkit
