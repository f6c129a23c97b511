/* What pages do without the server: light or dark, the address, uploads. */
(function () {
  "use strict";
  var KEY = "gcnsim-theme";
  var LARGEST = 64 * 1024 * 1024;
  var changed = null; /* when the address was changed last; it is put right as the page opens, which is no step back */

  function chosen() {
    var kept = null;
    try { kept = window.localStorage.getItem(KEY); } catch (error) { kept = null; }
    if (kept === "light" || kept === "dark") { return kept; }
    return window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  }

  document.documentElement.dataset.theme = chosen();
  function place() { return window.location.pathname + window.location.search; }
  var shown = place();
  window.addEventListener("popstate", function () { if (place() !== shown) { window.location.reload(); } });

  function say(place, text) {
    var line = document.createElement("p");
    line.className = "note";
    line.setAttribute("role", "status");
    line.textContent = text;
    place.querySelectorAll("p").forEach(function (old) { old.remove(); });
    place.appendChild(line);
  }

  async function send(place, file) {
    if (file.size > LARGEST) { say(place, "The file is larger than 64 MiB: give its path instead."); return; }
    say(place, "Uploading ...");
    var config = JSON.parse(document.getElementById("_dash-config").textContent);
    var answer = await fetch(config.requests_pathname_prefix + "upload", {method: "POST", body: file,
      headers: {"X-File-Name": encodeURIComponent(file.name), "Content-Type": "application/octet-stream"}});
    var told = {};
    try { told = await answer.json(); } catch (error) { told = {error: "the server refused it (" + answer.status + ")"}; }
    if (told.key) {
      say(place, "Uploaded.");
      window.dash_clientside.set_props("graph", {value: told.key});
    } else { say(place, told.error); }
  }

  function offer() {
    var place = document.getElementById("upload");
    if (!place || place.querySelector("input")) { return; }
    var field = document.createElement("input");
    field.type = "file";
    field.id = "upload-file";
    field.setAttribute("aria-label", "Upload a graph or a profile");
    field.addEventListener("change", function () { if (field.files.length) { send(place, field.files[0]); } });
    place.appendChild(field);
  }
  /* Dash calls radio buttons a list box, which has no name and may not have radio buttons in it. */
  function named() {
    var group = document.getElementById("figure");
    if (!group) { return; }
    if (group.getAttribute("role") !== "radiogroup") {
      group.setAttribute("role", "radiogroup");
      group.setAttribute("aria-label", "Figure");
    }
    group.querySelectorAll("[role=option], [aria-selected]").forEach(function (each) {
      each.removeAttribute("role");
      each.removeAttribute("aria-selected");
    });
  }
  /* A list's cross has a label but no role. */
  function crossed() {
    document.querySelectorAll(".dash-dropdown-clear:not([role])").forEach(function (each) { each.setAttribute("role", "button"); });
  }
  /* A list of Dash hides what the keyboard reaches first, and is named by its value alone. */
  function labelled() {
    document.querySelectorAll(".field .dash-dropdown:not([data-labelled])").forEach(function (list) {
      var label = list.closest(".field").querySelector("label");
      var before = list.previousElementSibling;
      label.id = label.id || list.id + "-label";
      list.setAttribute("aria-labelledby", label.id + " " + list.getAttribute("aria-labelledby"));
      list.setAttribute("data-labelled", "yes");
      if (before && before.matches("input")) {
        before.removeAttribute("aria-hidden");
        before.setAttribute("aria-labelledby", label.id);
      }
    });
  }
  /* An address that asks for long work begins it, once the page has read it. */
  function begin() {
    var button = document.querySelector("#job-start[data-begins]");
    var command = document.getElementById("command");
    if (!button || !command || !command.textContent) { return; }
    button.removeAttribute("data-begins");
    window.setTimeout(function () { button.click(); }, 0);
  }
  new MutationObserver(function () { offer(); named(); crossed(); labelled(); begin(); }).observe(document.documentElement, {childList: true, subtree: true});

  window.dash_clientside = Object.assign({}, window.dash_clientside, {
    gcnsim: {
      theme: function (clicks) {
        if (clicks) {
          try { window.localStorage.setItem(KEY, chosen() === "dark" ? "light" : "dark"); } catch (error) { return chosen(); }
          window.location.reload();
        }
        return chosen();
      },
      pin: function (clicks, query, pinned) {
        if (clicks) { pinned = pinned ? "" : query || "?"; }
        return [pinned, pinned ? "Unpin A" : "Pin as A, to compare with"];
      },
      shown: function () {
        var places = arguments, stops = places[places.length - 1], units = {bandwidth: " Gbps", cache: " %"};
        return Object.keys(stops).map(function (name, index) { return stops[name][places[index]] + (units[name] || ""); });
      },
      waits: function (name) { return [name !== "busy", ""]; },
      busy: function () { return "busy"; },
      old: function (query, begun) { return typeof begun === "string" && begun !== (query || "") ? "old" : ""; },
      /* A numbered point of a figure leads where its number in the table below leads. */
      follow: function (click) {
        var number = click && String(click.points[0].customdata).split(": ")[0];
        document.querySelectorAll("#job-result .rows a").forEach(function (link) { if (link.textContent === number) { link.click(); } });
      },
      remember: function (query) {
        if (typeof query === "string" && query !== window.location.search) {
          var often = changed === null || Date.now() - changed < 1000;
          window.history[often ? "replaceState" : "pushState"](window.history.state, "", window.location.pathname + query);
          changed = Date.now();
        }
        changed = changed || 0;
        shown = place();
        return ["Switch between light and dark", window.location.href];
      }
    }
  });
})();
