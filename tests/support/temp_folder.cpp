#include "temp_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>

namespace lockkeeper::test {

namespace {

constexpr std::uintmax_t roomForServers = std::uintmax_t{4} << 30;

// In memory where there is room: many servers that sync one disk wait for each other, for seconds. They are
// killed, the machine is not, so what they wrote survives all the same.
std::filesystem::path parentFolder() {
  const std::filesystem::path memory = "/dev/shm";
  std::error_code absent;
  const auto space = std::filesystem::space(memory, absent);
  return !absent && space.available >= roomForServers ? memory : std::filesystem::temp_directory_path();
}

}  // namespace

TempFolder::TempFolder() {
  std::string pattern = (parentFolder() / "lockkeeper-test-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw std::system_error(errno, std::generic_category(), "mkdtemp " + pattern);
  }
  path_ = pattern;
}

TempFolder::~TempFolder() {
  std::error_code ignored;  // A server that is just dying may still write: nothing depends on it.
  std::filesystem::remove_all(path_, ignored);
}

std::string readFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void writeFile(const std::filesystem::path& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path.string());
}

}  // namespace lockkeeper::test
