#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "temp_folder.h"

namespace lockkeeper::test {

/// A fenced block of the documentation.
struct Block {
  std::string page;  ///< Such as docs/metrics.md.
  int line;          ///< Of its first line.
  std::string language;
  std::string text;
};

/// All of them, as extract_blocks.awk has written them.
inline std::vector<Block> allBlocks() {
  const std::filesystem::path folder = DOCUMENTED_BLOCKS;
  std::vector<Block> blocks;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const auto& path = entry.path();
    const std::string name = path.filename();
    blocks.push_back({path.parent_path().lexically_relative(folder), std::stoi(name),
                      name.substr(name.find('.') + 1), readFile(path)});
  }
  std::ranges::sort(blocks, {}, [](const Block& block) { return std::tie(block.page, block.line); });
  return blocks;
}

inline std::vector<Block> blocksOf(const std::string& language) {
  std::vector<Block> blocks = allBlocks();
  std::erase_if(blocks, [&](const Block& block) { return block.language != language; });
  return blocks;
}

}  // namespace lockkeeper::test
