"use strict";
const $ = id => document.getElementById(id);
const meta = name => document.querySelector(`meta[name=${name}]`).content;
const breaking = meta("breaking") === "yes";
const locks = new Map();   // by the number of the grant
const queues = new Map();  // who waits, by key: {count, first: [{owner, since, share}]}
const drawn = new Map();   // the same for rows of the table that are there
let view = [];             // what the filter leaves, in order
let sort = "waiting", down = false;
let offset = 0;            // the server's clock less ours, in milliseconds
let rowHeight = 40;
let opened = null;         // the lock in the dialog

// Characters that are not seen, or turn others around, are shown by their number.
const visible = text => text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}]/gu, c => `\\u{${c.codePointAt(0).toString(16)}}`);
const now = () => performance.now() + offset;
const two = (large, a, small, b) => `${large} ${a}` + (small ? ` ${small} ${b}` : "");
function length(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return two(Math.floor(s / 60), "min", s % 60, "s");
  if (s < 86400) return two(Math.floor(s / 3600), "h", Math.floor(s % 3600 / 60), "min");
  return two(Math.floor(s / 86400), "d", Math.floor(s % 86400 / 3600), "h");
}
const clock = at => new Date(Date.now() - (now() - at)).toLocaleTimeString();
const ageOf = lock => lock.id === 0 ? "-" : (lock.before ? "> " : "") + length(now() - lock.since);
const endOf = lock => lock.end > 0 ? lock.end : Infinity;
const remainingOf = lock => lock.end > 0 ? length(lock.end - now()) : lock.end < 0 ? "for ever" : "unknown";
const ownerOf = lock => lock.owner === null ? "-" : visible(lock.owner);
const shareOf = lock => lock.share ?? "all of it";
const fenceOf = lock => lock.fence ?? "-";
const countOf = lock => queues.get(lock.key)?.count ?? 0;
const firstOf = lock => queues.get(lock.key)?.first[0];
const waitingOf = lock => countOf(lock) ? `${countOf(lock)}: ${ownerOf(firstOf(lock))} for ${length(now() - firstOf(lock).since)}` : "-";
function waitersOf(lock) {
  const queue = queues.get(lock.key);
  if (!queue) return "nobody";
  const lines = queue.first.map(each => `${visible(each.owner ?? "-")} for ${length(now() - each.since)}` +
    (each.share ? `, ${each.share}` : ""));
  if (queue.count > lines.length) lines.push(`and ${queue.count - lines.length} more`);
  return lines.join("\n");
}

const text = (a, b) => a < b ? -1 : a > b ? 1 : 0;
const orders = {
  key: (a, b) => text(a.key, b.key),
  owner: (a, b) => text(a.owner ?? "", b.owner ?? ""),
  age: (a, b) => a.since - b.since,
  remaining: (a, b) => text(endOf(a), endOf(b)),
  waiting: (a, b) => text(firstOf(a)?.since ?? Infinity, firstOf(b)?.since ?? Infinity) || a.since - b.since,
  fence: (a, b) => (a.fence ?? "").length - (b.fence ?? "").length || text(a.fence ?? "", b.fence ?? ""),
};

function arrange() {
  const wanted = $("filter").value.toLowerCase();
  const sign = down ? -1 : 1, order = orders[sort];
  view = [...locks.values()].filter(lock => !wanted || lock.search.includes(wanted));
  view.sort((a, b) => sign * order(a, b) || text(a.key, b.key) || a.id - b.id);
  say($("count"), `${view.length} of ${locks.size} locks`);
  $("table").setAttribute("aria-rowcount", view.length + 1);
  draw();
}

