// A table behind a picture.
import { h } from './dom.js';
import { table } from './table.js';

const opened = new Set();

/** A table that is made when it is opened; what was open stays so when the answer changes. */
export function behind(id, title, columns, rows) {
  const details = h('details', { class: 'behind', id });
  const fill = () => {
    if (details.open) opened.add(id);
    else opened.delete(id);
    if (details.open && details.children.length === 1) details.append(table(columns, rows(), { id: `${id}-table` }));
  };
  details.append(h('summary', {}, title));
  details.open = opened.has(id);
  fill();
  details.addEventListener('toggle', fill);
  return details;
}
