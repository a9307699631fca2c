// Takes permits on a server of MariaDB or MySQL until it is killed. Arguments: the store's URI, how many
// permits to take.

#include "lockkeeper/mysql/use.h"
#include "lockkeeper/store_registry.h"
#include "permit_member.h"

int main(int count, char** arguments) {
  if (count != 3) return 64;
  lockkeeper::StoreRegistry registry;
  lockkeeper::mysql::use(registry);
  return lockkeeper::test::takePart(registry.open(arguments[1]), arguments[2]);
}
