// A control with its label, and below it a sentence on what is wrong with its value.
import { h } from '../dom.js';
import { count } from '../format.js';

let own = 0;
export const fresh = () => `control-${(own += 1)}`;

const marks = new Map(); // path → mark(sentence) of its field
const wrong = new Map(); // path → {title, sentence, refused} of the fields that are marked
const listeners = [];

/** Fields whose value is no question: {title, sentence, refused: by the server}. */
export const wrongFields = () => [...wrong.values()];
export const onWrong = (listener) => listeners.push(listener);

/** A field for a key of the question; `mark` shows a sentence below it, or takes it away with null. */
export function field(title, about, control, path = null) {
  control.id = fresh();
  const said = h('p', { id: `${control.id}-mistake`, class: 'mistake', hidden: '' });
  const element = h('div', { class: 'field' }, h('label', { for: control.id, title: about }, title), control, said);
  function mark(sentence, refused = false) {
    said.textContent = sentence ?? '';
    said.hidden = sentence === null;
    for (const [name, value] of [['aria-invalid', 'true'], ['aria-describedby', said.id]]) {
      if (sentence === null) control.removeAttribute(name);
      else control.setAttribute(name, value);
    }
    if (sentence === null) wrong.delete(path);
    else wrong.set(path, { title, sentence, refused });
    for (const listener of listeners) listener();
  }
  if (path) marks.set(path, mark);
  return { element, mark: (sentence) => (sentence !== null || wrong.has(path)) && mark(sentence) };
}

/** Marks the field of a key that the server refuses; false where no field has this key. */
export function refuse(path, sentence) {
  marks.get(path)?.(sentence, true);
  return marks.has(path);
}

/** Takes away what the server said, once it answers. */
export function forgive() {
  for (const [path, { refused }] of [...wrong]) if (refused) marks.get(path)(null);
}

/** A sentence on why `text` is no whole number from `least` to `most`; null for one that is. */
export function mistakeIn(text, least, most) {
  const range = `a whole number from ${count(least)} to ${count(most)}`;
  const written = text.trim();
  if (written === '') return `Enter ${range}.`;
  if (!/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(written)) return `“${written.slice(0, 20)}” is not a number. Enter ${range}.`;
  const value = Number(written);
  if (value < least) return `${written} is too small. Enter ${range}.`;
  if (value > most) return `${written} is too large. Enter ${range}.`;
  if (!Number.isInteger(value)) return `${written} is not a whole number. Enter ${count(Math.max(least, Math.floor(value)))} or ${count(Math.ceil(value))}.`;
  return null;
}
