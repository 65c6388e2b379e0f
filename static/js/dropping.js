// Files dropped on a form, or chosen in it, become the text of their field: seen, editable, and sent as such.
const MOST_BYTES = 262144;
const TOO_MUCH = "Together the files are larger than is read here.";
const isQuantization = (file) => file.name.toLowerCase().includes("quant");

// UTF-8, or UTF-16 where the file says so, as a redirection in PowerShell writes.
async function textOf(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  const mark = bytes[0] * 256 + bytes[1];
  return new TextDecoder(mark === 0xfffe ? "utf-16le" : mark === 0xfeff ? "utf-16be" : "utf-8").decode(bytes);
}

// `after` appends: a form that takes many files holds one after the other.
async function put(file, area, after = false) {
  const name = area.name;
  const message = document.getElementById(`msg-${name}`);
  if (file.size + (after ? area.value.length : 0) > Number(area.form.dataset.most ?? MOST_BYTES)) {
    message.textContent = after ? TOO_MUCH : "The file is larger than is read here.";
    return false;
  }
  message.textContent = "";
  const text = await textOf(file);
  area.value = after ? `${area.value.replace(/\n?$/, "\n")}${text}` : text;
  area.closest("details")?.setAttribute("open", "");
  return true;
}

// A form whose `data-drop` names a field takes every file there; else a configuration and the file beside it.
const fieldOf = (form, file) => form.dataset.drop || (isQuantization(file) ? "quant" : "config");

function submit(form, filled) {
  if (filled && form.elements[form.dataset.drop || "config"].value.trim() !== "") form.requestSubmit();
}

export function setUpDropping(root) {
  for (const form of root.querySelectorAll("form[data-drop]")) {
    if (form.dataset.live) continue;
    form.dataset.live = "true";
    for (const chooser of form.querySelectorAll("input[data-into]")) {
      chooser.addEventListener("change", async () => {
        const file = chooser.files[0];
        if (!file) return;
        const filled = await put(file, document.getElementById(chooser.dataset.into));
        chooser.value = ""; // the text is what is sent
        submit(form, filled);
      });
    }
    for (const chooser of "many" in form.dataset ? form.querySelectorAll('input[type="file"]') : []) {
      chooser.addEventListener("change", () => {
        const bytes = [...chooser.files].reduce((sum, file) => sum + file.size, 0);
        const isTooMuch = bytes > Number(form.dataset.most);
        document.getElementById(`msg-${form.dataset.drop}`).textContent = isTooMuch ? TOO_MUCH : "";
        if (isTooMuch) chooser.value = "";
      });
    }
    form.addEventListener("dragover", (event) => {
      if (!event.dataTransfer.types.includes("Files")) return;
      event.preventDefault();
      form.classList.add("over");
    });
    form.addEventListener("dragleave", (event) => {
      if (!form.contains(event.relatedTarget)) form.classList.remove("over");
    });
    form.addEventListener("drop", async (event) => {
      if (!event.dataTransfer.files.length) return;
      event.preventDefault();
      form.classList.remove("over");
      const filled = [];
      const many = "many" in form.dataset;
      for (const file of event.dataTransfer.files) {
        filled.push(await put(file, form.elements[fieldOf(form, file)], many && filled.length > 0));
        if (many && !filled.at(-1)) break; // what is wrong with it stays to be read
      }
      submit(form, filled.every(Boolean));
    });
  }
}
