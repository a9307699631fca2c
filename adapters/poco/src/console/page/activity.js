
// The last minutes: of the store, as the looks of this page saw it, and of the process that serves the page.
const shownMinutes = 10;
const place = "Store", own = "This process";
let parts = {parts: []};
let look = null;  // the last answer

const span = ms => ms < 1000 ? `${ms} ms` : ms < 10000 ? `${(ms / 1000).toFixed(1)} s` : length(ms);
const ago = at => at === null ? "-" : `${length(now() - at)} ago`;
const told = (event, suffix) => event.detail ? `${suffix}: ${visible(event.detail)}` : suffix;
const withFence = event => event.fence ? `, fence ${event.fence}` : "";
const storeWords = {
  granted: event => `granted to ${visible(event.detail ?? "an unknown client")}${withFence(event)}`,
  gone: event => `no longer held by ${visible(event.detail ?? "an unknown client")}${withFence(event)}, after ${span(event.took)}`,
};
const ownWords = {
  granted: event => `granted${withFence(event)}, waited ${span(event.took)}`,
  released: event => `released, held for ${span(event.took)}`,
  lost: event => told(event, `lost after ${span(event.took)}`),
  busy: event => `not granted: busy for ${span(event.took)}`,
  "gave up": event => told(event, `gave up after ${span(event.took)}`),
  "not renewed": event => told(event, "a renewal failed"),
};
const read = (entries, view) => entries.map(([at, before, what, detail, fence, took]) => ({at, before, what, detail, fence, took, view}));
const sentence = event => (event.view === place ? storeWords : ownWords)[event.what](event) +
  (event.before ? ", or earlier" : "");

// Bars for the times at which the key was held, and for those at which somebody waited in vain.
function lane(key, events) {
  const bars = [];
  let begin = null;
  for (const event of events) {
    if (event.what === "granted") begin = event.at;
    else if (event.what === "busy" || event.what === "gave up") bars.push([event.at - event.took, event.at, "waited"]);
    else if (event.took !== null) {
      bars.push([event.at - event.took, event.at, event.what === "lost" ? "lost" : ""]);
      begin = null;
    }
  }
  if (begin === null && events[0]?.view === place) begin = [...locks.values()].find(lock => lock.key === key)?.since ?? null;
  if (begin !== null) bars.push([begin, now(), ""]);
  const made = document.createElement("div");
  made.className = "lane";
  const from = now() - shownMinutes * 60000;
  for (const [first, last, kind] of bars) {
    if (last < from) continue;
    const bar = document.createElement("span");
    bar.className = kind;
    bar.style.left = `${Math.max(0, (first - from) / (shownMinutes * 600))}%`;
    bar.style.width = `${(last - Math.max(first, from)) / (shownMinutes * 600)}%`;
    made.append(bar);
  }
  return made;
}
function lanesOf(key, seen, mine) {
  const both = document.createElement("div");
  both.setAttribute("aria-hidden", "true");
  if (seen.length) both.append(lane(key, seen));
  if (mine.length) both.append(lane(key, mine));
  return both;
}

function keyButton(key) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = visible(key);
  button.addEventListener("click", () => openKey(key));
  return button;
}

// A table whose rows are known by their first value. It is not shown while it has none.
function panel(id, title, view, columns) {
  const section = document.createElement("section");
  section.id = id;
  section.hidden = true;
  section.setAttribute("aria-labelledby", `${id}Title`);
  const heading = document.createElement("h3");
  heading.id = `${id}Title`;
  heading.textContent = title;
  const whose = document.createElement("p");
  whose.className = "view";
  whose.textContent = view;
  const table = document.createElement("table");
  const head = table.createTHead().insertRow();
  for (const column of columns) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = column;
    head.append(cell);
  }
  const body = table.createTBody();
  section.append(heading, whose, table);
  $("panels").append(section);
  const known = new Map();
  return rows => {
    section.hidden = rows.length === 0;
    const focused = document.activeElement;
    for (const [name, row] of known) if (!rows.some(([each]) => each === name)) { row.remove(); known.delete(name); }
    rows.forEach(([name, ...cells], index) => {
      let row = known.get(name);
      if (!row) {
        known.set(name, row = document.createElement("tr"));
        const first = document.createElement("th");
        first.scope = "row";
        first.append(typeof name === "string" ? visible(name) : name);
        row.append(first, ...cells.map(() => document.createElement("td")));
      }
      if (body.children[index] !== row) body.insertBefore(row, body.children[index] ?? null);
      cells.forEach((value, i) => {
        const cell = row.children[i + 1];
        if (value instanceof Node) cell.replaceChildren(value);
        else if (cell.textContent !== value) cell.textContent = value;
      });
    });
    if (focused !== document.activeElement && focused.isConnected) focused.focus({preventScroll: true});
  };
}
// The same for rows that begin with a key, each of which opens its dialog.
function keyPanel(id, title, view, columns) {
  const buttons = new Map();
  const fill = panel(id, title, view, columns);
  return rows => {
    for (const key of buttons.keys()) if (!rows.some(([each]) => each === key)) buttons.delete(key);
    fill(rows.map(([key, ...cells]) => {
      if (!buttons.has(key)) buttons.set(key, keyButton(key));
      return [buttons.get(key), ...cells];
    }));
  };
}

