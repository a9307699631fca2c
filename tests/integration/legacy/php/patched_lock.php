<?php
require_once __DIR__ . '/legacy_lock.php';

class PatchedLock extends LegacyLock
{
    private array $held = [];

    public function lock(string $name, int $timeOut = 3): bool
    {
        $claim = "local now = tonumber(redis.call('TIME')[1]); local value = redis.call('GET', KEYS[1])
            if value and (tonumber(string.match(value, '^%d+')) or now) + 1 >= now then return false end
            local mine = (now + ARGV[1] + 1) .. ':' .. ARGV[2]
            redis.call('SET', KEYS[1], mine, 'EX', ARGV[1] + 1); return mine";
        $token = bin2hex(random_bytes(16)) . '@php:' . getmypid();
        $this->held[$name] = $this->redis->eval($claim, [$this->prefix . $name, $timeOut, $token], 1);
        return (bool) $this->held[$name];
    }

    public function unlock(string $name): int
    {
        $release = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0";
        return (int) $this->redis->eval($release, [$this->prefix . $name, $this->held[$name] ?? ''], 1);
    }

    public function isLockExist(string $name): bool
    {
        return $this->now() <= (int) $this->get($this->prefix . $name);
    }
}
