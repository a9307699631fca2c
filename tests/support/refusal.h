#pragma once

#include <stdexcept>
#include <string>

namespace lockkeeper::test {

/// What the exception says with which `call` refuses; "accepted" when it throws none.
template <class Exception = std::invalid_argument, class Call>
std::string refusalOf(Call&& call) {
  try {
    call();
  } catch (const Exception& refusal) {
    return refusal.what();
  }
  return "accepted";
}

}  // namespace lockkeeper::test
