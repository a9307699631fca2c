#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lockkeeper/inventory/reservation.h"
#include "lockkeeper/inventory/stock_options.h"

namespace lockkeeper::inventory {

// What is refused before anything is sent: each throws std::invalid_argument that names the value and what is
// allowed.

void checkOptions(const StockOptions& options);
void checkSku(std::string_view sku);
/// `field` is the argument's name.
void checkId(std::string_view field, std::string_view id);
void checkQuantity(std::int64_t quantity, std::int64_t least);
void checkLedgerLength(std::size_t most);
void checkBuckets(std::size_t buckets);
void checkTtl(std::chrono::milliseconds ttl);
/// The cart, ordered by sku.
std::vector<CartLine> checkedCart(std::vector<CartLine> cart);

/// The lock that guards an article.
std::string lockKey(std::string_view sku);

}  // namespace lockkeeper::inventory
