
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { dimensions, kinds, noKinds, calls } = data;
  const storageKey = "safetydrift-review-" + data.key;
  const el = (id) => document.getElementById(id);
  const decisions = restored();
  let at = 0;
  let row = 0;

  const empty = () => ({ levels: {}, kinds: null, unsure: false, alternative: "", remark: "" });
  const decision = (index) => decisions[index] || (decisions[index] = empty());
  const isDecided = (index) => {
    const made = decisions[index];
    return Boolean(made) && dimensions.every((one) => made.levels[one.name]);
  };

  // Other pages opened from files may share this storage: nothing in it is believed unless it could be ours.
  function restored() {
    const found = [];
    let kept = null;
    try {
      kept = JSON.parse(localStorage.getItem(storageKey));
    } catch {
      return found;
    }
    if (!kept || typeof kept !== "object") return found;
    const text = (value, most) => (typeof value === "string" ? value.slice(0, most) : "");
    calls.forEach((call, index) => {
      if (!Object.hasOwn(kept, call.id) || !kept[call.id] || typeof kept[call.id] !== "object") return;
      const one = kept[call.id];
      const levels = {};
      for (const dimension of dimensions) {
        const level = one.levels && one.levels[dimension.name];
        if (dimension.levels.includes(level)) levels[dimension.name] = level;
      }
      found[index] = {
        levels,
        kinds: Array.isArray(one.kinds) ? kinds.filter((kind) => one.kinds.includes(kind)) : null,
        unsure: one.unsure === true,
        alternative: text(one.alternative, 500),
        remark: text(one.remark, 2000),
      };
    });
    return found;
  }

  function keep() {
    const kept = {};
    decisions.forEach((made, index) => { kept[calls[index].id] = made; });
    try {
      localStorage.setItem(storageKey, JSON.stringify(kept));
      el("saved").textContent = "kept in this browser";
    } catch {
      el("saved").textContent = "this browser keeps nothing: save the decisions before you leave";
    }
    progress();
  }

  function progress() {
    let done = 0;
    calls.forEach((_, index) => { done += isDecided(index) ? 1 : 0; });
    el("progress").textContent = done + " decided";
    el("bar").value = done;
    el("position").textContent = (calls.length ? at + 1 : 0) + " / " + calls.length;
  }

  function button(words, pressed, press, key) {
    const made = document.createElement("button");
    made.type = "button";
    made.setAttribute("aria-pressed", String(pressed));
    made.append(words + " ");
    const hint = document.createElement("kbd");
    hint.textContent = key;
    made.append(hint);
    made.addEventListener("click", press);
    return made;
  }

  function fieldset(title, position, buttons) {
    const made = document.createElement("fieldset");
    made.className = position === row ? "active" : "";
    const legend = document.createElement("legend");
    legend.textContent = title;
    made.append(legend, ...buttons);
    return made;
  }

  function show() {
    const call = calls[at];
    if (!call) return;
    for (const part of ["tool", "source", "id", "task", "arguments", "result"]) el(part).textContent = call[part];
    const made = decisions[at] || empty();
    el("unsure").checked = made.unsure;
    el("alternative").value = made.alternative;
    el("remark").value = made.remark;
    const rows = dimensions.map((dimension, position) =>
      fieldset(dimension.name, position, dimension.levels.map((level, rank) => {
        const one = button(level, made.levels[dimension.name] === level, () => choose(position, rank), rank + 1);
        if (call.program && call.program[dimension.name] === level) one.classList.add("program");
        return one;
      })));
    const none = button("none", made.kinds !== null && !made.kinds.length, () => choose(dimensions.length, -1), 0);
    rows.push(fieldset("kinds of violation it would complete", dimensions.length, [
      none,
      ...kinds.map((kind, rank) => button(
        kind.replaceAll("_", " "), made.kinds !== null && made.kinds.includes(kind), () => choose(dimensions.length, rank), rank + 1,
      )),
    ]));
    el("rows").replaceChildren(...rows);
    progress();
  }

  // Rank -1 clears a level; among the kinds it says that there are none.
  function choose(position, rank) {
    const made = decision(at);
    row = position;
    if (position < dimensions.length) {
      const dimension = dimensions[position];
      if (rank >= dimension.levels.length) return;
      if (rank < 0) delete made.levels[dimension.name];
      else {
        made.levels[dimension.name] = dimension.levels[rank];
        row = position + 1;
      }
    } else if (rank < 0) made.kinds = [];
    else if (rank < kinds.length) {
      const chosen = new Set(made.kinds || []);
      if (!chosen.delete(kinds[rank])) chosen.add(kinds[rank]);
      made.kinds = kinds.filter((kind) => chosen.has(kind));
    } else return;
    keep();
    show();
  }

  function go(to) {
    at = Math.max(0, Math.min(calls.length - 1, to));
    row = 0;
    show();
  }

  function goToUndecided() {
    for (let step = 1; step <= calls.length; step += 1) {
      const index = (at + step) % calls.length;
      if (!isDecided(index)) { go(index); return; }
    }
  }

  // A cell that a spreadsheet could take for a formula is guarded by a sign that the import takes away again.
  function cell(text) {
    const guarded = /^[=+\-@\t\r']/.test(text) ? "'" + text : text;
    return /[",;\t\r\n]/.test(guarded) ? '"' + guarded.replaceAll('"', '""') + '"' : guarded;
  }

  function csv() {
    const lines = [["sample_id", "source", "tool_name", ...dimensions.map((one) => one.column), "kinds", "unsure", "alternative", "remark"]];
    calls.forEach((call, index) => {
      const made = decisions[index] || empty();
      const said = made.kinds === null ? "" : made.kinds.join(" ") || noKinds;
      lines.push([
        call.id, call.source, call.tool, ...dimensions.map((one) => made.levels[one.name] || ""),
        said, made.unsure ? "1" : "", made.alternative, made.remark,
      ]);
    });
    return lines.map((line) => line.map(cell).join(",") + "\r\n").join("");
  }

  function save() {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([csv()], { type: "text/csv" }));
    link.download = "decisions.csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  const setRow = (to) => { row = Math.max(0, Math.min(dimensions.length, to)); show(); };
  const toggleUnsure = () => { decision(at).unsure = !decision(at).unsure; keep(); show(); };
  const keys = {
    ArrowLeft: () => go(at - 1), ArrowRight: () => go(at + 1), Enter: () => go(at + 1),
    ArrowUp: () => setRow(row - 1), ArrowDown: () => setRow(row + 1),
    n: goToUndecided, s: save, u: toggleUnsure, r: () => el("remark").focus(),
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target;
    if (target.matches('input[type="text"]')) {
      if (event.key === "Escape" || event.key === "Enter") { target.blur(); event.preventDefault(); }
      return;
    }
    if (target.matches("button, input") && (event.key === "Enter" || event.key === " ")) return;
    if (target.matches("pre") && (event.key === "ArrowUp" || event.key === "ArrowDown")) return;
    if (/^[0-9]$/.test(event.key)) choose(row, Number(event.key) - 1);
    else if (Object.hasOwn(keys, event.key)) keys[event.key]();
    else return;
    event.preventDefault();
  });
  el("unsure").addEventListener("change", () => { decision(at).unsure = el("unsure").checked; keep(); });
  for (const part of ["alternative", "remark"]) {
    el(part).addEventListener("input", () => { decision(at)[part] = el(part).value; keep(); });
  }
  el("previous").addEventListener("click", () => go(at - 1));
  el("next").addEventListener("click", () => go(at + 1));
  el("open").addEventListener("click", goToUndecided);
  el("save").addEventListener("click", save);
  if (calls.length) show();
  else document.querySelector("main").hidden = true;
})();
