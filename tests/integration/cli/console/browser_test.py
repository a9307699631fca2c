#!/usr/bin/env python3
"""usage: browser_test.py LOCKKEEPER
Opens the page of `lockkeeper serve` in chromium: it shows what `lockkeeper list --json` says, runs nothing that stands in keys and
owners, stays small with 10,000 locks, and breaks only the lock that was seen.
"""
import json
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from browser import Page  # noqa: E402

LOCKKEEPER = sys.argv.pop(1)
PASSWORD = "correct horse battery staple"
TOKEN = "0123456789abcdef0123456789abcdef"
SHOWN = ("[...document.querySelectorAll('tr.lock')].map(r => [r.querySelector('.key').textContent, "
         "r.querySelector('.owner').textContent, r.querySelector('.fence').textContent])")


def free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


class Redis:
    def __init__(self):
        self.port = free_port()
        self.process = subprocess.Popen(["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""],
                                        stdout=subprocess.DEVNULL)
        end = time.monotonic() + 20
        while True:
            try:
                self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=20)
                break
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.02)

    def send(self, *commands):
        """Several commands in one go; how they were answered does not matter."""
        request = b""
        for command in commands:
            words = [word.encode() if isinstance(word, str) else word for word in command]
            request += b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)
        self.socket.sendall(request)
        lines = 0
        while lines < len(commands):
            lines += self.socket.recv(65536).count(b"\r\n")

    def hold(self, key, owner, token=TOKEN):
        self.send(("SET", key, f"{token}@{owner}", "PX", "600000"))

    def get(self, key):
        self.socket.sendall(b"*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n" % (len(key), key.encode()))
        answer = self.socket.recv(65536)
        return None if answer.startswith(b"$-1") else answer.split(b"\r\n")[1].decode()


