"""A page of chromium, driven over the DevTools protocol on two pipes. Nothing but Python's own library is needed."""
import json
import os
import select
import signal
import subprocess
import tempfile
import time


class Page:
    KEYS = {"Tab": (9, ""), "Enter": (13, "\r"), "Escape": (27, ""), "PageDown": (34, ""), "End": (35, "")}

    def __init__(self, url, size=(1000, 800)):
        self.home = tempfile.TemporaryDirectory(prefix="lockkeeper_browser_", ignore_cleanup_errors=True)
        to_us, from_browser = os.pipe()
        to_browser, from_us = os.pipe()

        def as_chromium_wants():  # it reads from 3 and writes to 4
            high = [os.dup2(to_browser, 60), os.dup2(from_browser, 61)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-extensions", "--remote-debugging-pipe",
             f"--window-size={size[0]},{size[1]}", f"--user-data-dir={self.home.name}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False,
            preexec_fn=as_chromium_wants, start_new_session=True)
        os.close(to_browser)
        os.close(from_browser)
        self.input, self.output = from_us, to_us
        self.rest, self.number, self.session, self.events = b"", 0, None, []
        target = next(t for t in self.ask("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")
        self.ask("Page.navigate", url=url)
        self.wait(f"location.href === {json.dumps(url)} && document.readyState === 'complete'", "the page")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.killpg(self.process.pid, signal.SIGKILL)  # the session that was started here
        self.process.wait()
        os.close(self.input)
        os.close(self.output)
        self.home.cleanup()

    def read(self, deadline):
        while b"\0" not in self.rest:
            if not select.select([self.output], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError("chromium does not answer")
            part = os.read(self.output, 1 << 20)
            if not part:
                raise EOFError("chromium has ended")
            self.rest += part
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def ask(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.input, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + 120
        while True:
            answer = self.read(deadline)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def run(self, script):
        """The value of an expression in the page, awaited if it is a promise."""
        result = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{script}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait(self, script, what, bound=120):
        """Waits until an expression is true."""
        end = time.monotonic() + bound
        while not self.run(script):
            if time.monotonic() > end:
                raise AssertionError(f"{what}: not after {bound} s; the page: {str(self.run('document.body?.innerText'))[:2000]}")
            time.sleep(0.05)

    def press(self, key):
        """A key of the keyboard, wherever the focus is."""
        number, text = self.KEYS.get(key, (ord(key[0].upper()), key))
        parameters = {"key": key, "code": key if key in self.KEYS else "", "windowsVirtualKeyCode": number}
        self.ask("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **parameters)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **parameters)

    def complaints(self):
        """What the page threw or the browser refused it, such as for its Content-Security-Policy."""
        self.run("1")
        return [event["params"] for event in self.events
                if event["method"] == "Runtime.exceptionThrown"
                or (event["method"] == "Log.entryAdded" and event["params"]["entry"]["source"] in ("security", "violation"))]
