<?php
// A row with a guard, in a file: see fenced_row.h.

class FencedRow
{
    public function __construct(private string $path)
    {
    }

    public function claim(): int
    {
        return $this->change(fn (array $row) => [$row[0] + 1, $row[1]])[0];
    }

    /** False when a later holder has claimed the row. */
    public function write(int $claim): bool
    {
        $accepted = false;
        $this->change(function (array $row) use ($claim, &$accepted) {
            $accepted = $row[0] === $claim;
            return $accepted ? [$row[0], $row[1] + 1] : $row;
        });
        return $accepted;
    }

    private function change(callable $to): array
    {
        $file = fopen($this->path, 'c+');
        flock($file, LOCK_EX);
        $row = array_map('intval', explode(' ', stream_get_contents($file) ?: '0 0'));
        $changed = $to($row);
        if ($changed !== $row) {
            ftruncate($file, 0);
            rewind($file);
            fwrite($file, implode(' ', $changed));
        }
        fclose($file);
        return $changed;
    }
}
