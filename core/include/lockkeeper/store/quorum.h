#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/export.h"

namespace lockkeeper {

/// A capability: the store is several nodes that vote, and a key is held by the claim that a quorum of them
/// keeps.
class LOCKKEEPER_CORE_EXPORT Quorate {
 public:
  virtual ~Quorate() = default;

  /// What one node says about a key.
  struct View {
    std::string node;              ///< Its address, without a secret.
    std::optional<Holder> holder;  ///< Empty: the node does not keep the key.
    std::string fault;             ///< Why the node could not be asked; empty when it has answered.
  };

  /// What each node says about `key`, in the order of the store's URI. Faults of nodes are values.
  virtual std::vector<View> views(std::string_view key, Instant deadline) = 0;
};

}  // namespace lockkeeper
