#include "operations.h"
#include "worker.h"

namespace latentkit {

static Napi::Object Init(Napi::Env env, Napi::Object exports) {
  struct Export {
    const char *name;
    Napi::Value (*call)(const Napi::CallbackInfo &info);
  };
  static const Export kExports[] = {
      {"isa", Isa},
      {"isas", Isas},
      {"setIsa", SetIsa},
      {"threads", Threads},
      {"setThreads", SetThreads},
      {"mtSeed", MtSeed},
      {"mtRandn", MtRandn},
      {"philoxRandn", PhiloxRandn},
      {"philoxWords", PhiloxWords},
      {"samplingTable", SamplingTable},
      {"samplingTimestep", SamplingTimestep},
      {"samplingSigma", SamplingSigma},
      {"schedule", Schedule},
      {"scale", Scale},
      {"axpy", Axpy},
      {"average", Average},
      {"lerp", Lerp},
      {"std", Std},
      {"resizeBilinear", ResizeBilinear},
      {"maskedBlend", MaskedBlend},
      {"composite", Composite},
      {"injectNoise", InjectNoise},
      {"channelToMask", ChannelToMask},
      {"planesToImage", PlanesToImage},
      {"floatToByte", FloatToByte},
      {"byteToFloat", ByteToFloat},
      {"encodePng", EncodePng},
      {"decodePng", DecodePng},
  };
  for (const Export &e : kExports) exports.Set(e.name, Napi::Function::New(env, e.call, e.name));
  exports.Set("mtStateBytes", Napi::Number::New(env, static_cast<double>(MtStateBytes())));
  OpenChannel(env);
  return exports;
}

NODE_API_MODULE(latentkit, Init)

}  // namespace latentkit
