#include "lockkeeper/trace/trace_scope.h"

namespace lockkeeper {

namespace {

thread_local std::string_view currentTrace;

}  // namespace

TraceScope::TraceScope(std::string_view trace) noexcept : outer_(currentTrace) {
  if (!trace.empty()) currentTrace = trace;
}

TraceScope::~TraceScope() { currentTrace = outer_; }

std::string_view TraceScope::current() noexcept { return currentTrace; }

}  // namespace lockkeeper
