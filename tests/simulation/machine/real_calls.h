#pragma once

#include <dlfcn.h>

namespace lockkeeper::simulation {

/// The C library's own function of that name, which a definition in this program hides.
template <class Function>
Function* realCall(Function* /*hidden*/, const char* name) noexcept {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace lockkeeper::simulation

/// Declares `real`, the hidden function `name`.
#define LOCKKEEPER_REAL(name) static auto* const real = ::lockkeeper::simulation::realCall(&::name, #name)
