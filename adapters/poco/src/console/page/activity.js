
// The last minutes: of the store, as the looks of this page saw it, and of the process that serves the page.
const shownMinutes = 10;
const place = "Store", own = "This process";
let parts = {parts: []};
let look = null;  // the last answer

const span = ms => ms < 1000 ? `${ms} ms` : ms < 10000 ? `${(ms / 1000).toFixed(1)} s` : length(ms);
const ago = at => at === null ? "-" : `${length(now() - at)} ago`;
const isRecent = ({at}) => now() - at < shownMinutes * 60000;
const told = (event, suffix) => event.detail ? `${suffix}: ${visible(event.detail)}` : suffix;
const withFence = event => event.fence ? `, fence ${event.fence}` : "";
const who = event => visible(event.detail ?? "an unknown client") + withFence(event);
const storeWords = {
  granted: event => `granted to ${who(event)}`,
  gone: event => `no longer held by ${who(event)}, after ${span(event.took)}`,
  expired: event => `not renewed by ${who(event)}: its lease ran out after ${span(event.took)}`,
  broken: event => `taken by an operator from ${who(event)}, after ${span(event.took)}`,
};
const ownWords = {
  granted: event => `granted${withFence(event)}, waited ${span(event.took)}`,
  released: event => `released, held for ${span(event.took)}`,
  lost: event => told(event, `lost after ${span(event.took)}`),
  busy: event => `not granted: busy for ${span(event.took)}`,
  "gave up": event => told(event, `gave up after ${span(event.took)}`),
  "not renewed": event => told(event, "a renewal failed"),
};
const read = ([at, before, what, detail, fence, took], view) => ({at, before, what, detail, fence, took, view});
const sentence = event => `${event.view.toLowerCase()}: ` + (event.view === place ? storeWords : ownWords)[event.what](event) +
  (event.before ? ", or earlier" : "");

// A table whose rows are known by their names, which stand in front. What has the focus keeps it. With `keys`, the first cell
// is a key, which opens its dialog. It is not shown while it has no rows.
function panel(id, title, view, columns, keys = false, parent = "panels") {
  const make = (kind, values = {}) => Object.assign(document.createElement(kind), values);
  const section = make("section", {id, className: "panel", hidden: true}), table = make("table");
  section.setAttribute("aria-labelledby", `${id}Title`);
  section.append(make("h2", {id: `${id}Title`, textContent: title}), make("p", {className: "view", textContent: view}), table);
  table.createTHead().insertRow().append(...columns.map(textContent => make("th", {scope: "col", textContent})));
  const body = table.createTBody(), known = new Map();
  $(parent).append(section);
  return rows => {
    section.hidden = rows.length === 0;
    const focused = document.activeElement, names = new Set(rows.map(([name]) => name));
    for (const [name, row] of known) if (!names.has(name)) { row.remove(); known.delete(name); }
    rows.forEach(([name, first, ...cells], index) => {
      let row = known.get(name);
      if (!row) {
        known.set(name, row = make("tr"));
        row.append(make("th", {scope: "row"}), ...cells.map(() => make("td")));
        row.firstChild.append(keys ? button(visible(first), () => openKey(first)) : visible(first));
      }
      if (body.children[index] !== row) body.insertBefore(row, body.children[index] ?? null);
      cells.forEach((value, i) => say(row.children[i + 1], value));
    });
    if (focused !== document.activeElement && focused.isConnected) focused.focus({preventScroll: true});
  };
}
// Whoever holds it; a key that is free has a number that no grant has.
function openKey(key) {
  open([...locks.values()].find(lock => lock.key === key) ?? {id: 0, key, owner: null, fence: null});
}

const lately = `${own}: the last 5 to 10 minutes`, sinceStart = `${own}: since it started`;
const panels = {
  lost: panel("lost", "Lost", `${place} and this process: the last ${shownMinutes} minutes`, ["Key", "When", "How"], true, "first"),
  recent: panel("recent", "Keys that changed", `${place} and this process: the last ${shownMinutes} minutes`, ["Key", "When", "Last"], true),
  hotLately: panel("hotLately", "Hottest keys", lately, ["Key", "Waited", "Calls", "In vain"], true),
  limits: panel("limits", "Rate limits", lately, ["Limit", "Refused", "Allowed", "Without the store", "Last refusal"]),
  tasks: panel("tasks", "Tasks", sinceStart, ["Task", "Last run", "Outcome", "Next", "Runs", "Skipped", "Missed"]),
  leaders: panel("leaders", "Elections", sinceStart, ["Election", "This process", "Terms"]),
  agreed: panel("agreed", "Migration of the store", `${place}: the rules that all its processes have agreed on`, ["Migration", "Phases", "Since"]),
  migrations: panel("migrations", "Migrations", `${own}: the rules that it follows`, ["Migration", "Phases", "Since"]),
  stores: panel("stores", "Stores", `${own}: as it reaches them`, ["Store", "State"]),
};
const named = ([name, ...cells]) => [name, name, ...cells];

