// A control with its label, and below it a sentence on what is wrong with its value.
import { h } from '../dom.js';
import { count } from '../format.js';

let own = 0;
export const fresh = () => `control-${(own += 1)}`;

const fields = new Map(); // path → {control, mark(sentence)}
const wrong = new Map(); // path → {title, sentence, refused} of the fields that are marked
const listeners = [];

/** Fields whose value is no question: {title, sentence, refused: by the server}. */
export const wrongFields = () => [...wrong.values()];
export const onWrong = (listener) => listeners.push(listener);

/** A sentence on what is wrong with the value of a control: an element, and `mark(sentence)`, which shows it or takes it away
 *  with null. */
export function note(control) {
  const before = control.getAttribute('aria-describedby');
  const said = h('p', { id: `${control.id}-mistake`, class: 'mistake', hidden: '' });
  function mark(sentence) {
    said.textContent = sentence === null ? '' : sentence[0].toUpperCase() + sentence.slice(1); // reasons of the server begin small
    said.hidden = sentence === null;
    const describes = [before, sentence !== null && said.id].filter(Boolean).join(' ');
    for (const [name, value] of [['aria-invalid', sentence !== null && 'true'], ['aria-describedby', describes]]) {
      if (value) control.setAttribute(name, value);
      else control.removeAttribute(name);
    }
  }
  return { said, mark };
}

/** A field for a key of the question; `mark` shows a sentence below it, or takes it away with null. */
export function field(title, about, control, path = null) {
  control.id = fresh();
  const { said, mark: show } = note(control);
  const element = h('div', { class: 'field' }, h('label', { for: control.id, title: about }, title), control, said);
  function mark(sentence, refused = false) {
    show(sentence);
    if (sentence !== null) element.closest('details')?.setAttribute('open', '');
    if (sentence === null) wrong.delete(path);
    else wrong.set(path, { title, sentence, refused });
    for (const listener of listeners) listener();
  }
  if (path) fields.set(path, { control, mark });
  return { element, mark: (sentence) => (sentence !== null || wrong.has(path)) && mark(sentence) };
}

const given = ({ control }) => (control.type === 'checkbox' ? control.checked : control.value !== '');

/** Marks the field of a key that the server refuses; where the key has none, the fields of its parts that have a value. */
export function refuse(path, sentence) {
  const parts = [...fields].filter(([key, one]) => key.startsWith(`${path}.`) && given(one)).map(([, one]) => one);
  for (const { mark } of fields.has(path) ? [fields.get(path)] : parts) mark(sentence, true);
}

/** Takes away what the server said, once it answers. */
export function forgive() {
  for (const [path, { refused }] of [...wrong]) if (refused) fields.get(path).mark(null);
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
