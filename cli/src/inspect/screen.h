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

  /// Shows the lines, `foot` below them, and `status` at the end. What has no room is cut off; `foot` gets at
  /// most half of the rows. Nothing in them may control the terminal: see shown().
  void show(const std::vector<std::string>& lines, const std::vector<std::string>& foot,
            const std::string& status) const;

  /// The keys that were pressed; empty when there is none.
  static std::string pressed();

 private:
  termios former_{};
};

}  // namespace lockkeeper::cli
