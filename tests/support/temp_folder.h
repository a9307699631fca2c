#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace lockkeeper::test {

/// A fresh folder, deleted with all that is in it when the object ends.
class TempFolder {
 public:
  TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder();

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// The whole file as text; empty when it cannot be read.
std::string readFile(const std::filesystem::path& path);
/// Throws std::runtime_error when it cannot be written.
void writeFile(const std::filesystem::path& path, std::string_view text);

}  // namespace lockkeeper::test
