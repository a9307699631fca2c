<?php
// Writes to guarded rows, under locks that it often holds for longer than their timeout:
// row_worker.php PORT CLASS FOLDER SECONDS KEYS TIMEOUT. Prints what row_worker.cpp prints; it cannot know a loss.
require __DIR__ . '/patched_lock.php';
require __DIR__ . '/fenced_row.php';

[, $port, $class, $folder, $seconds, $keys, $timeOut] = $argv;
$redis = new Redis();
$redis->connect('127.0.0.1', (int) $port, 5.0);
$lock = new $class($redis, 'lock:');
$end = hrtime(true) + $seconds * 1000000000;
while (hrtime(true) < $end) {
    $name = 'key' . mt_rand(0, $keys - 1);
    $asked = hrtime(true);
    if ($lock->isLockExist($name) || !$lock->lock($name, (int) $timeOut)) {
        usleep(mt_rand(500, 2000));
        continue;
    }
    echo "granted $name $asked ", hrtime(true), "\n";
    $row = new FencedRow("$folder/$name");
    $claim = $row->claim();
    usleep(mt_rand($timeOut * 1000000, 4 * $timeOut * 1000000));
    $now = hrtime(true);
    echo "wrote $now ", $row->write($claim) ? 'accepted' : 'refused', "\n";
    echo 'ends ', hrtime(true), "\n";
    $lock->unlock($name);
    usleep(mt_rand(0, 200000));
}
