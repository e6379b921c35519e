"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const scroll = document.querySelector(".time .scroll"), wide = document.querySelector(".time .wide");
  const bar = document.querySelector(".zoom"), under = document.getElementById("under");
  const buttons = [...bar.querySelectorAll("button")];
  let zoom = 1;
  // Keeps the cycle at a place of the window where it is.
  const set = (next, at) => {
    const most = Number(buttons[buttons.length - 1].dataset.zoom);
    next = Math.min(most, Math.max(1, next));
    const place = (scroll.scrollLeft + at) / zoom;
    zoom = next;
    wide.style.width = 100 * zoom + "%";
    wide.classList.toggle("far", zoom >= 8);
    scroll.scrollLeft = place * zoom - at;
    buttons.forEach((button) => button.classList.toggle("on", Number(button.dataset.zoom) === zoom));
  };
  buttons.forEach((button) =>
    button.addEventListener("click", () => set(Number(button.dataset.zoom), scroll.clientWidth / 2)));
  scroll.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    set(event.deltaY < 0 ? zoom * 2 : zoom / 2, event.clientX - scroll.getBoundingClientRect().left);
  }, { passive: false });
  const counts = (of, bin) => Object.entries(of).filter(([, all]) => all[bin] > 0)
    .map(([name, all]) => name.replace("_", " ") + " " + all[bin]).join(", ");
  wide.addEventListener("mousemove", (event) => {
    const image = event.target, kind = image.dataset.kind;
    if (kind === undefined || kind === "other") { under.textContent = ""; return; }
    const box = image.getBoundingClientRect();
    const bin = Math.min(data.bins - 1, Math.max(0, Math.floor((event.clientX - box.left) / box.width * data.bins)));
    const first = data.first + bin * data.width, last = first + data.width - 1;
    const where = data.width === 1 ? "cycle " + first : "cycles " + first + " to " + last;
    if (kind === "slots") { under.textContent = where + ": " + counts(data.slots, bin); return; }
    const row = Math.floor((event.clientY - box.top) / Number(image.dataset.row));
    const warp = Math.min(data.warps.length - 1, Math.max(0, row));
    under.textContent = where + ", warp " + warp + ": " + counts(data.warps[warp], bin);
  });
  bar.hidden = false;
  set(1, 0);
  document.body.dataset.ready = "1";
})();
