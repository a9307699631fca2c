#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "simulation/redis/reply.h"

struct lua_State;

namespace lockkeeper::simulation {

std::string sha1Of(const std::string& text);

/// Runs Redis scripts by Lua 5.1, which is the server's own.
class ScriptEngine {
 public:
  /// `call` executes what a script asks for by redis.call() and redis.pcall().
  explicit ScriptEngine(std::function<RedisReply(const Words&)> call);
  ScriptEngine(const ScriptEngine&) = delete;
  ScriptEngine& operator=(const ScriptEngine&) = delete;
  ~ScriptEngine();

  /// Keeps the text for evaluate(). An error reply when it does not compile, else its SHA-1.
  RedisReply load(const std::string& text);
  /// From now on load() puts `to` in the place of each `from` in a text, and keeps the result under the SHA-1
  /// of the text as it was: a defect that the histories have to find.
  void change(std::string from, std::string to) { change_ = {std::move(from), std::move(to)}; }
  bool hasChanged() const noexcept { return hasChanged_; }
  bool knows(const std::string& sha1) const { return known_.count(sha1) > 0; }
  RedisReply evaluate(const std::string& sha1, const Words& keys, const Words& arguments);

 private:
  static int callFromScript(lua_State* state);
  static int pcallFromScript(lua_State* state);

  std::function<RedisReply(const Words&)> call_;
  lua_State* const state_;
  std::map<std::string, int> known_;  // references in the registry
  std::pair<std::string, std::string> change_;
  bool hasChanged_ = false;
};

}  // namespace lockkeeper::simulation
