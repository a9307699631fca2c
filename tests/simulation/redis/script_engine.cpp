#include "simulation/redis/script_engine.h"

#include <Poco/SHA1Engine.h>
#include <lua5.1/lua.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

namespace lockkeeper::simulation {
namespace {

// Whose script is run now.
ScriptEngine* present = nullptr;

void pushText(lua_State* state, const std::string& text) { lua_pushlstring(state, text.data(), text.size()); }

std::string textAt(lua_State* state, int index) {
  std::size_t length = 0;
  const char* const text = lua_tolstring(state, index, &length);
  return {text, length};
}

void pushField(lua_State* state, const char* field, const std::string& text) {
  lua_newtable(state);
  pushText(state, text);
  lua_setfield(state, -2, field);
}

void pushReply(lua_State* state, const RedisReply& reply) {
  switch (reply.kind) {
    case RedisReply::Kind::status:
      return pushField(state, "ok", reply.text);
    case RedisReply::Kind::error:
      return pushField(state, "err", reply.text);
    case RedisReply::Kind::number:
      return lua_pushnumber(state, static_cast<lua_Number>(reply.number));
    case RedisReply::Kind::bulk:
      return pushText(state, reply.text);
    case RedisReply::Kind::nil:
      return lua_pushboolean(state, 0);
    case RedisReply::Kind::array:
      break;
  }
  lua_newtable(state);
  for (std::size_t i = 0; i < reply.items.size(); ++i) {
    pushReply(state, reply.items[i]);
    lua_rawseti(state, -2, static_cast<int>(i) + 1);
  }
}

std::optional<std::string> fieldAt(lua_State* state, int index, const char* field) {
  lua_getfield(state, index, field);
  std::optional<std::string> text;
  if (lua_isstring(state, -1) != 0) text = textAt(state, -1);
  lua_pop(state, 1);
  return text;
}

RedisReply replyAt(lua_State* state, int index) {
  switch (lua_type(state, index)) {
    case LUA_TNUMBER:
      return RedisReply::of(static_cast<std::int64_t>(lua_tonumber(state, index)));
    case LUA_TSTRING:
      return RedisReply::bulk(textAt(state, index));
    case LUA_TBOOLEAN:
      return lua_toboolean(state, index) != 0 ? RedisReply::of(1) : RedisReply();
    case LUA_TTABLE:
      break;
    default:
      return {};
  }
  if (const auto error = fieldAt(state, index, "err")) return RedisReply::error(*error);
  if (const auto status = fieldAt(state, index, "ok")) return RedisReply::status(*status);
  RedisReply all = RedisReply::array();
  for (int i = 1;; ++i) {
    lua_rawgeti(state, index, i);
    if (lua_isnil(state, -1)) {
      lua_pop(state, 1);
      return all;
    }
    all.items.push_back(replyAt(state, lua_gettop(state)));
    lua_pop(state, 1);
  }
}

// A whole number as "%.17g" writes it.
std::size_t writeNumber(double number, char (&text)[64]) {
  if (std::abs(number) < 1e15 && number == std::trunc(number) && !std::signbit(number))
    return static_cast<std::size_t>(std::to_chars(text, text + 64, static_cast<std::int64_t>(number)).ptr -
                                    text);
  return static_cast<std::size_t>(std::snprintf(text, sizeof text, "%.17g", number));
}

// The arguments of the function that Lua calls; none when one of them is neither a text nor a number. They
// are kept for the next call, which needs no memory then, and where no destructor is skipped when Lua leaves
// the function by longjmp.
const Words& wordsOf(lua_State* state) {
  static Words words;
  const int count = lua_gettop(state);
  words.resize(static_cast<std::size_t>(count));
  for (int i = 1; i <= count; ++i) {
    std::string& word = words[static_cast<std::size_t>(i) - 1];
    if (lua_type(state, i) == LUA_TNUMBER) {
      char text[64];
      word.assign(text, writeNumber(lua_tonumber(state, i), text));
    } else if (lua_type(state, i) == LUA_TSTRING) {
      std::size_t length = 0;
      const char* const text = lua_tolstring(state, i, &length);
      word.assign(text, length);
    } else {
      words.clear();
      break;
    }
  }
  return words;
}

// Memory for the interpreter, of which it wants many small pieces. It says how long each is.
void* allocate(void* /*unused*/, void* old, std::size_t oldLength, std::size_t length) {
  constexpr std::size_t step = 16;
  constexpr std::size_t longest = 512;
  static std::array<void*, longest / step + 1> freed{};  // by length; each begins with the next one's address
  const auto kind = [](std::size_t size) { return (size + step - 1) / step; };
  const auto release = [&] {
    if (!old) return;
    if (oldLength > longest) return std::free(old);
    void*& first = freed[kind(oldLength)];
    *static_cast<void**>(old) = std::exchange(first, old);
  };
  if (length == 0) {
    release();
    return nullptr;
  }
  if (old && oldLength > longest && length > longest) return std::realloc(old, length);
  if (old && oldLength <= longest && length <= longest && kind(oldLength) == kind(length)) return old;
  void* made = nullptr;
  if (length > longest) {
    made = std::malloc(length);
  } else if (void*& first = freed[kind(length)]) {
    made = std::exchange(first, *static_cast<void**>(first));
  } else {
    made = std::malloc(kind(length) * step);
  }
  if (made && old) {
    std::memcpy(made, old, std::min(oldLength, length));
    release();
  }
  return made;
}

int sha1hex(lua_State* state) {
  pushText(state, sha1Of(textAt(state, 1)));
  return 1;
}

int statusReply(lua_State* state) {
  pushField(state, "ok", textAt(state, 1));
  return 1;
}

int errorReply(lua_State* state) {
  pushField(state, "err", textAt(state, 1));
  return 1;
}

// The server's pcall() gives an error's text in the place of its table.
int pcallOfServer(lua_State* state) {
  if (lua_pcall(state, lua_gettop(state) - 1, LUA_MULTRET, 0) != 0) {
    if (lua_istable(state, -1)) lua_getfield(state, -1, "err");
    lua_pushboolean(state, 0);
    lua_insert(state, -2);
    return 2;
  }
  lua_pushboolean(state, 1);
  lua_insert(state, 1);
  return lua_gettop(state);
}

void setTable(lua_State* state, const char* name, std::span<const std::string> words) {
  lua_createtable(state, static_cast<int>(words.size()), 0);
  for (std::size_t i = 0; i < words.size(); ++i) {
    pushText(state, words[i]);
    lua_rawseti(state, -2, static_cast<int>(i) + 1);
  }
  lua_setglobal(state, name);
}

}  // namespace

std::string sha1Of(const std::string& text) {
  Poco::SHA1Engine engine;
  engine.update(text);
  return Poco::DigestEngine::digestToHex(engine.digest());
}

lua_State* ScriptEngine::interpreter() {
  static lua_State* const only = [] {
    lua_State* const state = lua_newstate(&allocate, nullptr);
    luaL_openlibs(state);
    // Most of what there is are the scripts, which stay.
    lua_gc(state, LUA_GCSETPAUSE, 1000);
    lua_newtable(state);
    for (const auto& [name, function] :
         {std::pair<const char*, lua_CFunction>{"call", &ScriptEngine::callFromScript},
          {"pcall", &ScriptEngine::pcallFromScript},
          {"sha1hex", &sha1hex},
          {"status_reply", &statusReply},
          {"error_reply", &errorReply}}) {
      lua_pushcfunction(state, function);
      lua_setfield(state, -2, name);
    }
    lua_setglobal(state, "redis");
    lua_pushcfunction(state, &pcallOfServer);
    lua_setglobal(state, "pcall");
    return state;
  }();
  return only;
}

RedisReply ScriptEngine::callOf(lua_State* state) {
  const Words& words = wordsOf(state);
  if (words.empty())
    return RedisReply::error("ERR Lua redis lib command arguments must be strings or integers");
  return present->call_(words);
}

int ScriptEngine::pcallFromScript(lua_State* state) {
  pushReply(state, callOf(state));
  return 1;
}

int ScriptEngine::callFromScript(lua_State* state) {
  bool failed = false;
  {
    // No C++ object may live when Lua leaves this function by longjmp.
    const RedisReply reply = callOf(state);
    failed = reply.kind == RedisReply::Kind::error;
    pushReply(state, reply);
  }
  return failed ? lua_error(state) : 1;
}

RedisReply ScriptEngine::load(const std::string& text) {
  struct Compiled {
    int reference = LUA_NOREF;
    std::string fault;
  };
  static std::unordered_map<std::string, std::string> digests;
  static std::unordered_map<std::string, Compiled> compiled;
  std::string& sha1 = digests[text];
  if (sha1.empty()) sha1 = sha1Of(text);
  if (knows(sha1)) return RedisReply::bulk(sha1);
  std::string changed = text;
  for (std::size_t at = 0;
       !change_.first.empty() && (at = changed.find(change_.first, at)) != std::string::npos;
       at += change_.second.size()) {
    changed.replace(at, change_.first.size(), change_.second);
    hasChanged_ = true;
  }
  Compiled& script = compiled[changed];
  if (script.reference == LUA_NOREF && script.fault.empty()) {
    lua_State* const state = interpreter();
    if (luaL_loadbuffer(state, changed.data(), changed.size(), "@user_script") != 0) {
      script.fault = textAt(state, -1);
      lua_pop(state, 1);
    } else {
      script.reference = luaL_ref(state, LUA_REGISTRYINDEX);
    }
  }
  if (!script.fault.empty())
    return RedisReply::error("ERR Error compiling script (new function): " + script.fault);
  known_[sha1] = script.reference;
  return RedisReply::bulk(sha1);
}

RedisReply ScriptEngine::evaluate(const std::string& sha1, std::span<const std::string> keys,
                                  std::span<const std::string> arguments) {
  lua_State* const state = interpreter();
  present = this;
  setTable(state, "KEYS", keys);
  setTable(state, "ARGV", arguments);
  lua_rawgeti(state, LUA_REGISTRYINDEX, known_.at(sha1));
  const bool failed = lua_pcall(state, 0, 1, 0) != 0;
  RedisReply reply = replyAt(state, lua_gettop(state));
  if (failed && reply.kind != RedisReply::Kind::error) reply = RedisReply::error("ERR " + reply.text);
  if (failed) reply.text += " script: " + sha1 + ", on @user_script:0.";
  lua_settop(state, 0);
  return reply;
}

}  // namespace lockkeeper::simulation
