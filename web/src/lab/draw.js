// Pictures of plain SVG, and tables behind pictures.
import { h } from '../dom.js';
import { table } from '../table.js';

/** An SVG element. */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children.flat());
  return element;
}

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
