<?php
// One call of a lock, for tests: call.php PORT CLASS METHOD NAME [TIMEOUT [AHEAD]]. Prints what it returns, as
// JSON. PausedLock stops between its two commands: it makes the file PAUSED and waits for the file GO_ON.
require __DIR__ . '/patched_lock.php';

class PausedLock extends LegacyLock
{
    protected function pauseBeforeTakeOver(): void
    {
        touch(getenv('PAUSED'));
        for ($i = 0; $i < 30000 && !file_exists(getenv('GO_ON')); ++$i) {
            usleep(1000);
        }
    }
}

[, $port, $class, $method, $name] = $argv;
$redis = new Redis();
$redis->connect('127.0.0.1', (int) $port, 5.0);
$lock = new $class($redis, 'lock:', (int) ($argv[6] ?? 0));
echo json_encode($method === 'lock' ? $lock->lock($name, (int) ($argv[5] ?? 3)) : $lock->$method($name));
