<?php
// One legacy client of a fleet that is being migrated: adds one to counters in files, each under a lock, until the file
// "stop-legacy" appears; then writes how often it did so. Arguments: the port and database of Redis, a folder, a
// file with the client's lock, and the name of its class.
[, $port, $database, $folder, $lockFile, $lockClass] = $argv;
require $lockFile;

$redis = new Redis();
$redis->connect('127.0.0.1', (int) $port, 5.0);
$redis->select((int) $database);
$lock = new $lockClass($redis, 'lock:');
$done = 0;
while (!file_exists("$folder/stop-legacy")) {
    clearstatcache();
    foreach (['order:1', 'order:2', 'order:3', 'order:4', 'stock:1', 'stock:2', 'stock:3', 'stock:4'] as $name) {
        if (!$lock->lock($name, 3)) {
            usleep(mt_rand(500, 3000));
            continue;
        }
        $count = is_file("$folder/$name") ? (int) file_get_contents("$folder/$name") : 0;
        file_put_contents("$folder/$name", $count + 1);
        ++$done;
        $lock->unlock($name);
        usleep(mt_rand(500, 3000));
    }
}
file_put_contents("$folder/done." . getmypid(), "$done 0");