const panels = {
  recent: keyPanel("recent", "Keys that changed", `${place} and this process: the last ${shownMinutes} minutes`, ["Key", "Timeline", "Last"]),
  hotNow: keyPanel("hotNow", "Hottest keys now", `${place}: all who wait in its queues, of all processes`, ["Key", "Waiting", "Together"]),
  hotLately: keyPanel("hotLately", "Hottest keys lately", `${own}: the last 5 to 10 minutes`, ["Key", "Waited", "Calls", "In vain"]),
  limits: panel("limits", "Rate limits", `${own}: the last 5 to 10 minutes`, ["Limit", "Refused", "Allowed", "Without the store", "Last refusal"]),
  tasks: panel("tasks", "Tasks", `${own}: since it started`, ["Task", "Last run", "Outcome", "Next", "Runs", "Skipped", "Missed"]),
  leaders: panel("leaders", "Elections", `${own}: since it started`, ["Election", "This process", "Terms"]),
  agreed: panel("agreed", "Migration of the store", `${place}: the rules that all its processes have agreed on`, ["Migration", "Phases", "Since"]),
  migrations: panel("migrations", "Migrations", `${own}: the rules that it follows`, ["Migration", "Phases", "Since"]),
  stores: panel("stores", "Stores", `${own}: as it reaches them`, ["Store", "State"]),
};

const stateOf = ([, up, since, failures, text]) =>
  (up ? "up" : `failed ${ago(since)}: ${visible(text ?? "-")}`) + (failures ? ` (${failures} failures in the last 5 to 10 min)` : "");

function recentRows(seen, mine) {
  const keys = new Map();
  for (const [key, entries] of seen) keys.set(key, {seen: read(entries, place), mine: []});
  for (const [key, entries] of mine) {
    if (!keys.has(key)) keys.set(key, {seen: [], mine: []});
    keys.get(key).mine = read(entries, own);
  }
  return [...keys].map(([key, {seen, mine}]) => {
    const last = [...seen, ...mine].reduce((a, b) => a.at > b.at ? a : b);
    return {key, seen, mine, last};
  }).filter(each => now() - each.last.at < shownMinutes * 60000).sort((a, b) => b.last.at - a.last.at).slice(0, 12)
    .map(({key, seen, mine, last}) => [key, lanesOf(key, seen, mine), `${ago(last.at)}, ${last.view.toLowerCase()}: ${sentence(last)}`]);
}

function hotNow() {
  return [...queues].map(([key, queue]) => [key, String(queue.count), queue.count * (now() - queue.mean)])
    .sort((a, b) => b[2] - a[2]).slice(0, 12).map(([key, count, sum]) => [key, count, length(sum)]);
}

function drawTimeline() {
  const seen = read(look.store.timeline, place), mine = read(look.process?.timeline ?? [], own);
  $("dLanes").replaceChildren(lanesOf(opened.key, seen, mine));
  const lines = [...seen, ...mine].reverse().sort((a, b) => b.at - a.at).map(event => `${ago(event.at)}, ${event.view.toLowerCase()}: ${sentence(event)}`);
  const list = $("dTimeline");
  while (list.children.length > lines.length) list.lastChild.remove();
  lines.forEach((line, i) => {
    const item = list.children[i] ?? list.appendChild(document.createElement("li"));
    if (item.textContent !== line) item.textContent = line;
  });
  $("dNothing").hidden = lines.length > 0;
}

function drawActivity() {
  const views = "“Store” is what this page saw of all processes whenever it looked. " + (look.process
    ? "“This process” is what the process that serves the page did itself: others have pages of their own."
    : "The process that serves this page shows only what it saw at the store.");
  if ($("views").textContent !== views) $("views").textContent = views;
  const process = look.process ?? {latest: [], hottest: [], limits: [], tasks: [], elections: [], migrations: [], stores: []};
  panels.recent(recentRows(look.store.latest, process.latest));
  panels.hotNow(hotNow());
  panels.hotLately(process.hottest.map(([key, ms, calls, unserved]) => [key, span(ms), String(calls), String(unserved)]));
  panels.limits(process.limits.sort((a, b) => b[2] - a[2]).map(([name, allowed, refused, outage, last]) =>
    [name, String(refused), String(allowed), String(outage), ago(last)]));
  panels.tasks(process.tasks.map(([name, last, outcome, text, next, runs, skips, missed]) =>
    [name, ago(last), outcome === null ? "-" : visible(text ? `${outcome}: ${text}` : outcome),
      next === null ? "-" : next > now() ? `in ${length(next - now())}` : "now", String(runs), String(skips), String(missed)]));
  panels.leaders(process.elections.map(([name, leads, since, terms]) =>
    [name, leads ? `leads for ${length(now() - since)}` : `has not led for ${length(now() - since)}`, String(terms)]));
  const phases = ([name, rules, since]) => [name, visible(rules), ago(since)];
  panels.agreed(look.store.migrations.map(phases));
  panels.migrations(process.migrations.map(phases));
  panels.stores([["What this page looks at", $("health").textContent],
    ...parts.parts.map(([name, up]) => [`Ready check: ${name}`, up ? "up" : "down"]),
    ...(parts.suspectLocks ? [["Ready check: locks that are not renewed in time", String(parts.suspectLocks)]] : []),
    ...process.stores.map(each => [each[0], stateOf(each)])]);
  if (opened) drawTimeline();
}

async function lookAtActivity() {
  const key = opened?.key;
  try {
    look = await wanted("activity" + (opened ? `?key=${encodeURIComponent(key)}` : ""), 15000);
    $("views").className = "";
    if (opened?.key === key) drawActivity();
  } catch {
    $("views").className = "bad";
    noAnswer();
  }
}
async function lookAtHealth() {
  try {
    parts = await wanted("health", 15000);
  } catch {
    parts = {parts: [["the server", 0]]};
    noAnswer();
  }
}

watch(lookAtHealth, 5000).then(() => watch(lookAtActivity, 2000));
