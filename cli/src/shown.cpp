#include "shown.h"

#include <locale.h>
#include <wchar.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "lockkeeper/base/hex.h"
#include "lockkeeper/error.h"
#include "lockkeeper/internal/utf8.h"

namespace lockkeeper::cli {

namespace {

struct Range {
  std::uint32_t first;
  std::uint32_t last;
};

/// Unicode's categories Cc, Cf, Zl and Zp: what controls a terminal, is not seen or changes the order of what
/// is, or ends a line.
constexpr std::array unseen{
    Range{0x00, 0x1f},       Range{0x7f, 0x9f},       Range{0xad, 0xad},       Range{0x600, 0x605},
    Range{0x61c, 0x61c},     Range{0x6dd, 0x6dd},     Range{0x70f, 0x70f},     Range{0x890, 0x891},
    Range{0x8e2, 0x8e2},     Range{0x180e, 0x180e},   Range{0x200b, 0x200f},   Range{0x2028, 0x202e},
    Range{0x2060, 0x206f},   Range{0xfeff, 0xfeff},   Range{0xfff9, 0xfffb},   Range{0x110bd, 0x110bd},
    Range{0x110cd, 0x110cd}, Range{0x13430, 0x1343f}, Range{0x1bca0, 0x1bca3}, Range{0x1d173, 0x1d17a},
    Range{0xe0001, 0xe0001}, Range{0xe0020, 0xe007f}};

/// The bytes of the character that the text begins with; empty when they are no UTF-8.
std::string_view firstCharacter(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  const std::size_t size = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  const std::string_view bytes = text.substr(0, size);
  return bytes.size() == size && isUtf8(bytes) ? bytes : std::string_view{};
}

std::uint32_t pointOf(std::string_view character) {
  if (character.size() == 1) return static_cast<unsigned char>(character.front());
  std::uint32_t point = static_cast<unsigned char>(character.front()) & (0x7fU >> character.size());
  for (const char each : character.substr(1))
    point = point << 6U | (static_cast<unsigned char>(each) & 0x3fU);
  return point;
}

bool isUnseen(std::uint32_t point) {
  return std::ranges::any_of(unseen, [&](Range each) { return point >= each.first && point <= each.last; });
}

/// For as long as it lives, this thread takes characters for UTF-8, whatever the user's locale is.
class Utf8Characters {
 public:
  Utf8Characters() : former_(::uselocale(utf8())) {}
  Utf8Characters(const Utf8Characters&) = delete;
  Utf8Characters& operator=(const Utf8Characters&) = delete;
  ~Utf8Characters() { ::uselocale(former_); }

  static std::size_t columnsOf(std::string_view character) {
    const int columns = ::wcwidth(static_cast<wchar_t>(pointOf(character)));
    return columns < 0 ? 1 : static_cast<std::size_t>(columns);
  }

 private:
  static locale_t utf8() {
    static const locale_t known = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    return known;
  }

  const locale_t former_;
};

}  // namespace

std::size_t columnsOf(std::string_view line) {
  const Utf8Characters characters;
  std::size_t columns = 0;
  while (!line.empty()) {
    const std::string_view character = firstCharacter(line);
    columns += character.empty() ? 1 : Utf8Characters::columnsOf(character);
    line.remove_prefix(std::max<std::size_t>(character.size(), 1));
  }
  return columns;
}

std::string_view fitting(std::string_view line, std::size_t columns) {
  std::size_t size = 0;
  while (size < line.size()) {
    const std::string_view rest = line.substr(size);
    const std::string_view character = rest.substr(0, std::max<std::size_t>(firstCharacter(rest).size(), 1));
    const std::size_t width = columnsOf(character);
    if (width > columns) break;
    columns -= width;
    size += character.size();
  }
  return line.substr(0, size);
}

std::string oneLine(std::string_view text) {
  std::string line;
  while (!text.empty()) {
    const std::string_view character = firstCharacter(text);
    if (!character.empty() && !isUnseen(pointOf(character))) {
      line += character;
    } else {
      for (const char byte : character.empty() ? text.substr(0, 1) : character) {
        line += "\\x";
        appendHex(line, static_cast<unsigned char>(byte));
      }
    }
    text.remove_prefix(std::max<std::size_t>(character.size(), 1));
  }
  return line;
}

std::string shown(std::string_view text) {
  std::string line = oneLine(text);
  return line == text ? line : quoted(text);
}

std::string shownLength(std::chrono::milliseconds length) {
  const auto count = length.count();
  if (count < 1000) return std::to_string(count) + " ms";
  if (count < 60'000) {
    const auto tenths = count % 1000 / 100;
    return std::to_string(count / 1000) + (tenths > 0 ? "." + std::to_string(tenths) : "") + " s";
  }
  const auto two = [](auto large, const char* largeUnit, auto small, const char* smallUnit) {
    return std::to_string(large) + largeUnit + (small > 0 ? " " + std::to_string(small) + smallUnit : "");
  };
  const auto seconds = count / 1000;
  if (seconds < 3600) return two(seconds / 60, " min", seconds % 60, " s");
  if (seconds < 86400) return two(seconds / 3600, " h", seconds % 3600 / 60, " min");
  return two(seconds / 86400, " d", seconds % 86400 / 3600, " h");
}

}  // namespace lockkeeper::cli
