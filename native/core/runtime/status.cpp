#include "engine.h"

const char *engine_status_text(engine_status status) {
  switch (status) {
    case ENGINE_OK: return "no error";
    case ENGINE_BAD_LENGTH: return "lengths do not fit";
    case ENGINE_BAD_ARGUMENT: return "a number is outside its range";
    case ENGINE_NO_MEMORY: return "out of memory";
    case ENGINE_NO_SPACE: return "the output is too short";
    case ENGINE_ZERO_DEVIATION: return "standard deviation is 0";
    case ENGINE_BAD_FILE: return "the file is damaged or not of this format";
    case ENGINE_TOO_LARGE: return "the image has too many pixels";
    case ENGINE_UNSUPPORTED: return "not supported";
    case ENGINE_DEVICE_LOST: return "the GPU reported a fault";
  }
  return "unknown status";
}
