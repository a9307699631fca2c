<?php
// Adds to counters in files, under locks: counter_worker.php PORT CLASS FOLDER SECONDS KEYS TIMEOUT. Prints how often it
// added, and how often it held a lock for longer than the timeout.
require __DIR__ . '/patched_lock.php';

[, $port, $class, $folder, $seconds, $keys, $timeOut] = $argv;
$redis = new Redis();
$redis->connect('127.0.0.1', (int) $port, 5.0);
$lock = new $class($redis, 'lock:');
$added = 0;
$overruns = 0;
$end = hrtime(true) + $seconds * 1000000000;
while (hrtime(true) < $end) {
    $name = 'key' . mt_rand(0, $keys - 1);
    $asked = hrtime(true);
    if (!$lock->lock($name, (int) $timeOut)) {
        usleep(mt_rand(500, 3000));
        continue;
    }
    $count = (int) file_get_contents("$folder/$name");
    usleep(mt_rand(0, 2000));
    file_put_contents("$folder/$name", $count + 1);
    ++$added;
    $overruns += hrtime(true) - $asked > $timeOut * 1000000000 ? 1 : 0;
    $lock->unlock($name);
}
echo "added $added\noverruns $overruns\n";
