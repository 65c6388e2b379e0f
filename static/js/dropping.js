// Files dropped on a form, or chosen in it, become the text of their field: seen, editable, and sent as such.
const MOST_BYTES = 262144;
const isQuantization = (file) => file.name.toLowerCase().includes("quant");

// `after` appends: a form that takes many files holds one after the other.
async function put(file, area, after = false) {
  const name = area.name;
  const message = document.getElementById(`msg-${name}`);
  if (file.size > Number(area.form.dataset.most ?? MOST_BYTES)) {
    message.textContent = "The file is larger than is read here.";
    return false;
  }
  message.textContent = "";
  const text = await file.text();
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
      for (const file of event.dataTransfer.files) {
        const after = "many" in form.dataset && filled.length > 0;
        filled.push(await put(file, form.elements[fieldOf(form, file)], after));
      }
      submit(form, filled.every(Boolean));
    });
  }
}