function cell(row, kind, name) {
  const made = document.createElement(kind);
  made.className = name;
  row.append(made);
  return made;
}
function button(text, act) {
  const made = Object.assign(document.createElement("button"), {type: "button", textContent: text});
  made.addEventListener("click", act);
  return made;
}
function newRow(lock) {
  const row = document.createElement("tr");
  row.className = "lock";
  const key = cell(row, "th", "key");
  key.scope = "row";
  key.append(button(visible(lock.key), () => open(lock)));
  cell(row, "td", "owner").textContent = ownerOf(lock);
  for (const name of ["age", "waiting", "remaining", "fence"]) cell(row, "td", name);
  if (breaking) cell(row, "td", "act").append(button("Break …", () => open(lock)));
  return row;
}
function say(element, text) { if (element.textContent !== text) element.textContent = text; }
function tell(row, lock) {
  [ageOf, waitingOf, remainingOf, fenceOf].forEach((of, i) => say(row.children[i + 2], of(lock)));
}
function space() {
  const row = document.createElement("tr");
  row.className = "space";
  row.setAttribute("aria-hidden", "true");
  row.append(document.createElement("td"));
  row.firstChild.colSpan = breaking ? 7 : 6;
  return row;
}
const above = space(), below = space();
$("rows").append(above, below);

// Only what can be seen is in the table, and the row that has the focus, or gets it back from the dialog.
function draw() {
  const first = Math.max(0, Math.floor($("scroll").scrollTop / rowHeight) - 5);
  const last = Math.min(view.length, first + Math.ceil($("scroll").clientHeight / rowHeight) + 10);
  const wanted = view.slice(first, last);
  const ids = new Set(wanted.map(lock => lock.id));
  const focused = document.activeElement;
  const at = view.findIndex(({id}) => drawn.has(id) && (id === opened?.id || drawn.get(id).contains(focused)));
  const isAbove = at >= 0 && at < first, isBelow = at >= last;
  const kept = isAbove || isBelow ? drawn.get(view[at].id) : null;
  if (kept) ids.add(view[at].id);
  for (const [id, row] of drawn) if (!ids.has(id)) { row.remove(); drawn.delete(id); }
  kept?.setAttribute("aria-rowindex", at + 2);
  if (isAbove && kept.nextSibling !== above) above.before(kept);
  if (isBelow && kept.previousSibling !== below) below.after(kept);
  let next = above.nextSibling;
  wanted.forEach((lock, i) => {
    let row = drawn.get(lock.id);
    if (!row) drawn.set(lock.id, row = newRow(lock));
    row.setAttribute("aria-rowindex", first + i + 2);
    tell(row, lock);
    if (row === next) next = next.nextSibling; else $("rows").insertBefore(row, next);
  });
  above.firstChild.style.height = `${(first - isAbove) * rowHeight}px`;
  below.firstChild.style.height = `${(view.length - last - isBelow) * rowHeight}px`;
  if (focused !== document.activeElement && focused.isConnected) focused.focus({preventScroll: true});
  const sample = wanted.length && drawn.get(wanted[0].id).getBoundingClientRect().height;
  if (sample && Math.abs(sample - rowHeight) > .5) { rowHeight = sample; draw(); }
}

function tick() {
  for (const [id, row] of drawn) { const lock = locks.get(id); if (lock) tell(row, lock); }
  let longest = Infinity;
  for (const {first} of queues.values()) longest = Math.min(longest, first[0].since);
  say($("waits"), queues.size ? `${queues.size} waited for, the longest for ${length(now() - longest)}` : "");
  if (opened) {
    $("dAge").textContent = ageOf(opened) + (opened.id ? `, since ${clock(opened.since)}` : "");
    $("dFence").textContent = fenceOf(opened);
    $("dWaiting").textContent = waitersOf(opened);
    $("dRemaining").textContent = locks.has(opened.id) ? remainingOf(opened) : opened.id ? "not held like this any more" : "not held";
  }
}

function apply(change) {
  if (change.all) { locks.clear(); queues.clear(); for (const row of drawn.values()) row.remove(); drawn.clear(); }
  for (const id of change.gone ?? []) locks.delete(id);
  for (const [id, end] of change.ends ?? []) { const lock = locks.get(id); if (lock) lock.end = end; }
  for (const [id, key, owner, since, before, end, fence, share] of change.rows ?? []) {
    const known = locks.get(id) ?? {};  // a grant of which more is known now
    locks.set(id, Object.assign(known, {id, key, owner, since, before, end, fence, share, search: `${visible(key)}\n${visible(owner ?? "")}`.toLowerCase()}));
  }
  for (const [key, count, first] of change.queues ?? []) {
    if (count) queues.set(key, {count, first: first.map(([owner, since, share]) => ({owner, since, share}))});
    else queues.delete(key);
  }
  if (change.all && opened?.id) {  // the numbers may be those of another process
    const same = [...locks.values()].find(({key, owner, fence}) => key === opened.key && owner === opened.owner && fence === opened.fence);
    if (same) opened = same; else opened.id = -1;
  }
  return change.all || change.gone?.length || change.rows?.length || (sort === "remaining" && change.ends?.length)
    || (sort === "waiting" && change.queues?.length);
}

