// Search as you type over a native select: an editable combobox with a list (WAI-ARIA authoring practices).
// The select stays in the form and keeps the value; without script it is the control.

export function setUpPickers(root) {
  for (const select of root.querySelectorAll("select[data-picker]")) {
    if (select.dataset.live) continue;
    select.dataset.live = "true";
    enhance(select);
  }
}

function enhance(select) {
  const input = document.createElement("input");
  const list = document.createElement("ul");
  const box = document.createElement("div");
  box.className = "picker";
  list.id = `${select.id}-list`;
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", select.labels[0].textContent);
  list.hidden = true;
  Object.assign(input, { type: "text", id: `${select.id}-search`, autocomplete: "off", spellcheck: false });
  const described = { role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": list.id };
  for (const [name, value] of Object.entries(described)) input.setAttribute(name, value);
  input.setAttribute("aria-describedby", select.getAttribute("aria-describedby"));
  select.labels[0].htmlFor = input.id;
  select.hidden = true;
  select.before(box);
  box.append(input, list);

  let active = -1;
  const chosen = () => select.selectedOptions[0];
  const showChosen = () => (input.value = chosen()?.textContent.trim() ?? "");
  const options = () => [...list.querySelectorAll("[role=option]")];

  function open(words) {
    list.replaceChildren(...matching(select, words, list.id));
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    const at = options().findIndex((item) => item.dataset.value === select.value);
    activate(words ? 0 : at);
  }

  function close() {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
    active = -1;
  }

  function activate(index) {
    const items = options();
    items[active]?.classList.remove("active");
    active = Math.min(Math.max(index, -1), items.length - 1);
    const item = items[active];
    if (!item) return input.removeAttribute("aria-activedescendant");
    item.classList.add("active");
    item.scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", item.id);
  }

  function pick(item) {
    close();
    if (item) {
      select.value = item.dataset.value;
      select.dispatchEvent(new Event("input", { bubbles: true }));
    }
    showChosen();
  }

  input.addEventListener("focus", () => input.select());
  input.addEventListener("click", () => list.hidden && open(""));
  input.addEventListener("input", (event) => {
    event.stopPropagation(); // letters of a search are not an input of the form
    open(input.value);
  });
  input.addEventListener("blur", () => {
    close();
    showChosen();
  });
  input.addEventListener("keydown", (event) => {
    const page = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
    if (page) {
      event.preventDefault();
      if (list.hidden) open("");
      else activate(active + page);
    } else if (event.key === "Enter" && !list.hidden) {
      event.preventDefault();
      pick(options()[active]);
    } else if (event.key === "Escape" && !list.hidden) {
      event.preventDefault();
      pick(null);
    }
  });
  list.addEventListener("mousedown", (event) => event.preventDefault()); // keep the focus in the box
  list.addEventListener("click", (event) => pick(event.target.closest("[role=option]")));
  select.addEventListener("change", showChosen);
  showChosen();
}

function matching(select, words, prefix) {
  const wanted = words.toLowerCase().split(/[\s·]+/).filter(Boolean);
  const found = [];
  let count = 0;
  for (const group of select.querySelectorAll("optgroup")) {
    const hits = [...group.children].filter((option) => {
      const text = `${option.textContent} ${option.dataset.words} ${option.value} ${group.label}`.toLowerCase();
      return wanted.every((word) => text.includes(word));
    });
    if (hits.length) found.push(heading(group.label));
    for (const option of hits) found.push(item(option, `${prefix}-${count++}`, select.value));
  }
  return found.length ? found : [heading("Nothing by that name")];
}

function heading(text) {
  const node = document.createElement("li");
  node.setAttribute("role", "presentation");
  node.textContent = text;
  return node;
}

function item(option, id, value) {
  const node = document.createElement("li");
  node.id = id;
  node.dataset.value = option.value;
  node.setAttribute("role", "option");
  node.setAttribute("aria-selected", String(option.value === value));
  node.textContent = option.textContent.trim();
  return node;
}
