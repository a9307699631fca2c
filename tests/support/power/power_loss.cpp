#include "power_loss.h"

#include <sys/stat.h>

#include <cstring>
#include <fstream>
#include <stdexcept>
#include <vector>

#include "power_loss_record.h"

namespace lockkeeper::test {
namespace {

struct Write {
  std::size_t position = 0;  // In the journal.
  PowerLossRecord record{};
};

std::map<std::uint64_t, std::vector<Write>> unsynced(const std::string& journal) {
  std::map<std::uint64_t, std::vector<Write>> writes;
  for (std::size_t at = 0; at + sizeof(PowerLossRecord) <= journal.size();) {
    Write write{.position = at};
    std::memcpy(&write.record, journal.data() + at, sizeof write.record);
    at += sizeof write.record;
    std::vector<Write>& ofFile = writes[write.record.inode];
    if (write.record.count == PowerLossRecord::synced) {
      const auto safe = static_cast<std::size_t>(write.record.offset);
      std::erase_if(ofFile, [safe](const Write& each) { return each.position < safe; });
    } else {
      // Killed while it wrote the record: it has not come to the write itself.
      at += static_cast<std::size_t>(write.record.count);
      if (at <= journal.size()) ofFile.push_back(write);
    }
  }
  return writes;
}

void takeBack(const std::filesystem::path& path, const std::vector<Write>& writes,
              const std::string& journal) {
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    for (auto each = writes.rbegin(); each != writes.rend(); ++each) {
      file.seekp(each->record.offset);
      file.write(journal.data() + each->position + sizeof each->record, each->record.count);
    }
    if (!file.flush()) throw std::runtime_error("cannot take back what was written to " + path.string());
  }
  if (!writes.empty())
    std::filesystem::resize_file(path, static_cast<std::uintmax_t>(writes.front().record.size));
}

}  // namespace

void PowerLoss::strike(const std::filesystem::path& folder) const {
  const std::string bytes = readFile(journal());
  if (bytes.empty()) throw std::runtime_error("nothing was written to " + journal().string());
  const auto writes = unsynced(bytes);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    struct stat status {};
    if (!entry.is_regular_file() || ::stat(entry.path().c_str(), &status) != 0) continue;
    const auto found = writes.find(status.st_ino);
    if (found == writes.end()) continue;
    takeBack(entry.path(), found->second, bytes);
  }
  std::filesystem::remove(journal());
}

}  // namespace lockkeeper::test
