#!/usr/bin/env python3
"""usage: browser_test.py LOCKKEEPER CONSOLE_PROCESS [--few]
Opens the page of `lockkeeper serve` in chromium: it shows what `lockkeeper list --json` says, runs nothing that stands in keys and
owners, stays small and quick with 10,000 locks, is used with the keyboard and a screen reader, and breaks only the lock that was
seen. The page of CONSOLE_PROCESS shows what that process did. --few leaves out what asks much of the page and nothing new of the
threads behind it.
"""
import functools
import json
import os
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
CONSOLE_PROCESS = sys.argv.pop(1)
FEW = sys.argv[1:] == ["--few"] and sys.argv.pop(1)
PASSWORD = "correct horse battery staple"
TOKEN = "0123456789abcdef0123456789abcdef"
MORE = "document.querySelector('#more').open = true"
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
        password.chmod(0o600)
        self.log = pathlib.Path(folder.name) / "log"
        with open(self.log, "w") as log:
            _, self.url = self.start_serve("--store", self.store, "--break-password", password, stderr=log)

    def start_serve(self, *options, stderr=None):
        """The process and the address of its page."""
        serve = subprocess.Popen([LOCKKEEPER, "serve", "--listen", "127.0.0.1:0", "--interval", "100ms", *options],
                                 stdout=subprocess.PIPE, stderr=stderr, text=True)
        self.addCleanup(serve.stdout.close)
        self.addCleanup(self.end, serve)
        return serve, serve.stdout.readline().strip()

    @staticmethod
    def end(process):
        process.send_signal(signal.SIGTERM)
        process.wait(20)

    def listed(self):
        return [lock[:3] for lock in self.listed_with_waiters()]

    def listed_with_waiters(self):
        lines = subprocess.run([LOCKKEEPER, "list", "--json", "--store", self.store], capture_output=True, text=True, check=True)
        locks = [json.loads(line) for line in lines.stdout.splitlines()]
        return [[lock["key"], lock["owner"] or "-", str(lock["fence"] or "-"), str(lock["waiting"] or "-")] for lock in locks]

    def start_command(self, key, *options):
        command = subprocess.Popen([LOCKKEEPER, "run", "--store", self.store, *options, key, "--", "sleep", "600"])
        self.addCleanup(self.end, command)
        return command

    def wait_for_list(self, page):
        """In whatever order: the page puts first what is waited for, and what is held for longest."""
        wanted = self.listed()
        page.wait(f"JSON.stringify({SHOWN}.sort()) === JSON.stringify({json.dumps(wanted)}.sort())", f"the page shows {wanted}")
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

    def test_ends_soon_though_the_store_hangs(self):
        serve, url = self.start_serve("--store", f"{self.store}?ioTimeout=1m")
        with Page(url) as page:
            self.redis.hold("k", "host:1")
            self.wait_for_list(page)
            os.kill(self.redis.process.pid, signal.SIGSTOP)
            self.addCleanup(os.kill, self.redis.process.pid, signal.SIGCONT)
            time.sleep(0.3)  # so that a look has begun, which takes as long as the store hangs
            serve.send_signal(signal.SIGTERM)
            self.assertEqual(serve.wait(120), 128 + signal.SIGTERM)

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
                pids.append(str(self.start_command("export", "--wait", "1h").pid))
                page.wait(f"{waiting}.startsWith('{number}: ')", f"{number} wait")
            self.assertRegex(page.run(waiting), f"^2: .*:{pids[0]} for [0-9]+ s$")
            self.assertRegex(page.run("document.querySelector('#waits').textContent"), "^1 waited for, the longest for [0-9]+ s$")
            page.wait(f"document.querySelector('#dWaiting').textContent.includes(':{pids[1]} for ')", "they are named")
            lines = page.run("document.querySelector('#dWaiting').textContent").splitlines()
            self.assertEqual([line.split(" for ")[0].split(":")[-1] for line in lines], pids)
            self.redis.hold("another", "a:1")
            page.wait(f"{SHOWN}.length === 2", "two are held")
            self.assertEqual(json.loads(page.run(f"JSON.stringify({SHOWN})"))[0][0], "export", "what is waited for comes first")
            page.run("document.querySelector('th[data-sort=key] button').click()")
            self.assertEqual(json.loads(page.run(f"JSON.stringify({SHOWN})"))[0][0], "another")

    def test_ten_thousand_locks_are_few_rows(self):
        self.redis.send(*(("SET", f"stock:{i:05}", f"{TOKEN}@host:{i % 7}", "PX", "600000") for i in range(10000)))
        with Page(self.url) as page:
            page.wait("document.querySelector('#count').textContent === '10000 of 10000 locks'", "all locks are counted")
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

    @unittest.skipIf(FEW, "--few")
    def test_ten_thousand_locks_that_come_and_go_leave_the_page_at_ease(self):
        keys = [f"stock:{i:05}" for i in range(10000)]
        self.redis.send(*(("SET", key, f"{TOKEN}@host:1", "PX", "600000") for key in keys))
        for _ in range(3):  # two have it, and one waits
            self.start_command("export", "--permits", "2", "--wait", "1h")
        with Page(self.url) as page:
            page.wait("document.querySelector('#count').textContent === '10002 of 10002 locks'", "all locks are counted")
            page.wait("queues.get('export')?.count === 1", "one waits")
            page.run("new PerformanceObserver(list => list.getEntries().forEach(each => tasks.push(each.duration)))"
                     ".observe({type: 'longtask'}); window.tasks = []")
            longest = []
            while not longest or longest[-1] > 3000:  # the machine had more to do
                self.assertLess(len(longest), 10, f"a task takes so many milliseconds: {longest}")
                page.run("tasks = []")
                for part in range(2):
                    for i in range(2 * len(longest) + part, 2000, 20):
                        self.redis.send(("SET", keys[i], f"{TOKEN[::-1]}@host:{i}"), ("DEL", keys[i + 3000]),
                                        ("SET", f"new:{i}", f"{TOKEN}@host:{i}", "PX", "600000"))
                    self.wait_for_key(page, f"new:{i}")
                longest.append(max(json.loads(page.run("JSON.stringify(tasks)")), default=0))
            for key in ("last:1", "last:2"):  # the look that finds the second one has begun after all that
                self.redis.hold(key, "host:1")
                self.wait_for_key(page, key)
            page.wait("document.querySelector('#count').textContent === '10004 of 10004 locks'", "all are drawn")
            listed = self.listed_with_waiters()
            self.assertEqual(len(listed), 10004)
            self.assertEqual([lock[3] for lock in listed if lock[0] == "export"], ["1", "1"])
            self.assertEqual(sorted(self.all_rows(page)), sorted(listed))

    @staticmethod
    def wait_for_key(page, key):
        page.wait(f"[...locks.values()].some(lock => lock.key === {json.dumps(key)})", f"the page knows {key}")

    @staticmethod
    def all_rows(page):
        """What the table shows from its first row to its last one: key, owner, fence, and how many wait."""
        scroll = "document.querySelector('#scroll')"
        page.run(f"{scroll}.style.height = '40000px'")  # a thousand rows at a time
        rows = {}
        for top in range(0, page.run(f"{scroll}.scrollHeight"), page.run(f"{scroll}.clientHeight")):
            page.run(f"{scroll}.scrollTop = {top}; draw()")  # as when the page is told of the scrolling
            rows.update(json.loads(page.run(
                "JSON.stringify([...document.querySelectorAll('tr.lock')].map(r => [r.getAttribute('aria-rowindex'), "
                "['key', 'owner', 'fence', 'waiting'].map(name => r.querySelector('.' + name).textContent"
                ".replace(/^([0-9]+): .*/, '$1'))]))")))
        return list(rows.values())

    def test_is_used_with_the_keyboard_alone(self):
        self.redis.send(*(("SET", f"stock:{i:03}", f"{TOKEN}@host:1", "PX", "600000") for i in range(200)))
        focus = "document.activeElement.id || document.activeElement.textContent"
        with Page(self.url) as page:
            page.wait("document.querySelectorAll('tr.lock').length > 10", "the locks")
            page.press("Tab")
            self.assertEqual(page.run(focus), "filter")
            for key in "stock:1":
                page.press(key)
            page.wait("document.querySelector('#count').textContent === '100 of 200 locks'", "what was typed filters")
            way = []
            while not way or not way[-1].startswith("stock"):
                self.assertLess(len(way), 12, way)
                page.press("Tab")
                way.append(page.run(focus))
            self.assertEqual(way, ["scroll", "Key", "Owner", "Held for", "Waiting", "Remaining", "Fence", "stock:100"])
            page.press("Enter")
            page.wait("document.querySelector('#details').open", "the dialog")
            self.assertEqual(page.run("document.querySelector('#dKey').textContent"), "stock:100")
            self.assertTrue(page.run("document.querySelector('#details').contains(document.activeElement)"))
            page.press("Escape")
            page.wait("!document.querySelector('#details').open", "the dialog is closed")
            self.assertEqual(page.run(focus), "stock:100", "the focus is where it was")
            # It stays there, and scrolls, when the row is far out of sight.
            page.press("End")
            page.wait("document.querySelector('#rows').textContent.includes('stock:199')", "the end")
            self.assertEqual(page.run(focus), "stock:100")
            self.assertAlmostEqual(page.run("document.querySelector('#scroll').scrollHeight"), self.height(page, 100), delta=5)
            page.press("Enter")
            page.wait("document.querySelector('#details').open", "the dialog")
            self.assertEqual(page.run("document.querySelector('#dKey').textContent"), "stock:100")
            self.redis.send(("DEL", "stock:150"))
            page.wait("document.querySelector('#count').textContent === '99 of 199 locks'", "the table is drawn anew")
            page.press("Escape")
            page.wait("!document.querySelector('#details').open", "the dialog is closed")
            self.assertEqual(page.run(focus), "stock:100")
            page.press("Tab")
            self.assertEqual(page.run(focus), "Break …", "of the same lock")
            page.wait("document.querySelector('#rows').textContent.includes('stock:101')", "the browser has scrolled to it")
            page.press("Tab")
            self.assertEqual(page.run(focus), "stock:101")
            page.press("End")
            page.wait("!document.querySelector('#rows').textContent.includes('stock:100')", "it is not kept any longer")

    @staticmethod
    def height(page, rows):
        """Of that many rows, whatever part of them is in the table."""
        return page.run("(() => { const of = selector => document.querySelector(selector).getBoundingClientRect().height; "
                        f"return Math.round(of('thead') + {rows} * of('tr.lock')); }})()")

    def test_a_screen_reader_is_told_what_everything_is(self):
        self.redis.hold("order:1", "host:1")
        with Page(self.url) as page:
            self.wait_for_list(page)
            nodes = [node for node in page.ask("Accessibility.getFullAXTree")["nodes"] if not node["ignored"]]

            def named(role):
                return [node.get("name", {}).get("value", "") for node in nodes if node["role"]["value"] == role]
            self.assertIn("Locks that are held", named("region"))
            self.assertEqual(named("table")[0], "Locks")
            self.assertEqual(named("columnheader")[:6], ["Key", "Owner", "Held for", "Waiting", "Remaining", "Fence"])
            self.assertEqual(named("rowheader")[0], "order:1")
            self.assertIn("order:1", named("button"))
            self.assertEqual(named("searchbox"), ["Filter"])
            status, = (node for node in nodes if node["role"]["value"] == "status")
            self.assertIn({"name": "live", "value": {"type": "token", "value": "polite"}}, status["properties"])
            page.run("document.querySelector('tr.lock button').click()")
            page.wait("document.querySelector('#details').open", "the dialog")
            nodes = page.ask("Accessibility.getFullAXTree")["nodes"]
            self.assertEqual(named("dialog"), ["Lock"])

    def test_tells_what_became_of_each_key_in_the_store(self):
        last = "document.querySelector('#recent tbody')?.textContent ?? ''"
        with Page(self.url) as page:
            page.wait("document.querySelector('#health').textContent.startsWith('up')", "the first look")
            page.run(MORE)
            self.redis.hold("<b>k</b>", "<i>first</i>:1")
            page.wait(f"({last}).includes('store: granted to <i>first</i>:1')", "the grant")
            self.redis.hold("<b>k</b>", "second:2", TOKEN[::-1])
            page.wait(f"({last}).includes('store: granted to second:2')", "the next one")
            page.wait(f"{SHOWN}.some(row => row[1] === 'second:2')", "the grant in the table")
            page.run("document.querySelector('#recent tbody button').click()")
            page.wait("document.querySelectorAll('#dTimeline li').length === 3", "the timeline of the key")
            lines = [line.split(", ", 1)[1] for line in page.run(
                "[...document.querySelectorAll('#dTimeline li')].map(l => l.textContent).join('\\n')").splitlines()]
            self.assertEqual([lines[0], lines[2]], ["store: granted to second:2", "store: granted to <i>first</i>:1"])
            self.assertRegex(lines[1], "store: no longer held by <i>first</i>:1, after ")
            self.assertEqual(page.run("document.querySelector('#dOwner').textContent"), "second:2")
            self.redis.send(("DEL", "<b>k</b>"))
            page.wait("document.querySelectorAll('#dTimeline li').length === 4", "it goes on while one looks")
            # Nothing that this process knows only of itself: it is no more than a page.
            self.assertIn("only what it saw at the store", page.run("document.querySelector('#views').textContent"))
            for panel in ("limits", "tasks", "leaders", "hotLately"):
                self.assertTrue(page.run(f"document.querySelector('#{panel}').hidden"), panel)
            self.assertEqual(page.complaints(), [])

    def test_shows_at_once_what_was_lost(self):
        with Page(self.url) as page:
            page.wait("document.querySelector('#health').textContent.startsWith('up')", "the first look")
            self.redis.hold("done", "first:1")
            self.redis.send(("SET", "<b>stuck</b>", f"{TOKEN}@first:1", "PX", "5000"))
            page.wait(f"{SHOWN}.length === 2", "two are held")
            self.redis.send(("DEL", "done"))
            lost = "document.querySelector('#lost tbody').innerText"
            page.wait(f"{lost}.includes('store: not renewed by first:1: its lease ran out after ')", "the lease that ran out")
            self.assertNotIn("done", page.run(lost))
            self.assertEqual(page.run("document.querySelector('#losses').textContent"), "1 lost in the last 10 min")
            self.assertFalse(page.run("document.querySelector('#more').open"), "it is seen without a click")
            page.run("document.querySelector('#lost button').click()")
            self.assertEqual(page.run("document.querySelector('#dKey').textContent"), "<b>stuck</b>")
            self.assertEqual(page.complaints(), [])

    def test_shows_the_phases_of_a_migration_of_the_store(self):
        old = Redis()
        self.addCleanup(self.end, old.process)
        self.addCleanup(old.socket.close)
        config = self.log.with_name("shop.properties")
        config.write_text(f"lockkeeper.store = {self.store}\nlockkeeper.migration.name = shop\n"
                          f"lockkeeper.migration.from = redis://127.0.0.1:{old.port}\n")
        lockkeeper = functools.partial(subprocess.run, check=True, stdout=subprocess.DEVNULL)
        lockkeeper([LOCKKEEPER, "run", "--config", config, "k", "--", "true"])
        _, url = self.start_serve("--config", config)
        row = "[...document.querySelectorAll('#agreed tbody tr > *')].map(c => c.textContent)"
        with Page(url) as page:
            page.run(MORE)
            page.wait(f"({row})[1] === '* = both, on the way to * = legacy'", "the phases")
            self.assertRegex(page.run(f"({row}).join(' | ')"), r"^shop \| \* = both, on the way to \* = legacy \| [0-9]+ (ms|s|min).* ago$")
            self.assertIn("Store", page.run("document.querySelector('#agreed .view').textContent"))
            self.assertTrue(page.run("document.querySelector('#migrations').hidden"), "this process takes no part in it")
            lockkeeper([LOCKKEEPER, "migrate", "advance", "<b>* = modern", "--config", config])
            page.wait(f"({row})[1] === '* = both, on the way to <b>* = modern, * = legacy'", "the way")
            self.assertEqual(page.complaints(), [])
        with Page(self.url) as page:
            page.run(MORE)
            page.wait("document.querySelector('#views').textContent", "the first look")
            self.assertTrue(page.run("document.querySelector('#agreed').hidden"), "without a migration")

    def test_shows_what_its_own_process_did(self):
        process = subprocess.Popen([CONSOLE_PROCESS, self.store], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.wait, 20)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stdin.close)
        attack = "<img src=x onerror=window.hit=1>"

        def rows(panel):
            return json.loads(page.run(f"JSON.stringify([...document.querySelectorAll('#{panel} tbody tr')].map("
                                       "r => [...r.children].map(c => c.textContent)))"))
        with Page(process.stdout.readline().strip()) as page:
            page.wait("document.querySelector('#lost').textContent.includes('this process: lost after ')", "what was lost")
            self.assertEqual([row[0] for row in rows("lost") if "this process" in row[2]], ["brief"])
            page.run(MORE)
            page.wait("document.querySelectorAll('#leaders tbody tr').length === 1", "what the process did")
            hottest = next(row for row in rows("hotLately") if row[0] == "order:1")
            self.assertEqual((hottest[0], hottest[2], hottest[3]), ("order:1", "2", "1"))
            self.assertEqual(rows("limits")[0][:4], ["sms", "2", "1", "0"])
            task, = rows("tasks")
            self.assertEqual((task[0], task[2], task[4:]), (f"nightly{attack}", "done", ["1", "0", "0"]))
            self.assertRegex(task[3], "^in [0-9]+ (min|h|s)")
            self.assertRegex(rows("leaders")[0][1], "^leads for ")
            page.wait("document.querySelector('#stores').textContent.includes('Ready check: locksup')", "the next look")
            for panel in ("hotLately", "limits", "tasks", "leaders", "stores"):
                self.assertIn("This process", page.run(f"document.querySelector('#{panel} .view').textContent"))
            recent = {row[0]: row[2] for row in rows("recent")}
            self.assertRegex(recent["order:1"], "this process: released, held for ")
            self.assertRegex(recent["brief"], "this process: lost after .*")
            page.run(f"[...document.querySelectorAll('#recent button')].find(b => b.textContent === {json.dumps(attack)}).click()")
            page.wait("document.querySelectorAll('#dTimeline li').length === 2", "the timeline of a key that is free")
            self.assertRegex(page.run("document.querySelector('#dTimeline').textContent"),
                             "this process: released, held for .*this process: granted, fence [0-9]+, waited ")
            self.assertEqual(page.run("document.querySelector('#dRemaining').textContent"), "not held")
            page.run("document.querySelector('#close').click()")
            page.run("[...document.querySelectorAll('#recent button')].find(b => b.textContent === 'order:1').click()")
            page.wait("/not granted: busy for ([3-9]\\d\\d ms|[\\d.]+ s)/.test(document.querySelector('#dTimeline').textContent)",
                      "the wait")
            page.run("document.querySelector('#close').click()")
            # The keyboard: what has the focus keeps it while the page is drawn anew.
            page.run("[...document.querySelectorAll('#recent button')].at(-1).focus()")
            focused = page.run("document.activeElement.textContent")
            process.stdin.write("hold\n")
            process.stdin.flush()
            page.wait("document.querySelector('#recent tbody button')?.textContent === 'later'", "a newer key comes first")
            self.assertEqual(page.run("document.activeElement.textContent"), focused)
            self.assertIsNone(page.run("window.hit"))
            self.assertEqual(page.run("document.querySelectorAll('#panels img, dialog img').length"), 0)
            self.assertEqual(page.complaints(), [])
            # A phone, and the dark.
            light = page.run("getComputedStyle(document.body).backgroundColor")
            page.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
            self.assertNotEqual(page.run("getComputedStyle(document.body).backgroundColor"), light)
            page.ask("Emulation.setDeviceMetricsOverride", width=360, height=640, deviceScaleFactor=1, mobile=True)
            page.wait("document.documentElement.clientWidth === 360", "a small screen")
            self.assertLessEqual(page.run("document.documentElement.scrollWidth"), 360)

    def press_break(self, page, password):
        """What the page says, once it takes passwords again: a second after a wrong one."""
        end = time.monotonic() + 120
        while True:
            page.run(f"document.querySelector('#password').value = {json.dumps(password)}; "
                     "document.querySelector('#answer').textContent = ''; document.querySelector('#break').click()")
            page.wait("document.querySelector('#answer').textContent", "an answer")
            answer = page.run("document.querySelector('#answer').textContent")
            if "a moment ago" not in answer or time.monotonic() > end:
                return answer

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
            page.wait("document.querySelector('#dRemaining').textContent === 'not held like this any more'", "the page has seen it, too")
            page.run("document.querySelector('#close').click(); document.querySelector('tr.lock .act button').click()")
            self.assertIn("was taken", self.press_break(page, PASSWORD))
            self.assertIsNone(self.redis.get("k"))
            self.assertEqual(self.wait_for_list(page), [])
            page.wait("document.querySelector('#lost').textContent.includes('store: taken by an operator from first:1')", "it was lost")
        log = self.log.read_text()
        orders = [line for line in log.splitlines() if "asks to break" in line and "a moment ago" not in line]
        self.assertEqual(len(orders), 4, log)
        self.assertNotIn(PASSWORD, log)
        self.assertNotIn(TOKEN, log)


if __name__ == "__main__":
    unittest.main()
