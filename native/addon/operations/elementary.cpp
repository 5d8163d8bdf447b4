// Elementary functions in double: those of the core, whose bits are the same on every machine.
#include "args.h"
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

}  // namespace

void ExportElementary(const Exports &exports) {
  SetAll(exports.core, {{"exp", OfOne<lk_exp>},
                        {"expm1", OfOne<lk_expm1>},
                        {"log", OfOne<lk_log>},
                        {"log1p", OfOne<lk_log1p>},
                        {"pow", Pow},
                        {"sin", OfOne<lk_sin>},
                        {"cos", OfOne<lk_cos>},
                        {"tan", OfOne<lk_tan>},
                        {"atan", OfOne<lk_atan>}});
}

}  // namespace latentkit
