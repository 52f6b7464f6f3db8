// Live cells, answers by keyboard, and times that people read. Everything works without it, by links and forms;
// what comes over the wire is only ever written as text.

const $ = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const csrf = document.body.dataset.csrf;
const announce = (words) => { const place = $("[data-announce]"); if (place) place.textContent = words; };

// -- theme --------------------------------------------------------------------------------------------------
const themes = ["system", "light", "dark"];
function theme(name) {
  if (name === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  const label = $("[data-theme-name]");
  if (label) label.textContent = name;
}
theme(localStorage.getItem("theme") || "system");
$("[data-theme-switch]")?.addEventListener("click", () => {
  const next = themes[(themes.indexOf(localStorage.getItem("theme") || "system") + 1) % themes.length];
  localStorage.setItem("theme", next);
  theme(next);
});

// -- times --------------------------------------------------------------------------------------------------
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "narrow" });
const local = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
function ago(seconds) {
  const steps = [["day", 86400], ["hour", 3600], ["minute", 60]];
  for (const [unit, size] of steps) if (Math.abs(seconds) >= size) return relative.format(-Math.trunc(seconds / size), unit);
  return Math.abs(seconds) < 5 ? "now" : relative.format(-Math.trunc(seconds), "second");
}
function times() {
  const now = Date.now() / 1000;
  for (const time of all("time[data-at]")) {
    const words = ago(now - Number(time.dataset.at));
    if (time.textContent !== words) time.textContent = words;
    if (!time.title) time.title = local.format(Number(time.dataset.at) * 1000);
  }
  for (const card of all("[data-expires]")) {
    const left = Math.round(Number(card.dataset.expires) - now);
    const place = $("[data-left]", card);
    if (!place || card.classList.contains("past")) continue;
    const words = left > 90 ? `${Math.round(left / 60)} min left` : left > 0 ? `${left} s left` : "expired";
    if (place.textContent !== words) place.textContent = words;
    place.classList.toggle("soon", left < 60);
    if (left <= 0) past(card, "expired");
  }
}
times();
setInterval(times, 1000);

// -- live ---------------------------------------------------------------------------------------------------
const table = $("[data-runs]");
const rows = new Map(all("tr[data-run]").map((row) => [row.dataset.run, row]));
const cells = new WeakMap();
function cell(row, name) {
  let known = cells.get(row);
  if (!known) cells.set(row, (known = { line: $("polyline", row), time: $("time", row) }));
  return (known[name] ??= $(`[data-cell="${name}"]`, row));
}
function write(place, words) { if (place && place.textContent !== words) place.textContent = words; }
function update(run) {
  const row = rows.get(String(run.id));
  if (!row) return false;
  const { last, ...texts } = run.text;
  for (const [name, words] of Object.entries(texts)) write(cell(row, name), words);
  row.className = (run.done || "none") + (run.waiting ? " waits" : "");
  cell(row, "outcome").className = `done ${run.done || "none"}`;
  cell(row, "probability").className = `likely ${run.level}`;
  cell(row, "line").setAttribute("points", run.spark);
  cell(row, "time").dataset.at = last;
  return true;
}
let reloading = 0;
async function reload() {
  // New rows come from the server, filtered and escaped there.
  if (Date.now() - reloading < 1500) return;
  reloading = Date.now();
  const answer = await fetch(`/runs/rows?${table.dataset.query}`, { headers: { accept: "text/html" } });
  if (!answer.ok) return;
  const made = new DOMParser().parseFromString(`<table><tbody>${await answer.text()}</tbody></table>`, "text/html");
  const focused = document.activeElement?.closest?.("tr[data-run]")?.dataset.run;
  const body = $("tbody", table);
  body.replaceChildren(...all("tr", made).map((row) => document.adoptNode(row)));
  rows.clear();
  for (const row of all("tr[data-run]", body)) rows.set(row.dataset.run, row);
  if (focused) $("a", rows.get(focused) || body)?.focus();
  times();
  $("[data-more]").hidden = true;
}
$("[data-reload]")?.addEventListener("click", () => { reloading = 0; reload(); });
function pending(count) {
  for (const badge of all("[data-pending]")) badge.hidden = !count;
  for (const place of all("[data-pending-count], [data-pending-figure]")) write(place, String(count));
}
let waiting = Number($("[data-pending-count]")?.textContent || 0);
function change(told) {
  let unknown = 0;
  if (table) for (const run of told.runs) unknown += update(run) ? 0 : 1;
  if (unknown && table.dataset.query.includes("before=")) $("[data-more]").hidden = false;
  else if (unknown) reload();
  if (told.pending !== waiting) {
    if (told.pending > waiting) announce(`${told.pending} question${told.pending > 1 ? "s" : ""} waiting`);
    waiting = told.pending;
    pending(waiting);
  }
  const list = $("[data-questions]");
  if (list && told.events.some((event) => event.kind === "approval")) refresh(list);
  const open = $("[data-live-run]");
  if (open && told.runs.some((run) => String(run.id) === open.dataset.liveRun)) fresh();
}
async function fetched(selector) {
  const answer = await fetch(location.href, { headers: { accept: "text/html" } });
  if (!answer.ok) return [];
  return all(selector, new DOMParser().parseFromString(await answer.text(), "text/html"));
}
async function refresh(list) {
  // Cards that are being answered stay; new ones are added behind, those that wait no more are marked.
  const now = new Map((await fetched("[data-question]")).map((card) => [card.dataset.question, card]));
  for (const card of all("[data-question]:not(.past)", list)) if (!now.has(card.dataset.question)) past(card, "no longer waiting");
  for (const [id, card] of now) if (!$(`[data-question="${CSS.escape(id)}"]`)) {
    card.classList.add("fresh");
    list.append(document.adoptNode(card));
  }
  if (now.size) $(".empty", list)?.remove();
  times();
}
let busy = false;
async function fresh() {
  if (busy) return;
  busy = true;
  setTimeout(async () => {
    busy = false;
    if (document.activeElement?.closest("[data-live-run], form")) return;
    const open = new Set(all(".call details[open]").map((one) => one.closest(".call").id));
    for (const selector of [".figures", ".chart", ".levels", "[data-live-run]"]) {
      const [made] = await fetched(selector);
      const old = $(selector);
      if (made && old) old.replaceWith(document.adoptNode(made));
    }
    for (const id of open) $(`#${CSS.escape(id)} details`)?.setAttribute("open", "");
    times();
  }, 1000);
}
if (csrf && "EventSource" in window) {
  const source = new EventSource(`/api/v1/events?after=${document.body.dataset.last}`);
  source.addEventListener("change", (event) => change(JSON.parse(event.data)));
  source.addEventListener("reset", () => { if (table) reload(); });
  addEventListener("pagehide", () => source.close());
}

