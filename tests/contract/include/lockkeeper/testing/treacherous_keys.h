#pragma once

#include <string>
#include <vector>

namespace lockkeeper::testing {

/// Keys that some store somewhere would trim, fold, cut, expand or take for something else.
inline std::vector<std::string> treacherousKeys() {
  std::vector<std::string> keys;
  for (int byte = 0; byte < 256; ++byte) keys.push_back(std::string(1, static_cast<char>(byte)));
  const std::string nul(1, '\0');
  for (const std::string& text :
       {std::string("stock"),       std::string("Stock"),       std::string("STOCK"),
        std::string("stock "),      std::string(" stock"),      "stock" + nul,
        "stock" + nul + "1",        std::string("stock\n"),     std::string("stock\r\n"),
        std::string("stock:1"),     std::string("{stock}"),     std::string("{stock}:1"),
        std::string("stock*"),      std::string("stoc?"),       std::string("sto[c]k"),
        std::string("sto\\ck"),     std::string("'stock'"),     std::string("\"stock\""),
        std::string("%73tock"),     std::string("sto%ck"),      std::string("sto_ck"),
        std::string("\xC3\x89tat"), std::string("\xC3\xA9tat"), std::string("e\xCC\x81tat"),
        std::string("Etat"),        std::string("\xFF\xFE"),    std::string("\xE5\xBA\x93\xE5\xAD\x98"),
        std::string("00"),          std::string("-1"),          std::string("{}"),
        std::string("{}stock"),     std::string("}{")}) {
    keys.push_back(text);
  }
  // Longer than the 64 characters and 192 bytes that some stores keep, and different only behind them.
  for (const char last : {'a', 'b'}) {
    for (const std::size_t length : {65U, 193U, 256U, 512U})
      keys.push_back(std::string(length - 1, 'k') + last);
  }
  return keys;
}

}  // namespace lockkeeper::testing
