// A table behind a picture.
import { h } from './dom.js';
import { table } from './table.js';

const opened = new Set();

const kPause = 300; // ms without another answer before more is asked for

async function put(details, id, columns, rows) {
  const of = (known) => table(columns, known, { id: `${id}-table` });
  if (!rows.asked) return void details.append(of(rows()));
  const told = h('p', { role: 'status' }, 'Predicting …');
  details.append(told);
  await new Promise((done) => setTimeout(done, kPause));
  if (!details.isConnected) return;
  try {
    told.replaceWith(of(await rows()));
  } catch (error) {
    told.textContent = error.message;
  }
}

/** Rows that `ask` gives as a promise. */
export const asked = (ask) => Object.assign(ask, { asked: true });

const begun = new Set();

/** A table that is made when it is opened; what was open stays so when the answer changes. `rows` may give a promise: of
 *  rows that are asked for, once the answer stays for a moment. `open`: from the first time on. */
export function behind(id, title, columns, rows, open = false) {
  if (open && !begun.has(id)) opened.add(id);
  begun.add(id);
  const details = h('details', { class: 'behind', id });
  const fill = () => {
    if (details.open) opened.add(id);
    else opened.delete(id);
    if (details.open && details.children.length === 1) put(details, id, columns, rows);
  };
  details.append(h('summary', {}, title));
  details.open = opened.has(id);
  fill();
  details.addEventListener('toggle', fill);
  return details;
}
