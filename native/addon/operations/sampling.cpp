// Sigmas, timesteps and schedules, and elementary functions in double whose bits are the same on every machine.
#include <cstring>
#include <iterator>

#include "lk_libm.h"
#include "operations.h"

namespace latentkit {
namespace {

template <double (*kFunction)(double)>
Napi::Value OfOne(const Napi::CallbackInfo &info) {
  const Args a(info);
  return Napi::Number::New(info.Env(), kFunction(a.number(0, "x")));
}

Napi::Value Pow(const Napi::CallbackInfo &info) {
  const Args a(info);
  return Napi::Number::New(info.Env(), lk_pow(a.number(0, "x"), a.number(1, "y")));
}

// in the order of engine_sampling_kind
const char *const kKinds[] = {"discrete", "edm", "flow", "flux", "cascade"};

engine_sampling ReadSampling(const Args &a) {
  const Napi::Object from = a.object(0, "sampling");
  const std::string kind = a.text(from.Get("kind"), "sampling.kind");
  engine_sampling sampling{};
  sampling.kind = -1;
  for (size_t k = 0; k < std::size(kKinds); k++)
    if (kind == kKinds[k]) sampling.kind = static_cast<int32_t>(k);
  if (sampling.kind < 0) a.range_error("sampling.kind", "discrete, edm, flow, flux or cascade", "\"" + kind + "\"");
  sampling.zsnr = a.boolean(from.Get("zsnr"), "sampling.zsnr");
  sampling.linear_start = a.number(from.Get("linearStart"), "sampling.linearStart");
  sampling.linear_end = a.number(from.Get("linearEnd"), "sampling.linearEnd");
  sampling.sigma_min = a.number(from.Get("sigmaMin"), "sampling.sigmaMin");
  sampling.sigma_max = a.number(from.Get("sigmaMax"), "sampling.sigmaMax");
  sampling.shift = a.number(from.Get("shift"), "sampling.shift");
  sampling.multiplier = a.number(from.Get("multiplier"), "sampling.multiplier");
  return sampling;
}

int ReadScheduler(const Args &a, size_t i) {
  const std::string name = a.text(i, "scheduler");
  for (int k = 0; engine_scheduler_name(k) != nullptr; k++)
    if (name == engine_scheduler_name(k)) return k;
  a.range_error("scheduler", "the name of a scheduler", "\"" + name + "\"");
}

Napi::Value SamplingTable(const Napi::CallbackInfo &info) {
  const Args a(info);
  const engine_sampling sampling = ReadSampling(a);
  const size_t size = engine_sampling_size(&sampling);
  if (size == 0) return a.done(ENGINE_BAD_ARGUMENT);
  Napi::Float32Array table = Napi::Float32Array::New(info.Env(), size);
  a.done(engine_sampling_table(&sampling, {table.Data(), size}));
  return table;
}

/* A timestep from a sigma, or the other way about. */
template <auto kFunction>
Napi::Value Convert(const Napi::CallbackInfo &info) {
  const Args a(info);
  const engine_sampling sampling = ReadSampling(a);
  float result = 0;
  a.done(kFunction(&sampling, a.f32(1, "value"), &result));
  return Napi::Number::New(info.Env(), result);
}

Napi::Value Linspace(const Napi::CallbackInfo &info) {
  const Args a(info);
  const float start = a.f32(0, "start"), end = a.f32(1, "end");
  const auto count = static_cast<size_t>(a.integer(2, "count", 0, 1 << 24));
  Napi::Float32Array values = Napi::Float32Array::New(info.Env(), count);
  a.done(engine_linspace(start, end, {values.Data(), count}));
  return values;
}

Napi::Value Schedule(const Napi::CallbackInfo &info) {
  const Args a(info);
  const engine_sampling sampling = ReadSampling(a);
  const int scheduler = ReadScheduler(a, 2);
  const auto steps = static_cast<int32_t>(a.integer(3, "steps", 0, 10000));
  const bool extra_step = a.boolean(4, "extraStep");
  const double denoise = a.number(5, "denoise");
  // nearly every schedule has steps + 1
  Napi::Float32Array result = Napi::Float32Array::New(info.Env(), static_cast<size_t>(steps) + 1);
  const engine_cf32 table = a.in(1, "table");
  if (table.len < 2) a.range_error("table", "at least 2 elements", std::to_string(table.len));
  size_t written = 0;
  const auto compute = [&] {
    return engine_schedule(&sampling, table, scheduler, steps, extra_step, denoise,
                           {result.Data(), result.ElementLength()}, &written);
  };
  engine_status status = compute();
  if (status == ENGINE_NO_SPACE) {
    result = Napi::Float32Array::New(info.Env(), written);
    status = compute();
  }
  a.done(status);
  if (written == result.ElementLength()) return result;
  Napi::Float32Array shorter = Napi::Float32Array::New(info.Env(), written);
  if (written > 0) std::memcpy(shorter.Data(), result.Data(), written * sizeof(float));
  return shorter;
}

}  // namespace

void ExportSampling(const Exports &exports) {
  SetAll(exports.core, {{"exp", OfOne<lk_exp>},
                        {"expm1", OfOne<lk_expm1>},
                        {"log", OfOne<lk_log>},
                        {"log1p", OfOne<lk_log1p>},
                        {"pow", Pow},
                        {"sin", OfOne<lk_sin>},
                        {"cos", OfOne<lk_cos>},
                        {"tan", OfOne<lk_tan>},
                        {"atan", OfOne<lk_atan>}});
  SetAll(exports.core, {{"samplingTable", SamplingTable},
                        {"samplingTimestep", Convert<engine_sampling_timestep>},
                        {"samplingSigma", Convert<engine_sampling_sigma>},
                        {"linspace", Linspace},
                        {"schedule", Schedule}});
}

}  // namespace latentkit
