// Takes permits on redis-server until it is killed. Arguments: its port, how many permits to take, or "read".

#include "permit_member.h"

#include <string>

#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"

int main(int count, char** arguments) {
  if (count != 3) return 64;
  lockkeeper::StoreRegistry registry;
  lockkeeper::redis::use(registry);
  return lockkeeper::test::takePart(registry.open("redis://127.0.0.1:" + std::string(arguments[1])),
                                    arguments[2]);
}
