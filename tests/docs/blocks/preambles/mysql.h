#pragma once

#include <Poco/Data/Session.h>

#include <cstdint>

#include "every_page.h"

namespace pages {

namespace mysql = lockkeeper::mysql;

extern Poco::Data::Session session;
extern const std::string iban;
extern const std::int64_t amount;

}  // namespace pages
