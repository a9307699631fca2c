// Takes permits on etcd until it is killed. Arguments: the cluster's URI, how many permits to
// take, or "read".

#include "permit_member.h"

#include <string>

#include "lockkeeper/etcd/use.h"
#include "lockkeeper/store_registry.h"

int main(int count, char** arguments) {
  if (count != 3) return 64;
  lockkeeper::StoreRegistry registry;
  lockkeeper::etcd::use(registry);
  return lockkeeper::test::takePart(registry.open(arguments[1]), arguments[2]);
}
