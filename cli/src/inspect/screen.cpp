#include "inspect/screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iostream>

#include "command_line.h"
#include "shown.h"

namespace lockkeeper::cli {
namespace {

constexpr const char* enter = "\x1b[?1049h\x1b[?25l";  // the other screen, without a cursor
constexpr const char* leave = "\x1b[?25h\x1b[?1049l";
constexpr const char* home = "\x1b[H";
constexpr const char* clearLine = "\x1b[K";
constexpr const char* clearBelow = "\x1b[J";

struct Size {
  std::size_t rows = 24;
  std::size_t columns = 80;
};

Size size() {
  winsize window{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_row == 0 || window.ws_col == 0) return {};
  return {window.ws_row, window.ws_col};
}

}  // namespace

Screen::Screen() {
  if (::isatty(STDOUT_FILENO) == 0 || ::tcgetattr(STDIN_FILENO, &former_) != 0) {
    throw UsageError("this is no terminal");
  }
  termios byKey = former_;
  byKey.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  byKey.c_cc[VMIN] = 0;
  byKey.c_cc[VTIME] = 0;
  ::tcsetattr(STDIN_FILENO, TCSANOW, &byKey);
  std::cout << enter << std::flush;
}

Screen::~Screen() {
  std::cout << leave << std::flush;
  ::tcsetattr(STDIN_FILENO, TCSANOW, &former_);
}

void Screen::show(const std::vector<std::string>& lines, const std::vector<std::string>& foot,
                  const std::string& status) const {
  const Size now = size();
  std::string text = home;
  const auto add = [&](const std::string& line) {
    text.append(fitting(line, now.columns)).append(clearLine);
  };
  const auto addFirst = [&](const std::vector<std::string>& from, std::size_t most) {
    for (std::size_t i = 0; i < std::min(from.size(), most); ++i) {
      add(from[i]);
      text += "\r\n";
    }
  };
  const std::size_t below = std::min(foot.size(), (now.rows - 1) / 2);
  addFirst(lines, now.rows - 1 - below);
  addFirst(foot, below);
  add(status);
  std::cout << text << clearBelow << std::flush;
}

std::string Screen::pressed() {
  std::array<char, 64> keys{};
  const ssize_t count = ::read(STDIN_FILENO, keys.data(), keys.size());
  return count > 0 ? std::string(keys.data(), static_cast<std::size_t>(count)) : std::string();
}

}  // namespace lockkeeper::cli
