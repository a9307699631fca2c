#pragma once

#include <termios.h>

#include <cstddef>
#include <string>
#include <vector>

namespace lockkeeper::cli {

/// The whole terminal, as long as this lives: what was on it comes back afterwards, and keys that are pressed
/// can be read one by one.
class Screen {
 public:
  /// Throws UsageError unless standard input and output are terminals.
  Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  ~Screen();

  /// Shows the lines, and `status` below them; what has no room is cut off. Nothing in them may control the
  /// terminal: see shown().
  void show(const std::vector<std::string>& lines, const std::string& status) const;

  /// The keys that were pressed; empty when there is none.
  static std::string pressed();

 private:
  termios former_{};
};

}  // namespace lockkeeper::cli
