#pragma once

#include <lockkeeper/cached_loader.h>
#include <lockkeeper/error.h>

#include <optional>
#include <stop_token>

#include "every_page.h"

namespace pages {

// Of the application.
void serviceUnavailable();
void tryLater();
extern const int pageCount;
void reindex(int page, std::stop_token stop);

struct Receipt {};
Receipt charge();
void book(Receipt receipt);
void undo(Receipt receipt);

struct Database {
  std::optional<std::string> priceAsJson(std::string_view id);
};
extern Database database;

// Of lockkeeper.
extern lockkeeper::LockManager locks;
extern const std::shared_ptr<lockkeeper::LockManager> sharedLocks;

}  // namespace pages
