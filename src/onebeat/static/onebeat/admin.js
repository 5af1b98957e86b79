/* Makes onebeat's form handier; without it every field is there and the server says the same. */
"use strict";
(() => {
  const WAIT = 250;

  function zone() {
    try {
      return Intl.DateTimeFormat().resolvedOptions().timeZone || "";
    } catch {
      return "";
    }
  }

  /* The viewer's own wall clock beside the server's, on hover. */
  function localTimes(root) {
    const own = zone();
    for (const time of root.querySelectorAll("time.ob-time")) {
      const at = new Date(time.dateTime);
      if (own && !Number.isNaN(at.getTime()) && !time.title.endsWith(own)) {
        time.title += "\n" + at.toLocaleString(document.documentElement.lang || undefined) + " " + own;
      }
    }
  }

  /* The rows that hold fields of these names and no others, whatever the theme builds its rows from. */
  function rowsOf(form, fits) {
    const rows = new Set();
    for (const input of [...form.elements].filter((each) => each.name && fits(each.name))) {
      let row = input;
      const alone = (box) => [...box.querySelectorAll("[name]")].every((each) => fits(each.name));
      while (row.parentElement !== form && alone(row.parentElement)) row = row.parentElement;
      rows.add(row);
    }
    return [...rows];
  }

  /* Only the chosen kind's fields are shown. */
  function kinds(form) {
    const radios = form.querySelectorAll('input[name="kind"]');
    const rows = new Map();
    for (const { value } of radios) rows.set(value, rowsOf(form, (name) => name.startsWith(`${value}_`)));
    const once = rowsOf(form, (name) => name === "one_off");
    const apply = () => {
      const chosen = form.querySelector('input[name="kind"]:checked');
      for (const [kind, own] of rows) {
        for (const row of own) row.classList.toggle("ob-away", !chosen || kind !== chosen.value);
      }
      for (const row of once) row.classList.toggle("ob-away", Boolean(chosen) && chosen.value === "clocked");
    };
    for (const radio of radios) radio.addEventListener("change", apply);
    apply();
  }

  /* A whole crontab line pasted into one field goes into all five. */
  function pasting(form) {
    const names = ["minute", "hour", "day_of_month", "month_of_year", "day_of_week"];
    const inputs = names.map((name) => form.querySelector(`[name="crontab_${name}"]`));
    if (inputs.some((input) => !input)) return;
    inputs[0].addEventListener("paste", (event) => {
      const parts = event.clipboardData.getData("text").trim().split(/\s+/);
      if (parts.length !== names.length) return;
      event.preventDefault();
      inputs.forEach((input, n) => { input.value = parts[n]; });
      inputs[0].dispatchEvent(new Event("input", { bubbles: true }));
    });
  }

  function errorsOnFields(form, box) {
    for (const old of form.querySelectorAll(".ob-error")) old.remove();
    for (const input of form.querySelectorAll("[data-ob-invalid]")) {
      input.removeAttribute("aria-invalid");
      input.removeAttribute("data-ob-invalid");
    }
    for (const item of box.querySelectorAll("li[data-field]")) {
      const input = form.querySelector(`[name="${item.dataset.field}"], [name="${item.dataset.field}_0"]`);
      if (!input || input.type === "hidden") continue;
      input.setAttribute("aria-invalid", "true");
      input.setAttribute("data-ob-invalid", "");
      const said = document.createElement("p");
      said.className = "ob-error";
      said.textContent = item.lastChild.textContent.trim();
      (input.closest(".flex-container") || input.parentElement).append(said);
    }
  }

  function preview(form, box) {
    const touched = new Set();
    let timer = 0;
    let last = 0;
    const ask = async () => {
      const mine = ++last;
      const data = new FormData(form);
      data.set("onebeat_object", box.dataset.object);
      data.set("onebeat_zone", zone());
      data.set("onebeat_touched", [...touched].join(" "));
      try {
        const answer = await fetch(box.dataset.url, { method: "POST", body: data, credentials: "same-origin" });
        if (!answer.ok) return;
        const text = await answer.text();
        if (mine !== last) return;
        box.innerHTML = text;
        errorsOnFields(form, box);
        box.dataset.fresh = String(mine);
      } catch {
        /* The server is away; what it would say stands in the form after saving. */
      }
    };
    const soon = (event) => {
      if (event && event.target && event.target.name) touched.add(event.target.name.replace(/_[01]$/, ""));
      clearTimeout(timer);
      timer = setTimeout(ask, WAIT);
    };
    form.addEventListener("input", soon);
    form.addEventListener("change", soon);
    /* The calendar's and the clock's links set values without an event. */
    form.addEventListener("click", (event) => {
      if (event.target.closest(".datetimeshortcuts, .calendarbox, .clockbox")) soon();
    });
    ask();
  }

  document.addEventListener("DOMContentLoaded", () => {
    localTimes(document);
    /* An action on many tasks goes on with its next portion by itself. */
    const next = document.querySelector("form.ob-goes-on");
    if (next) next.submit();
    const box = document.querySelector(".ob-preview[data-url]");
    const form = box && box.closest("form");
    if (!form || !form.querySelector('input[name="kind"]')) return;
    kinds(form);
    pasting(form);
    preview(form, box);
  });
})();
