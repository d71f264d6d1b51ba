// The parameters of a game: sliders for those that change while it runs, fields for those that make it anew.

const element = (tag, more) => Object.assign(document.createElement(tag), more);

// Ends of a slider: the declared bounds, or the neighbourhood of the default value.
function ends(one) {
  const size = Math.abs(one.default) || 1;
  const low = one.low ?? (one.default < 0 || one.default === 0 ? -2 * size : 0), high = one.high ?? 3 * size;
  return [Math.min(low, one.value), Math.max(high, one.value)];
}

export function showParameters(place, game, ask) {
  const rows = game.parameters.map((one) => {
    const row = element("div", { className: "parameter" }), label = element("label", { textContent: one.name });
    const again = (value) => ask({ do: "open", game: game.id, envs: game.envs, config: { [one.name]: value } });
    row.append(label);
    let field;
    if (one.live) {
      const [low, high] = ends(one);
      field = element("input", { type: "number", step: "any", value: Number(one.value.toPrecision(6)) });
      const slider = element("input", { type: "range", min: low, max: high, step: (high - low) / 400, value: one.value });
      slider.setAttribute("aria-label", one.name);
      slider.oninput = () => {
        field.value = Number(Number(slider.value).toPrecision(4));
        ask({ do: "param", name: one.name, value: Number(field.value) });
      };
      field.onchange = () => {
        slider.value = field.value;
        ask({ do: "param", name: one.name, value: Number(field.value) });
      };
      row.append(field, slider);
    } else if (one.kind === "bool") {
      field = element("input", { type: "checkbox", checked: one.value });
      field.onchange = () => again(field.checked);
      row.append(field);
    } else if (one.choices.length) {
      field = element("select", {});
      field.append(...one.choices.map((choice) => new Option(choice, choice)));
      field.value = one.value;
      field.onchange = () => again(one.choices.find((choice) => String(choice) === field.value));
      row.append(field);
    } else {
      const number = one.kind === "int";
      field = element("input", { type: number ? "number" : "text", value: one.value });
      if (number) [field.step, field.min, field.max] = [1, one.low ?? "", one.high ?? ""];
      field.onchange = () => again(number ? Number(field.value) : field.value);
      row.append(field);
    }
    field.id = `parameter-${one.name}`;
    label.htmlFor = field.id;
    if (one.doc) row.append(element("small", { textContent: one.doc }));
    return row;
  });
  place.replaceChildren(...(rows.length ? rows : [element("p", { textContent: "This game has none." })]));
}
