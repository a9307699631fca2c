#!/usr/bin/env python3
"""samples_test.py SAMPLE PROGRAM: runs a sample that one copies, with a redis-server of its own, and looks at what it does."""

import pathlib
import queue
import re
import socket
import subprocess
import sys
import threading
import time
import unittest
import urllib.error
import urllib.request

SAMPLE, PROGRAM = sys.argv[1], sys.argv.pop()
BOUND = 20


class Started:
    """A process whose lines are read as they come."""

    def __init__(self, case, *arguments):
        self.process = subprocess.Popen([PROGRAM, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lines = queue.Queue()
        self.reader = threading.Thread(target=lambda: [self.lines.put(line.strip()) for line in self.process.stdout])
        self.reader.start()
        case.addCleanup(self.end)

    def line(self, pattern):
        """The next line like that; what comes before it is dropped."""
        end = time.monotonic() + BOUND
        while True:
            line = self.lines.get(timeout=max(0.01, end - time.monotonic()))
            if re.search(pattern, line):
                return line

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stdin.close()
        self.process.stdout.close()


class Sample(unittest.TestCase):
    def redis(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        server = subprocess.Popen(["redis-server", "--port", str(port), "--save", "", "--bind", "127.0.0.1"], stdout=subprocess.DEVNULL)
        self.addCleanup(lambda: (server.kill(), server.wait()))
        end = time.monotonic() + BOUND
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                return f"redis://127.0.0.1:{port}/0"
            except OSError:
                self.assertLess(time.monotonic(), end, "redis-server does not start")
                time.sleep(0.02)

    @unittest.skipUnless(SAMPLE == "http_limits", "another sample")
    def test_http_limits_refuses_the_third_request_of_a_second(self):
        url = Started(self).line("^http://")
        for _ in range(2):
            self.assertEqual(urllib.request.urlopen(url).read(), b"hello\n")
        with self.assertRaises(urllib.error.HTTPError) as refused:
            for _ in range(20):  # a slow machine gets one back each half second
                urllib.request.urlopen(url)
        self.assertEqual(refused.exception.code, 429)
        self.assertEqual(refused.exception.headers["Retry-After"], "1")
        refused.exception.close()

    @unittest.skipUnless(SAMPLE == "http_limits", "another sample")
    def test_http_limits_has_at_most_25_lines_of_code(self):
        source = pathlib.Path(__file__).parents[3] / "samples/http_limits/http_limits.cpp"
        code = [line for line in source.read_text().splitlines() if line and not line.startswith(("//", "#include"))]
        self.assertLessEqual(len(code), 25)

    @unittest.skipUnless(SAMPLE == "idempotent_payment", "another sample")
    def test_idempotent_payment_is_charged_once(self):
        server = Started(self, "serve", self.redis())
        port = re.search(r"port (\d+)", server.line("^serves on port")).group(1)
        paid = subprocess.run([PROGRAM, "pay", port, "42"], capture_output=True, text=True, timeout=BOUND)
        self.assertEqual(paid.returncode, 0, paid.stdout)
        self.assertRegex(paid.stdout, r"(?s)Timeout.*409.*charged 42\nafter \d+ tries")
        server.process.stdin.write("\n")
        server.process.stdin.flush()
        self.assertEqual(server.process.wait(BOUND), 0)
        server.reader.join()
        self.assertEqual([line for line in list(server.lines.queue) if line.startswith("charged")], ["charged 42"])

    @unittest.skipUnless(SAMPLE == "leader_election", "another sample")
    def test_leader_election_goes_on_when_the_leader_is_killed(self):
        store = self.redis()
        first = Started(self, store)
        fence = int(first.line("^leads, fence").split()[-1])
        second = Started(self, store)
        second.line("a candidate")
        first.process.kill()
        self.assertGreater(int(second.line("^leads, fence").split()[-1]), fence)

    @unittest.skipUnless(SAMPLE == "migration_walk", "another sample")
    def test_migration_walk_loses_nothing(self):
        for scheme, parameters in (("redis", ""), ("redis+legacy", "?keyPrefix=lock:")):
            new = self.redis()
            old = new.replace("redis", scheme, 1)[:-1] + "1" + parameters
            walked = subprocess.run([PROGRAM, old, new], capture_output=True, text=True, timeout=100)
            self.assertEqual(walked.returncode, 0, walked.stdout + walked.stderr)
            self.assertEqual(re.findall("^current: +(.*)$", walked.stdout, re.M), ["legacy", "both", "modern"])
            jobs = re.search(r"(\d+) jobs were done, and (\d+) were counted", walked.stdout)
            self.assertGreater(int(jobs.group(1)), 3)

    @unittest.skipUnless(SAMPLE == "migration_walk", "another sample")
    def test_migration_walk_ends_when_its_workers_fail(self):
        unknown = "redis://127.0.0.1/0?no=such"
        walked = subprocess.run([PROGRAM, unknown, unknown], capture_output=True, text=True, timeout=BOUND)
        self.assertEqual(walked.returncode, 1, walked.stdout + walked.stderr)
        self.assertIn("a worker has failed", walked.stderr)

    @unittest.skipUnless(SAMPLE == "nightly_job", "another sample")
    def test_nightly_job_runs_once_at_each_tick_on_three_machines(self):
        store = self.redis()
        begun = time.time()
        machines = [Started(self, store, "now") for _ in range(3)]
        for each in machines:
            each.line("waits for its time")
        runs = []
        while time.time() < begun + 4 or len(runs) < 2:
            self.assertLess(time.time(), begun + BOUND, runs)
            for each in machines:
                try:
                    runs.append(re.search(r"^runs, fence (\d+)", each.lines.get(timeout=0.05)).group(1))
                except queue.Empty:
                    pass
        ticks = int(time.time()) - int(begun)
        self.assertLessEqual(len(runs), ticks, runs)
        self.assertEqual(len(set(runs)), len(runs), "each run has a fence of its own")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
