// decisions: Cores for musl and Windows are cross-compiled
// Parts of a module of Node.js that only Windows needs.
#include <node_api.h>
#include <windows.h>

#include <delayimp.h>

#include <cstring>

namespace {

/* Node's own functions come from whichever program runs: node.exe may have another name, and Electron is one. */
FARPROC WINAPI FromProgram(unsigned event, PDelayLoadInfo info) {
  if (event != dliNotePreLoadLibrary || _stricmp(info->szDll, "node.exe") != 0) return nullptr;
  const HMODULE library = GetModuleHandleW(L"libnode.dll");
  return reinterpret_cast<FARPROC>(library == nullptr ? GetModuleHandleW(nullptr) : library);
}

/* A module that only a worker loaded would be unmapped under the core's running threads. */
bool Pin() {
  HMODULE self = nullptr;
  return GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN,
                            reinterpret_cast<LPCWSTR>(&Pin), &self) != 0;
}

[[maybe_unused]] const bool pinned = Pin();

/* The first call of an imported function finds it, and dlltool's code for that does not keep floating-point arguments:
 * the one function that takes some is found here, by a call that it refuses. */
[[maybe_unused]] const napi_status bound = napi_create_double(nullptr, 0, nullptr);

}  // namespace

extern "C" {
PfnDliHook __pfnDliNotifyHook2 = FromProgram;
}
