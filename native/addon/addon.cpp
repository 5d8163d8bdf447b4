#include "cuda.h"
#include "operations.h"
#include "worker.h"

namespace latentkit {

namespace {

struct Export {
  const char *name;
  Napi::Value (*call)(const Napi::CallbackInfo &info);
};

const Export kCore[] = {
    {"isa", Isa},
    {"isas", Isas},
    {"setIsa", SetIsa},
    {"threads", Threads},
    {"setThreads", SetThreads},
    {"lockFile", LockFile},
    {"mtSeed", MtSeed},
    {"mtRandn", MtRandn},
    {"philoxSkip", PhiloxSkip},
    {"samplingTable", SamplingTable},
    {"samplingTimestep", SamplingTimestep},
    {"samplingSigma", SamplingSigma},
    {"schedule", Schedule},
    {"latentToRgb", LatentToRgb},
    {"resizeToImage", ResizeToImage},
    {"resizeToBytes", ResizeToBytes},
    {"pixelHash", PixelHash},
    {"pngBound", PngBound},
    {"encodePngHere", EncodePngHere},
    {"encodePng", EncodePng},
    {"deflatePng", DeflatePng},
    {"decodePng", DecodePng},
    {"decodePngFrames", DecodePngFrames},
};

const Export kCuda[] = {
    {"open", CudaOpen},
    {"architectures", CudaArchitectures},
    {"memory", CudaMemory},
    {"trim", CudaTrim},
    {"wait", CudaWait},
    {"take", CudaTake},
    {"release", CudaRelease},
    {"upload", CudaUpload},
    {"download", CudaDownload},
    {"copy", CudaCopy},
    {"fill", CudaFill},
    {"resizedBlend", CudaResizedBlend},
    {"filterPng", CudaFilterPng},
};

template <class A>
const Export kTensorOperations[] = {
    {"philoxRandn", PhiloxRandn<A>},
    {"philoxWords", PhiloxWords<A>},
    {"scale", Scale<A>},
    {"axpy", Axpy<A>},
    {"average", Average<A>},
    {"lerp", Lerp<A>},
    {"std", Std<A>},
    {"resizeBilinear", ResizeBilinear<A>},
    {"maskedBlend", MaskedBlend<A>},
    {"composite", Composite<A>},
    {"injectNoise", InjectNoise<A>},
    {"channelToMask", ChannelToMask<A>},
    {"planesToImage", PlanesToImage<A>},
    {"floatToByte", FloatToByte<A>},
    {"byteToFloat", ByteToFloat<A>},
};

template <size_t N>
void SetAll(Napi::Object to, const Export (&exports)[N]) {
  for (const Export &e : exports) to.Set(e.name, Napi::Function::New(to.Env(), e.call, e.name));
}

Napi::Object Init(Napi::Env env, Napi::Object exports) {
  SetAll(exports, kCore);
  SetAll(exports, kTensorOperations<Args>);
  exports.Set("mtStateBytes", Napi::Number::New(env, static_cast<double>(MtStateBytes())));
  const Napi::Object cuda = Napi::Object::New(env);
  SetAll(cuda, kCuda);
  SetAll(cuda, kTensorOperations<CudaArgs>);
  exports.Set("cuda", cuda);
  OpenChannel(env);
  return exports;
}

}  // namespace

NODE_API_MODULE(latentkit, Init)

}  // namespace latentkit
