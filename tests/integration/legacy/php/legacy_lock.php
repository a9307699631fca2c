<?php
// The lock of a legacy service: the key holds the unix time at which the lock ends. Each comparison and command is what
// such services do, faults included.

class LegacyLock
{
    /** @param int $ahead by how many seconds this machine's clock is ahead */
    public function __construct(protected Redis $redis, protected string $prefix, protected int $ahead = 0)
    {
    }

    public function lock(string $name, int $timeOut = 3): bool
    {
        $key = $this->prefix . $name;
        $now = $this->now();
        $expire = $now + $timeOut;
        if ($this->redis->setnx($key, $expire)) {
            return true;
        }
        $current = $this->get($key);
        if (!($now > $current)) {
            return false;
        }
        $this->pauseBeforeTakeOver();
        $previous = $this->redis->getset($key, $expire);
        $previous = $previous === false ? null : $previous;
        if ($current != $previous) {
            return false;
        }
        return $previous != 0;
    }

    public function isLockExist(string $name): bool
    {
        $key = $this->prefix . $name;
        $current = $this->get($key);
        if ($current === null) {
            return false;
        }
        if ($this->now() > $current) {
            $this->pauseBeforeTakeOver();
            $this->redis->del($key);
            return false;
        }
        return true;
    }

    public function unlock(string $name): int
    {
        return $this->redis->del($this->prefix . $name);
    }

    protected function now(): int
    {
        return time() + $this->ahead;
    }

    /** A missing key is null, as in the clients of frameworks. */
    protected function get(string $key): ?string
    {
        $value = $this->redis->get($key);
        return $value === false ? null : $value;
    }

    /** Where the scheduler may stop a process between two commands; tests do. */
    protected function pauseBeforeTakeOver(): void
    {
    }
}