const wanted = async (path, longest) => {
  const answer = await fetch(path, {signal: AbortSignal.timeout(longest)});
  if (!answer.ok) throw new Error(answer.statusText);
  return answer.json();
};
function noAnswer() {
  $("health").className = "bad";
  $("health").textContent = "not live: no answer from the server. Trying again …";
}
let version = 0;
async function lookAtLocks() {
  try {
    const state = await wanted(`state?seen=${version}`, 90000);
    if (!state.version) return;  // the store was not listed yet
    version = state.version;
    offset = state.now - performance.now();
    $("health").className = state.fault ? "bad" : "";
    $("health").textContent = state.fault ? `not up to date: ${state.fault}` : `up, answers in ${state.tookMs} ms`;
    if (state.changes.map(apply).some(Boolean)) arrange();
    tick();
  } catch {
    noAnswer();
  }
}
// One request after the other, however long each takes.
async function watch(look, pause) {
  if (!document.hidden) await look();
  setTimeout(watch, pause, look, pause);
}

// People who listen hear of a change at most every ten seconds.
let said = "";
setInterval(() => {
  const news = $("health").className ? $("health").textContent : `${$("count").textContent} ${$("losses").textContent}`;
  if (news !== said) $("spoken").textContent = said = news;
}, 10000);

function open(lock) {
  opened = lock;
  $("dKey").textContent = visible(lock.key);
  $("dOwner").textContent = ownerOf(lock);
  $("dShare").textContent = shareOf(lock);
  $("answer").textContent = "";
  $("break").hidden = $("warning").hidden = !breaking || !opened.id;
  $("break").disabled = false;
  $("dTimeline").replaceChildren();
  tick();
  $("details").showModal();
  lookAtActivity();
}
$("close").addEventListener("click", () => $("details").close());
$("details").addEventListener("close", () => { if (!$("details").open) opened = null; });
$("form").addEventListener("submit", async event => {
  event.preventDefault();
  if (!breaking || !(opened?.id > 0)) return;
  const {id, key, owner, fence} = opened;
  const headers = {"Content-Type": "application/json", "X-Console-Token": meta("token")};
  if ($("password").value) headers.Authorization = `Bearer ${$("password").value}`;
  $("break").disabled = true;
  let detail, done = false;
  try {
    const answer = await fetch("break", {method: "POST", headers, body: JSON.stringify({grant: id, key, owner, fence})});
    done = answer.ok;
    detail = (await answer.json()).detail;
    if (answer.status === 401) {
      detail = $("password").value ? "This is not the password." : "This needs the operators' password.";
      $("passwordLabel").hidden = false;
      $("password").focus();
    }
    if (answer.status !== 200 && answer.status !== 409) $("break").disabled = false;
  } catch {
    detail = "No answer: the lock may or may not be broken.";
    $("break").disabled = false;
  }
  $("answer").className = done ? "" : "bad";
  $("answer").textContent = detail;
});

document.querySelector("th.act").hidden = !breaking;
for (const heading of document.querySelectorAll("th[data-sort]")) {
  heading.firstChild.addEventListener("click", () => {
    down = sort === heading.dataset.sort && !down;
    sort = heading.dataset.sort;
    for (const each of document.querySelectorAll("th[data-sort]")) each.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    arrange();
  });
}
$("filter").addEventListener("input", () => { $("scroll").scrollTop = 0; arrange(); });
$("scroll").addEventListener("scroll", draw, {passive: true});
addEventListener("resize", draw);
setInterval(tick, 1000);
watch(lookAtLocks, Number(meta("interval")));
