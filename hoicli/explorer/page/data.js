"use strict";
/* The data: JSON values and columns, each a text that a script of data/ or an element of the page holds. */

const explorer = (() => {
  const TYPES = { i1: Int8Array, i2: Int16Array, i4: Int32Array, f4: Float32Array, f8: Float64Array };
  const held = new Map();
  const taken = new Map();
  const coming = new Map();

  function bytesOf(text) {
    if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
    const raw = atob(text), bytes = new Uint8Array(raw.length);
    for (let at = 0; at < raw.length; at++) bytes[at] = raw.charCodeAt(at);
    return bytes;
  }

  async function decoded(name, kind, text) {
    if (!window.DecompressionStream) throw new Error("this browser is too old: take one of 2023 or later");
    const stream = new Blob([bytesOf(text)]).stream().pipeThrough(new DecompressionStream("gzip"));
    const buffer = await new Response(stream).arrayBuffer();
    held.set(name, kind === "json" ? JSON.parse(new TextDecoder().decode(buffer)) : new TYPES[kind](buffer));
  }

  function load(name) {
    const inside = document.getElementById(`data/${name}`);
    if (inside) {
      const { textContent, dataset } = inside;
      inside.remove();  // its text is as large as the column
      return decoded(name, dataset.kind, textContent);
    }
    return new Promise((done, failed) => {
      const script = document.createElement("script");
      script.src = `data/${name}.js`;
      script.addEventListener("load", () => { script.remove(); taken.get(name).then(done, failed); });
      script.addEventListener("error", () => failed(new Error(`${script.src} cannot be read`)));
      document.head.append(script);
    });
  }

  return {
    /* What the scripts of data/ call. */
    take(name, kind, text) { taken.set(name, decoded(name, kind, text)); },

    get: name => held.get(name),
    has: names => names.every(name => held.has(name)),
    load: names => Promise.all(names.map(name => {
      if (!coming.has(name)) coming.set(name, load(name));
      return coming.get(name);
    })),
  };
})();

/* The facts, and what is looked up in them. Names are as the data have them; `visible` is for the eye. */
let facts = null;
const NONE = -1;

const column = name => explorer.get(name);
const ofModel = (model, name) => explorer.get(`model${model}.${name}`);
/* Marks that cannot be seen, or that turn the direction of writing, stand as their codes. */
const visible = text => text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu,
  mark => `\\u${mark.codePointAt(0).toString(16).padStart(4, "0")}`);
const imageId = image => column("images").id[image];
const imageName = image => visible(imageId(image));
const qualifierOf = number => facts.classes[number][1];
const verbOf = number => facts.verbs[facts.classes[number][0]];
const className = number => visible(`${verbOf(number)} ${qualifierOf(number)}`.trim());
/* The subject before the name of a class, where a dataset has others than persons: "dog " for a dog. */
const subjectWord = (prefix, row) => {
  const name = facts.subjects ? facts.subjects[column(`${prefix}.subject_label`)[row]] || "" : "";
  return name && name !== "person" ? `${visible(name)} ` : "";
};
const typeName = type => facts.types[type][0];
const typeWords = type => facts.types[type][1];
const MISSED = () => facts.types.length - 1;
const typeNumber = name => facts.types.findIndex(type => type[0] === name);
const modelName = model => visible(facts.models[model].name);
const two = () => facts.models.length > 1;
const ofModels = make => facts.models.map((model, at) => make(at, model));
const membersOf = subset => (facts.subsets.find(([name]) => name === subset) || [subset, []])[1];
