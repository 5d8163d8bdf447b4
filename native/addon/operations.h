// Every operation that JavaScript can call; src/native/bindings.ts is their TypeScript face.
#pragma once
#include <napi.h>

namespace latentkit {

Napi::Value Isa(const Napi::CallbackInfo &info);
Napi::Value Isas(const Napi::CallbackInfo &info);
Napi::Value SetIsa(const Napi::CallbackInfo &info);
Napi::Value Threads(const Napi::CallbackInfo &info);
Napi::Value SetThreads(const Napi::CallbackInfo &info);
Napi::Value LockFile(const Napi::CallbackInfo &info);

size_t MtStateBytes();
Napi::Value MtSeed(const Napi::CallbackInfo &info);
Napi::Value MtRandn(const Napi::CallbackInfo &info);
Napi::Value PhiloxSkip(const Napi::CallbackInfo &info);

Napi::Value SamplingTable(const Napi::CallbackInfo &info);
Napi::Value SamplingTimestep(const Napi::CallbackInfo &info);
Napi::Value SamplingSigma(const Napi::CallbackInfo &info);
Napi::Value Schedule(const Napi::CallbackInfo &info);

/* Operations on tensors: A is Args, which reads typed arrays, or CudaArgs, which reads memory of a device. */
template <class A>
Napi::Value Scale(const Napi::CallbackInfo &info);
template <class A>
Napi::Value Axpy(const Napi::CallbackInfo &info);
template <class A>
Napi::Value Average(const Napi::CallbackInfo &info);
template <class A>
Napi::Value Lerp(const Napi::CallbackInfo &info);
template <class A>
Napi::Value Std(const Napi::CallbackInfo &info);
template <class A>
Napi::Value ResizeBilinear(const Napi::CallbackInfo &info);
template <class A>
Napi::Value MaskedBlend(const Napi::CallbackInfo &info);
template <class A>
Napi::Value Composite(const Napi::CallbackInfo &info);
template <class A>
Napi::Value InjectNoise(const Napi::CallbackInfo &info);
template <class A>
Napi::Value ChannelToMask(const Napi::CallbackInfo &info);
Napi::Value LatentToRgb(const Napi::CallbackInfo &info);
Napi::Value ResizeToImage(const Napi::CallbackInfo &info);
Napi::Value ResizeToBytes(const Napi::CallbackInfo &info);
Napi::Value PixelHash(const Napi::CallbackInfo &info);
template <class A>
Napi::Value PlanesToImage(const Napi::CallbackInfo &info);
template <class A>
Napi::Value FloatToByte(const Napi::CallbackInfo &info);
template <class A>
Napi::Value ByteToFloat(const Napi::CallbackInfo &info);
template <class A>
Napi::Value PhiloxRandn(const Napi::CallbackInfo &info);
template <class A>
Napi::Value PhiloxWords(const Napi::CallbackInfo &info);

Napi::Value CudaOpen(const Napi::CallbackInfo &info);
Napi::Value CudaArchitectures(const Napi::CallbackInfo &info);
Napi::Value CudaMemory(const Napi::CallbackInfo &info);
Napi::Value CudaTrim(const Napi::CallbackInfo &info);
Napi::Value CudaWait(const Napi::CallbackInfo &info);
Napi::Value CudaTake(const Napi::CallbackInfo &info);
Napi::Value CudaRelease(const Napi::CallbackInfo &info);
Napi::Value CudaUpload(const Napi::CallbackInfo &info);
Napi::Value CudaDownload(const Napi::CallbackInfo &info);
Napi::Value CudaCopy(const Napi::CallbackInfo &info);
Napi::Value CudaFill(const Napi::CallbackInfo &info);
Napi::Value CudaResizedBlend(const Napi::CallbackInfo &info);
Napi::Value CudaFilterPng(const Napi::CallbackInfo &info);

Napi::Value PngBound(const Napi::CallbackInfo &info);
Napi::Value EncodePngHere(const Napi::CallbackInfo &info);
Napi::Value EncodePng(const Napi::CallbackInfo &info);
Napi::Value DeflatePng(const Napi::CallbackInfo &info);
Napi::Value DecodePng(const Napi::CallbackInfo &info);
Napi::Value DecodePngFrames(const Napi::CallbackInfo &info);

}  // namespace latentkit
