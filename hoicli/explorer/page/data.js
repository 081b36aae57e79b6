"use strict";
/* The data: facts and columns, each a script that calls back, loaded when first needed. */

const explorer = (() => {
  const TYPES = { i1: Int8Array, i2: Int16Array, i4: Int32Array, f4: Float32Array, f8: Float64Array };
  const held = new Map();
  const coming = new Map();

  function decoded(text) {
    if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
    const raw = atob(text);
    const bytes = new Uint8Array(raw.length);
    for (let at = 0; at < raw.length; at++) bytes[at] = raw.charCodeAt(at);
    return bytes;
  }

  function load(name) {
    if (!coming.has(name)) {
      coming.set(name, new Promise((done, failed) => {
        const script = document.createElement("script");
        script.src = `data/${name}.js`;
        script.addEventListener("load", () => { script.remove(); done(); });
        script.addEventListener("error", () => failed(new Error(`${script.src} cannot be read`)));
        document.head.append(script);
      }));
    }
    return coming.get(name);
  }

  return {
    /* What the scripts of data/ call. */
    facts: value => held.set("facts", value),
    images: value => held.set("images", value),
    chunk(name, type, text) { held.set(name, new TYPES[type](decoded(text).buffer)); },

    get: name => held.get(name),
    has: names => names.every(name => held.has(name)),
    load: names => Promise.all(names.map(load)),
  };
})();

/* The facts, and what is looked up in them. */
let facts = null;
const NONE = -1;

const column = name => explorer.get(name);
const ofModel = (model, name) => explorer.get(`model${model}.${name}`);
const imageName = image => explorer.get("images").id[image];
const qualifierOf = number => facts.classes[number][1];
const verbOf = number => facts.verbs[facts.classes[number][0]];
const className = number => `${verbOf(number)} ${qualifierOf(number)}`.trim();
const typeName = type => facts.types[type][0];
const typeWords = type => facts.types[type][1];
const MISSED = () => facts.types.length - 1;
const typeNumber = name => facts.types.findIndex(type => type[0] === name);
const letter = model => "AB"[model];

/* What fixing all errors of a type would add to the AP of a class, in points; null where the class has no AP. */
function gainOf(model, number, type) {
  const gains = facts.models[model].class_gains[typeName(type)];
  return gains ? gains[number] : null;
}