const stateOf = ([, up, since, failures, text]) =>
  (up ? "up" : `failed ${ago(since)}: ${visible(text ?? "-")}`) + (failures ? ` (${failures} failures in the last 5 to 10 min)` : "");

function drawLosses(process) {
  const of = (losses, view) => losses.map(([key, entry]) => ({key, ...read(entry, view)}));
  const losses = [...of(look.store.lost, place), ...of(process.lost, own)].filter(isRecent).sort((a, b) => b.at - a.at);
  say($("losses"), losses.length ? `${losses.length} lost in the last ${shownMinutes} min` : "");
  $("noLosses").hidden = losses.length > 0;
  panels.lost(losses.map(event =>
    [JSON.stringify([event.view, event.at, event.key, event.detail, event.fence]), event.key, `${ago(event.at)}, at ${clock(event.at)}`, sentence(event)]));
}

function recentRows(process) {
  const last = new Map();  // by key
  for (const [view, keys] of [[place, look.store.latest], [own, process.latest]]) {
    for (const [key, entries] of keys) {
      const event = read(entries.at(-1), view);
      if (!(last.get(key)?.at > event.at)) last.set(key, event);
    }
  }
  return [...last].filter(([, event]) => isRecent(event)).sort(([, a], [, b]) => b.at - a.at).slice(0, 12)
    .map(([key, event]) => [key, key, ago(event.at), sentence(event)]);
}

function drawTimeline(process) {
  const events = [...look.store.timeline.map(each => read(each, place)), ...process.timeline.map(each => read(each, own))];
  const lines = events.reverse().sort((a, b) => b.at - a.at).map(event => `${ago(event.at)}, ${sentence(event)}`);
  const list = $("dTimeline");
  while (list.children.length > lines.length) list.lastChild.remove();
  lines.forEach((line, i) => say(list.children[i] ?? list.appendChild(document.createElement("li")), line));
  $("dNothing").hidden = lines.length > 0;
}

function drawMore(process) {
  say($("views"), "“Store” is what this page saw of all processes whenever it looked. " + (look.process
    ? "“This process” is what the process that serves the page did itself: others have pages of their own."
    : "The process that serves this page shows only what it saw at the store."));
  panels.recent(recentRows(process));
  panels.hotLately(process.hottest.map(([key, ms, calls, unserved]) => [key, key, span(ms), String(calls), String(unserved)]));
  panels.limits(process.limits.sort((a, b) => b[2] - a[2]).map(([name, allowed, refused, outage, last]) =>
    [name, name, String(refused), String(allowed), String(outage), ago(last)]));
  panels.tasks(process.tasks.map(([name, last, outcome, text, next, runs, skips, missed]) =>
    [name, name, ago(last), outcome === null ? "-" : visible(text ? `${outcome}: ${text}` : outcome),
      next === null ? "-" : next > now() ? `in ${length(next - now())}` : "now", String(runs), String(skips), String(missed)]));
  panels.leaders(process.elections.map(([name, leads, since, terms]) =>
    [name, name, leads ? `leads for ${length(now() - since)}` : `has not led for ${length(now() - since)}`, String(terms)]));
  const phases = ([name, rules, since]) => [name, name, visible(rules), ago(since)];
  panels.agreed(look.store.migrations.map(phases));
  panels.migrations(process.migrations.map(phases));
  panels.stores([["What this page looks at", $("health").textContent],
    ...parts.parts.map(([name, up]) => [`Ready check: ${name}`, up ? "up" : "down"]),
    ...(parts.suspectLocks ? [["Ready check: locks that are not renewed in time", String(parts.suspectLocks)]] : []),
    ...process.stores.map(each => [each[0], stateOf(each)])].map(named));
}

async function lookAtActivity() {
  const key = opened?.key;
  try {
    look = await wanted("activity" + (opened ? `?key=${encodeURIComponent(key)}` : ""), 15000);
    const process = look.process ??
      {latest: [], timeline: [], lost: [], hottest: [], limits: [], tasks: [], elections: [], migrations: [], stores: []};
    drawLosses(process);
    if ($("more").open) drawMore(process);
    if (opened?.key === key && opened) drawTimeline(process);
  } catch {
    noAnswer();
  }
}
async function lookAtHealth() {
  if (!$("more").open) return;
  try {
    parts = await wanted("health", 15000);
  } catch {
    parts = {parts: [["the server", 0]]};
    noAnswer();
  }
}
$("more").addEventListener("toggle", lookAtHealth);
$("more").addEventListener("toggle", lookAtActivity);

watch(lookAtHealth, 5000);
watch(lookAtActivity, 2000);
