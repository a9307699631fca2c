#pragma once

#include <string_view>

#include "lockkeeper/export.h"

namespace lockkeeper {

/// Names the trace that this thread works for while the scope lives: Event::trace of what happens meanwhile.
/// The locks that are acquired in it keep the trace, so that their renewals, releases and losses have it on
/// any thread. The filters of lockkeeper::poco open one for each request; other servers do it themselves:
///
///     const TraceScope scope(traceIdOf(request));
///
/// Scopes may be nested: the inner one counts. To be destroyed by the thread that made it.
class LOCKKEEPER_CORE_EXPORT TraceScope {
 public:
  /// A trace-id of W3C Trace Context, which is 32 hexadecimal digits, or what else names a trace; the text
  /// must outlive the scope. Empty: the outer scope's, if there is one, goes on.
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
