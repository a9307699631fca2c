#pragma once

#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>

#include "simulation/redis/reply.h"

struct lua_State;

namespace lockkeeper::simulation {

std::string sha1Of(const std::string& text);

/// The scripts that one server has loaded. They are run by Lua 5.1, which is the server's own. One
/// interpreter runs those of all servers of the program, and compiles each text once.
class ScriptEngine {
 public:
  /// `call` executes what a script asks for by redis.call() and redis.pcall().
  explicit ScriptEngine(std::function<RedisReply(const Words&)> call) : call_(std::move(call)) {}
  ScriptEngine(const ScriptEngine&) = delete;
  ScriptEngine& operator=(const ScriptEngine&) = delete;

  /// Keeps the text for evaluate(). An error reply when it does not compile, else its SHA-1.
  RedisReply load(const std::string& text);
  /// From now on load() puts `to` in the place of each `from` in a text, and keeps the result under the SHA-1
  /// of the text as it was: a defect that the histories have to find.
  void change(std::string from, std::string to) { change_ = {std::move(from), std::move(to)}; }
  bool hasChanged() const noexcept { return hasChanged_; }
  bool knows(const std::string& sha1) const { return known_.contains(sha1); }
  RedisReply evaluate(const std::string& sha1, std::span<const std::string> keys,
                      std::span<const std::string> arguments);

 private:
  static RedisReply callOf(lua_State* state);
  static int callFromScript(lua_State* state);
  static int pcallFromScript(lua_State* state);
  static lua_State* interpreter();

  std::function<RedisReply(const Words&)> call_;
  std::unordered_map<std::string, int> known_;  // references in the interpreter's registry
  std::pair<std::string, std::string> change_;
  bool hasChanged_ = false;
};

}  // namespace lockkeeper::simulation