// -- questions ----------------------------------------------------------------------------------------------
const cards = () => all("[data-question]:not(.past)");
let current = null;
function past(card, words) {
  card.classList.add("past");
  $("form", card)?.remove();
  $(".pick", card)?.remove();
  write($("[data-left]", card), words);
  picked();
}
function go(card) {
  all(".current").forEach((one) => one.classList.remove("current"));
  current = card;
  card?.classList.add("current");
  card?.focus({ preventScroll: false });
  card?.scrollIntoView({ block: "nearest" });
}
async function answer(card, approved) {
  const form = $("[data-answer]", card);
  if (!form) return;
  for (const button of all("button", form)) button.disabled = true;
  const body = JSON.stringify({ approved, presented: form.elements.presented.value, reason: form.elements.reason.value });
  const reply = await fetch(`/api/v1/approvals/${card.dataset.question}/answer`, {
    method: "POST", body, headers: { "content-type": "application/json", "x-csrf-token": csrf },
  });
  const said = await reply.json();
  const words = reply.ok ? (approved ? "allowed once" : "refused") : said.detail || said.title;
  const next = cards()[cards().indexOf(card) + 1] || cards()[0];
  past(card, words);
  announce(words);
  if (next && next !== card) go(next);
}
document.addEventListener("submit", (event) => {
  const form = event.target.closest("[data-answer]");
  if (!form || !event.submitter) return;
  event.preventDefault();
  answer(form.closest("[data-question]"), event.submitter.value === "yes");
});
document.addEventListener("keydown", (event) => {
  if (event.target.closest("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
  const list = cards();
  if (!list.length) return;
  const at = list.indexOf(current);
  if (event.key === "j") go(list[Math.min(list.length - 1, at + 1)]);
  else if (event.key === "k") go(list[Math.max(0, at - 1)]);
  else if (current && event.key === "a") answer(current, true);
  else if (current && event.key === "r") answer(current, false);
  else if (current && event.key === "x") $(".pick input", current)?.click();
  else return;
  event.preventDefault();
});

// -- many questions at once: a no to any, a yes only to calls that are alike --------------------------------
const bulk = $("[data-bulk]");
function picked() {
  if (!bulk) return;
  const chosen = all('.pick input:checked');
  bulk.hidden = !chosen.length;
  write($("[data-picked]", bulk), String(chosen.length));
  const alike = new Set(chosen.map((one) => one.closest("[data-question]").dataset.group)).size === 1;
  $("[data-bulk-yes]", bulk).disabled = !alike;
  write($("[data-bulk-why]", bulk), alike ? "" : "only calls of one tool by one agent, asked about for one reason, can be allowed together");
}
document.addEventListener("change", (event) => { if (event.target.closest(".pick")) picked(); });
bulk?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const approved = event.submitter.value === "yes";
  for (const one of all(".pick input:checked")) {
    const card = one.closest("[data-question]");
    $("[data-answer]", card).elements.reason.value ||= bulk.elements.reason.value;
    await answer(card, approved);
  }
});

// -- filters and signing in ---------------------------------------------------------------------------------
all(".tabs input").forEach((one) => one.addEventListener("change", () => one.form.requestSubmit()));
const signing = $("[data-sign-in]");
function withToken() {
  if (!signing || !location.hash.startsWith("#sdt_")) return;
  signing.elements.token.value = location.hash.slice(1);
  history.replaceState(null, "", location.pathname + location.search);
  signing.requestSubmit();
}
withToken();
addEventListener("hashchange", withToken);
