#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace lockkeeper::test {

/// A file to which several processes add lines. Each appears as a whole, in the order in which they were
/// added. Any number of threads at a time.
class Journal {
 public:
  explicit Journal(std::filesystem::path path) : path_(std::move(path)) {}

  void add(std::string_view line) const {
    const std::string whole = std::string(line) + "\n";
    const int file = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    const bool written =
        file >= 0 && ::write(file, whole.data(), whole.size()) == static_cast<ssize_t>(whole.size());
    if (file >= 0) ::close(file);
    if (!written) throw std::runtime_error("cannot write to " + path_.string());
  }

  std::vector<std::string> lines() const {
    std::vector<std::string> all;
    std::ifstream file(path_);
    for (std::string line; std::getline(file, line);) all.push_back(line);
    return all;
  }

 private:
  const std::filesystem::path path_;
};

}  // namespace lockkeeper::test
