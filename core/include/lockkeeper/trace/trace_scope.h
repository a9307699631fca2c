#pragma once

#include <string_view>

#include "lockkeeper/export.h"

namespace lockkeeper {

/// Names the trace that this thread works for while the scope lives: events have it as Event::trace. Locks
/// that are acquired in the scope keep the trace, so that their renewals, releases and losses have it on any
/// thread. The filters of lockkeeper::poco open a scope for each request; other servers do it themselves:
///
///     const TraceScope scope(traceIdOf(request));
///
/// Scopes may be nested: the inner one counts. Must be destroyed by the thread that made it.
class LOCKKEEPER_CORE_EXPORT TraceScope {
 public:
  /// `trace` is a trace-id of W3C Trace Context, which is 32 hexadecimal digits, or another name of a trace.
  /// The text must outlive the scope. If it is empty, the outer scope's trace, if there is one, continues.
  explicit TraceScope(std::string_view trace) noexcept;
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;
  ~TraceScope();

  /// The trace of this thread; empty outside of all scopes.
  static std::string_view current() noexcept;

 private:
  const std::string_view outer_;
};

}  // namespace lockkeeper
