#pragma once

#include <span>
#include <string>
#include <string_view>

#include "wire/protocol/request.h"

namespace lockkeeper::redis {

/// In hexadecimal, as EVALSHA and redis.sha1hex have it.
std::string sha1(std::string_view text);

/// A script that runs on the server in one step. Those that several rooms use have names here.
class Script {
 public:
  explicit Script(std::string_view text);

  /// The script of that constant of scripts.h, made when it is used first, and for ever.
  template <const std::string_view& text>
  static const Script& of() {
    static const Script& script = *new Script(text);
    return script;
  }

  static const Script& acquire();
  static const Script& acquirePermits();
  static const Script& acquireInOrder();
  static const Script& renew();
  static const Script& renewPermits();
  static const Script& release();
  static const Script& holder();
  static const Script& shareHolders();
  static const Script& waiters();
  static const Script& breakLock();
  static const Script& rateTake();
  static const Script& rateRefund();
  static const Script& legacy();

  enum class By {
    digest,  ///< EVALSHA: short, and refused with NOSCRIPT by a server that has not seen the text.
    text,    ///< EVAL: the server remembers the text from then on.
  };

  /// Adds a call to `request`.
  void addTo(Request& request, By by, std::span<const std::string_view> keys,
             std::span<const std::string_view> arguments) const;

 private:
  const std::string_view text_;
  const std::string digest_;
};

}  // namespace lockkeeper::redis
