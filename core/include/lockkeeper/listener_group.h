#pragma once

#include <memory>
#include <vector>

#include "lockkeeper/export.h"
#include "lockkeeper/listener.h"

namespace lockkeeper {

/// Several listeners in the place of one: each of them hears everything, in the order given, also when one
/// before it throws. Thread-safe as far as they are.
class LOCKKEEPER_CORE_EXPORT ListenerGroup final : public Listener {
 public:
  /// Throws std::invalid_argument for a null listener.
  explicit ListenerGroup(std::vector<std::shared_ptr<Listener>> members);

  void acquired(std::string_view key, std::chrono::nanoseconds waited, std::optional<Fence> fence) override;
  void timedOut(std::string_view key, std::chrono::nanoseconds waited) override;
  void gaveUp(std::string_view key, ErrorCode why, std::chrono::nanoseconds waited) override;
  void renewed(std::string_view key) override;
  void suspect(std::string_view key, std::chrono::nanoseconds remaining) override;
  void lost(std::string_view key, LossReason reason) override;
  void released(std::string_view key, std::chrono::nanoseconds held) override;
  void decided(std::string_view key, const Decision& decision) override;
  void refused(std::string_view key, std::string_view policy, std::chrono::microseconds retryAfter) override;
  void storeFailed(std::string_view key, ErrorCode code, std::string_view message) override;
  void nodeAsked(std::string_view node, NodeOutcome outcome, std::chrono::nanoseconds latency) override;
  void noted(std::string_view store, std::string_view message) override;

 private:
  template <class Hook>
  void tellAll(Hook hook) const noexcept;

  const std::vector<std::shared_ptr<Listener>> members_;
};

}  // namespace lockkeeper