class Console(unittest.TestCase):
    def setUp(self):
        self.redis = Redis()
        self.addCleanup(self.end, self.redis.process)
        self.addCleanup(self.redis.socket.close)
        self.store = f"redis://127.0.0.1:{self.redis.port}"
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        password = pathlib.Path(folder.name) / "password"
        password.write_text(PASSWORD + "\n")
        self.log = pathlib.Path(folder.name) / "log"
        with open(self.log, "w") as log:
            serve = subprocess.Popen([LOCKKEEPER, "serve", "--store", self.store, "--listen", "127.0.0.1:0", "--interval", "100ms",
                                      "--break-password", password], stdout=subprocess.PIPE, stderr=log, text=True)
        self.addCleanup(serve.stdout.close)
        self.addCleanup(self.end, serve)
        self.url = serve.stdout.readline().strip()

    @staticmethod
    def end(process):
        process.send_signal(signal.SIGTERM)
        process.wait(20)

    def listed(self):
        lines = subprocess.run([LOCKKEEPER, "list", "--json", "--store", self.store], capture_output=True, text=True, check=True)
        locks = [json.loads(line) for line in lines.stdout.splitlines()]
        return [[lock["key"], lock["owner"] or "-", str(lock["fence"] or "-")] for lock in locks]

    def start_command(self, key, *options):
        command = subprocess.Popen([LOCKKEEPER, "run", "--store", self.store, *options, key, "--", "sleep", "60"])
        self.addCleanup(self.end, command)
        return command

    def wait_for_list(self, page):
        wanted = self.listed()
        page.wait(f"JSON.stringify({SHOWN}) === JSON.stringify({json.dumps(wanted)})", f"the page shows {wanted}")
        return wanted

    def test_shows_what_list_says_and_runs_nothing_of_it(self):
        with Page(self.url) as page:
            self.assertEqual(self.wait_for_list(page), [])
            self.redis.hold("order:1", "host:1")
            self.redis.hold("order:2", "host:2")
            self.assertEqual(len(self.wait_for_list(page)), 2)
            self.redis.send(("DEL", "order:1"))
            attack = "<img src=x onerror=window.hit=1><script>window.hit=1</script>\"'</table>"
            self.redis.hold(attack, "<b onclick=window.hit=1>me</b>")
            self.redis.hold("${window.hit=1}{{window.hit=1}}", "javascript:window.hit=1")
            self.assertEqual(len(self.wait_for_list(page)), 3)
            page.run("document.querySelector('tr.lock button').click()")
            self.assertIsNone(page.run("window.hit"))
            self.assertEqual(page.run("document.querySelectorAll('#rows img, #rows script, #rows b, dialog b').length"), 0)
            self.assertNotIn(TOKEN, page.run("document.documentElement.outerHTML"))
            self.assertEqual(page.complaints(), [])
            # What has no nonce does not run, even if it got into the page.
            page.run("(() => { const s = document.createElement('script'); s.textContent = 'window.hit = 1'; "
                     "document.body.append(s); })()")
            self.assertIsNone(page.run("window.hit"))

    def test_shows_each_who_shares_a_key_and_breaks_one_of_them(self):
        for _ in range(3):
            self.start_command("export", "--permits", "3")
        with Page(self.url) as page:
            page.wait(f"{SHOWN}.length === 3", "three share the key")
            shown = json.loads(page.run(f"JSON.stringify({SHOWN})"))
            self.assertEqual(sorted(shown), sorted(self.listed()))
            self.assertEqual(len({owner for _, owner, _ in shown}), 3)
            page.run("document.querySelectorAll('tr.lock button')[1].click()")
            self.assertEqual(page.run("document.querySelector('#dShare').textContent"), "1 of 3")
            broken = page.run("document.querySelector('#dOwner').textContent")
            self.press_break(page, "")
            self.assertIn("was taken", self.press_break(page, PASSWORD))
            page.wait(f"{SHOWN}.length === 2", "two are left")
            self.assertNotIn(broken, {owner for _, owner, _ in self.listed()})

    def test_shows_who_waits_in_their_order(self):
        waiting = "document.querySelector('tr.lock .waiting').textContent"
        self.start_command("export")
        with Page(self.url) as page:
            page.wait(f"{SHOWN}.length === 1", "it is held")
            self.assertEqual(page.run(waiting), "-")
            page.run("document.querySelector('tr.lock button').click()")
            self.assertEqual(page.run("document.querySelector('#dWaiting').textContent"), "nobody")
            pids = []
            for number in (1, 2):
                pids.append(str(self.start_command("export", "--wait", "1m").pid))
                page.wait(f"{waiting}.startsWith('{number}, ')", f"{number} wait")
            page.wait(f"document.querySelector('#dWaiting').textContent.includes(':{pids[1]} for ')", "they are named")
            lines = page.run("document.querySelector('#dWaiting').textContent").splitlines()
            self.assertEqual([line.split(" for ")[0].split(":")[-1] for line in lines], pids)
            self.redis.hold("another", "a:1")
            page.wait(f"{SHOWN}.length === 2", "two are held")
            page.run("document.querySelector('th[data-sort=waiting] button').click()")
            self.assertEqual(json.loads(page.run(f"JSON.stringify({SHOWN})"))[0][0], "export")

    def test_ten_thousand_locks_are_few_rows(self):
        self.redis.send(*(("SET", f"stock:{i:05}", f"{TOKEN}@host:{i % 7}", "PX", "600000") for i in range(10000)))
        with Page(self.url) as page:
            page.wait("document.querySelector('#count').textContent === '10000 of 10000 locks'", "all locks are counted", 15)
            self.assertIn(page.run("document.querySelectorAll('#rows tr').length"), range(10, 80))
            self.assertEqual(page.run("document.querySelector('#table').getAttribute('aria-rowcount')"), "10001")
            page.run("(() => { const s = document.querySelector('#scroll'); s.scrollTop = s.scrollHeight; })()")
            page.wait("document.querySelector('#rows').textContent.includes('stock:09999')", "the end can be scrolled to")
            self.assertIn(page.run("document.querySelectorAll('#rows tr').length"), range(10, 80))
            page.run("(() => { const f = document.querySelector('#filter'); f.value = '00042'; "
                     "f.dispatchEvent(new Event('input')); })()")
            page.wait(f"JSON.stringify({SHOWN}) === '[[\"stock:00042\",\"host:0\",\"-\"]]'", "the filter finds one")
            page.run("document.querySelector('th[data-sort=owner] button').click()")
            self.assertEqual(page.run("document.querySelector('th[data-sort=owner]').getAttribute('aria-sort')"), "ascending")

    def press_break(self, page, password):
        page.run(f"document.querySelector('#password').value = {json.dumps(password)}; "
                 "document.querySelector('#answer').textContent = ''; document.querySelector('#break').click()")
        page.wait("document.querySelector('#answer').textContent", "an answer")
        return page.run("document.querySelector('#answer').textContent")

    def test_breaks_only_the_grant_that_was_seen(self):
        self.redis.hold("k", "first:1")
        with Page(self.url) as page:
            self.wait_for_list(page)
            page.run("document.querySelector('tr.lock button').click()")
            self.assertIn("needs the operators' password", self.press_break(page, ""))
            self.assertIn("not the password", self.press_break(page, "wrong"))
            self.redis.hold("k", "first:1", TOKEN[::-1])  # of the same name, in another grant
            self.wait_for_list(page)
            self.assertIn("nothing was broken", self.press_break(page, PASSWORD))
            self.assertEqual(self.redis.get("k"), f"{TOKEN[::-1]}@first:1")
            page.run("document.querySelector('#close').click(); document.querySelector('tr.lock button').click()")
            self.assertIn("was taken", self.press_break(page, PASSWORD))
            self.assertIsNone(self.redis.get("k"))
            self.assertEqual(self.wait_for_list(page), [])
        log = self.log.read_text()
        self.assertEqual(log.count("asks to break"), 4, log)
        self.assertNotIn(PASSWORD, log)
        self.assertNotIn(TOKEN, log)


if __name__ == "__main__":
    unittest.main()
