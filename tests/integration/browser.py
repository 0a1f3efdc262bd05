"""A headless Chromium, spoken to over a pipe: what a page shows at a given width, where, and what it
asked the network for."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

# Debian's wrapper only adds options of the desktop's; the program beside it is the same.
PROGRAMS = ("/usr/bin/chromium", "/usr/bin/chromium-browser")
DEADLINE = 30  # seconds for one answer

# What is on the page: every line of text with its box, size and colours (red, green, blue, alpha),
# and every chart with the boxes of its curves.
LOOK = """
(() => {
  const box = (b) => ({left: b.left, right: b.right, top: b.top + scrollY, bottom: b.bottom + scrollY});
  const numbers = (color) => (color.match(/[0-9.]+/g) || []).map(Number);
  const ground = (element) => {
    for (; element; element = element.parentElement) {
      const color = numbers(getComputedStyle(element).backgroundColor);
      if (color.length === 3 || color[3] > 0) return color;
    }
    return [255, 255, 255];
  };
  const texts = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    const text = node.textContent.trim();
    if (!text || !node.parentElement.checkVisibility()) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const style = getComputedStyle(node.parentElement);
    for (const line of range.getClientRects()) {
      if (line.width === 0) continue;
      texts.push({text, ...box(line), size: parseFloat(style.fontSize),
                  color: numbers(style.color), ground: ground(node.parentElement)});
    }
  }
  const shapes = (element, what) => [...element.querySelectorAll(what)].map(
      (shape) => ({name: shape.getAttribute('class'), ...box(shape.getBoundingClientRect())}));
  const charts = [...document.querySelectorAll('.plot svg')].map((svg) => ({
      id: svg.closest('section').id, ...box(svg.getBoundingClientRect()),
      lines: shapes(svg, 'polyline'), areas: shapes(svg, 'polygon'), marks: shapes(svg, '.mark'), dots: shapes(svg, '.dots')}));
  const bars = [...document.querySelectorAll('.bar svg')].filter((svg) => svg.checkVisibility()).map(
      (svg) => ({row: svg.closest('tr').firstElementChild.textContent,
                 ...box(svg.getBoundingClientRect()), parts: shapes(svg, 'rect'),
                 goal: shapes(svg, '.goal')}));
  return {texts, charts, bars, width: innerWidth, visible: document.body.innerText,
          scrollWidth: document.documentElement.scrollWidth, title: document.title};
})()
"""


def program():
    return next((path for path in PROGRAMS if os.access(path, os.X_OK)), None)


class Browser:
    """One browser process with one tab, ended and cleaned up on exit."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="sluice-browser-")
        down, to_browser = os.pipe()
        from_browser, up = os.pipe()

        def pipes():  # it reads from 3 and writes to 4; neither end may lie there already
            reading, writing = os.dup(down), os.dup(up)
            while reading < 5:
                reading = os.dup(reading)
            while writing < 5:
                writing = os.dup(writing)
            os.dup2(reading, 3)
            os.dup2(writing, 4)

        self.log = open(os.path.join(self.folder, "log"), "wb")
        self.process = subprocess.Popen(
            [program(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--remote-debugging-pipe", f"--user-data-dir={self.folder}/profile", "--no-first-run",
             "--hide-scrollbars", "--disable-extensions", "--disable-background-networking",
             "--host-resolver-rules=MAP * ~NOTFOUND", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, close_fds=False,
            preexec_fn=pipes, start_new_session=True,
            env={**os.environ, "HOME": self.folder, "LC_ALL": "C.UTF-8"})
        os.close(down)
        os.close(up)
        self.to, self.of = to_browser, from_browser
        self.buffer, self.number, self.events = b"", 0, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = None
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(domain + ".enable")
        return self

    session = None

    def __exit__(self, *_):
        os.close(self.to)  # which ends it
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.of)
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        text = json.dumps(message).encode() + b"\0"
        while text:
            text = text[os.write(self.to, text):]
        answer = self._until(lambda m: m.get("id") == self.number, method)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def _until(self, wanted, what):
        deadline = time.monotonic() + DEADLINE
        while True:
            for at, message in enumerate(self.events):
                if wanted(message):
                    return self.events.pop(at)
            self.events += self._messages(deadline - time.monotonic(), what)

    def _messages(self, seconds, what):
        ready, _, _ = select.select([self.of], [], [], max(0, seconds))
        got = os.read(self.of, 1 << 20) if ready else b""
        if not got:
            with open(self.log.name, "rb") as log:
                said = log.read().decode(errors="replace")[-2000:]
            raise RuntimeError(f"the browser did not answer {what}:\n{said}")
        *whole, self.buffer = (self.buffer + got).split(b"\0")
        return [json.loads(text) for text in whole]

    def show(self, path, width, dark=False):
        """Loads the page at this width (CSS pixels) and returns what LOOK sees, and `requests`."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900,
                  deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.events = []
        went = self.call("Page.navigate", url="file://" + os.path.abspath(path))
        if "errorText" in went:
            raise RuntimeError(f"{path}: {went['errorText']}")
        self.events.append(self._until(lambda m: m.get("method") == "Page.loadEventFired", "load"))
        seen = self.run(LOOK)
        seen["requests"] = [m["params"]["request"]["url"] for m in self.events
                            if m.get("method") == "Network.requestWillBeSent"]
        seen["complaints"] = [m["params"] for m in self.events if m.get("method") in
                              ("Log.entryAdded", "Runtime.exceptionThrown")]
        return seen

    def run(self, expression):
        got = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in got:
            raise RuntimeError(str(got["exceptionDetails"])[:500])
        return got["result"].get("value")

    def picture(self, path):
        """The whole page as PNG."""
        size = self.run("[innerWidth, document.documentElement.scrollHeight]")
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                         clip={"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1})
        with open(path, "wb") as out:
            out.write(base64.b64decode(shot["data"]))
