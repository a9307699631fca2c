#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "database_server.h"

namespace lockkeeper::test {

/// Three MySQL servers that replicate as a group with one primary, which takes the writes. They notice a dead
/// member after about five seconds, as fast as they can be told to. One thread at a time, except uri().
class ReplicationGroup {
 public:
  static constexpr std::size_t size = 3;

  /// Returns when all three are members. Takes about 15 s. Throws std::runtime_error.
  ReplicationGroup();

  DatabaseServer& node(std::size_t index) { return *nodes_.at(index); }

  /// Makes an empty database of a new name for an ordinary user, who cannot write where he should not.
  std::string newDatabase();

  /// scheme://clerk:clerk@127.0.0.1:port,127.0.0.1:port,127.0.0.1:port/database
  std::string uri(const std::string& scheme, const std::string& database) const;

  /// Which node the living members call the primary. Blocks until they do. Throws std::runtime_error.
  std::size_t primary() const;

  /// As an operator does it. Returns when the node is the primary.
  void makePrimary(std::size_t index);

  /// As an operator does it who stops a member. Returns when it has left the group, and runs on.
  void leave(std::size_t index);

  /// Starts a node again that was killed, or left the group. Returns when it is a member.
  void rejoin(std::size_t index);

  /// Returns when all three are members, and take part.
  void awaitAll() const;

 private:
  std::optional<std::size_t> primaryNow() const;
  void run(std::size_t index, const char* statement);
  void join(std::size_t index);

  std::array<std::unique_ptr<DatabaseServer>, size> nodes_;
  int databases_ = 0;
};

}  // namespace lockkeeper::test
