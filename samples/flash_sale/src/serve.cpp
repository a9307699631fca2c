#include <signal.h>

#include <iostream>

#include "modes.h"
#include "shop/order_server.h"

namespace flash_sale {

int serve(const Settings& settings, lockkeeper::LockManager& locks) {
  // Before any thread starts, so that all of them leave these signals to us.
  sigset_t ends;
  ::sigemptyset(&ends);
  ::sigaddset(&ends, SIGINT);
  ::sigaddset(&ends, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  lockkeeper::inventory::StockService stock =
      openStock(settings, locks, lockkeeper::inventory::Way::conditionalUpdate);
  stock.createSchema();
  // With an id: servers that start together do it once.
  if (!stock.level("pen")) stock.restock("pen", settings.stock, "first pens");
  const auto shop = openShop(settings, locks, settings.way);
  const OrderServer server(*shop, settings.port, settings.customers + 1);
  const std::string url = "http://127.0.0.1:" + std::to_string(server.port());
  std::cout << "Selling pens, " << nameOf(settings.way) << ". Try:\n  curl " << url
            << R"(/orders -d '{"sku":"pen","quantity":1,"orderId":"o-1"}')"
            << "\n  curl " << url << "/stock/pen\nEnd with Ctrl-C." << std::endl;
  int signal = 0;
  ::sigwait(&ends, &signal);
  return 0;
}

}  // namespace flash_sale
