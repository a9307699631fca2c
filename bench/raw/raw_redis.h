#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

struct redisContext;

namespace lockkeeper::bench {

/// A command, twelve words at most.
using Words = std::initializer_list<std::string_view>;

/// The floor: hiredis, and nothing else. One connection; not thread-safe, but one thread may read() and look
/// for what was received() while another one sends. Everything throws std::runtime_error when the server
/// refuses or the connection fails.
class RawRedis {
 public:
  /// Compares and deletes.
  static constexpr const char* releaseScript =
      "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

  explicit RawRedis(std::uint16_t port);

  /// Two round trips: a plain SET NX PX and a compare-and-delete script. Throws std::runtime_error unless the
  /// lock was taken and freed.
  void pair(const std::string& key);

  /// As pair(), on all of these servers at once: each is asked before the first one is waited for.
  static void pairOnAll(std::span<RawRedis> servers, const std::string& key);

  /// Returns the name by which EVALSHA runs the script.
  std::string load(std::string_view script);

  /// Sends a command and waits for its answer: a number, 1 for OK, or 0 for nil.
  std::int64_t ask(Words words);

  /// The parts of ask(), for several commands at once. Answers come in the order of the commands.
  /// @{
  void add(Words words);
  void send();
  std::int64_t answer();  ///< Sends what was added, and waits.
  /// @}

  /// The parts of answer(), after send().
  /// @{
  void read();                             ///< Waits until something has come.
  std::optional<std::int64_t> received();  ///< The next answer, if all of it has come.
                                           /// @}

 private:
  void addSet(const std::string& key);
  void addRelease(const std::string& key);
  void expectOne();

  struct Free {
    void operator()(redisContext* context) const;
  };
  std::unique_ptr<redisContext, Free> context_;
  std::string releaseSha_;
};

}  // namespace lockkeeper::bench
