// Number boxes in the text of the lesson that stand for a field of the strip: each shows it, and moves it.
function setUpMirrors(root) {
  for (const mirror of root.querySelectorAll("[data-mirror]")) {
    if (mirror.dataset.live) continue;
    mirror.dataset.live = "true";
    const name = mirror.dataset.mirror;
    const field = document.getElementById(`f-${name}`);
    const show = () => {
      if (document.activeElement !== mirror) mirror.value = field.value;
    };
    mirror.addEventListener("input", () => {
      field.value = mirror.value;
      field.dispatchEvent(new Event("input")); // the slider follows; the form hears the mirror's own event
    });
    field.addEventListener("input", show);
    mirror.closest(".dial").addEventListener("input", show); // after the slider has moved the field
    show();
  }
}

// A mouse that rests on a word opens its meaning too; a click then keeps it open.
const REST_MS = 350;

function setUpWords(root) {
  for (const word of root.querySelectorAll(".word[popovertarget]")) {
    if (word.dataset.live) continue;
    word.dataset.live = "true";
    const meaning = document.getElementById(word.getAttribute("popovertarget"));
    let resting = 0;
    let passing = false; // opened by the mouse alone
    word.addEventListener("pointerenter", (event) => {
      if (event.pointerType !== "mouse" || meaning.matches(":popover-open")) return;
      resting = setTimeout(() => {
        meaning.showPopover();
        passing = true;
      }, REST_MS);
    });
    word.addEventListener("pointerleave", () => {
      clearTimeout(resting);
      if (passing && !meaning.matches(":hover")) meaning.hidePopover();
      passing = false;
    });
    word.addEventListener("click", (event) => {
      clearTimeout(resting);
      if (passing) event.preventDefault();
      passing = false;
    });
  }
}

// On a phone the strip starts folded, so that the page begins with its text.
const narrow = matchMedia("(max-width: 60rem)");
const controls = document.getElementById("controls");
if (narrow.matches && controls && !controls.querySelector("[aria-invalid]")) controls.open = false;
narrow.addEventListener("change", () => {
  if (controls && !narrow.matches) controls.open = true; // wide screens have no way to unfold it
});

function bring() {
  setUpMirrors(document);
  setUpWords(document);
}

bring();
document.addEventListener("htmx:after:swap", bring);
