// A table whose columns sort when their heads are clicked, with a search where it is long.
import { h } from './dom.js';

let kept;

const kAtOnce = 40; // rows: more than are in sight
const kRest = 250; // ms

/** From now on a table is sorted and searched as the last one of its id was, and rows out of sight come when nothing has
 *  changed for a moment: whoever moves a slider waits for what is seen alone. */
export const keepTables = () => { kept = new Map(); };

/**
 * columns: [{title, value(row), show(value, row), text}], value sorts, show prints (an element or a string).
 * options: {id, sort: index of the column it starts sorted by, largest first; search(row) → text to search in; most}
 */
export function table(columns, rows, options = {}) {
  const before = kept?.get(options.id);
  let by = before?.by ?? options.sort ?? -1;
  let rising = before?.rising ?? false;
  let filter = before?.filter ?? '';
  const body = h('tbody');
  const heads = columns.map((column, index) =>
    h('th', { class: column.text ? 'text' : '', scope: 'col' }, h('button', { type: 'button', onclick: () => sort(index) }, column.title)),
  );
  const told = h('p');

  function sort(index) {
    rising = by === index ? !rising : Boolean(columns[index].text);
    by = index;
    fill();
  }
  const rowOf = (row) => h('tr', {}, columns.map((column) => {
    const content = column.show ? column.show(column.value(row), row) : column.value(row);
    return h('td', { class: `${column.text ? 'text' : ''} ${column.class ?? ''}`, title: column.class === 'name' ? column.value(row) : undefined }, content);
  }));
  let rest;
  function fill() {
    if (options.id) kept?.set(options.id, { by, rising, filter });
    let shown = filter ? rows.filter((row) => options.search(row).toLowerCase().includes(filter)) : [...rows];
    if (by >= 0) {
      const value = columns[by].value;
      const order = (a, b) => (typeof a === 'string' ? a.localeCompare(b) : a - b);
      shown.sort((a, b) => order(value(a), value(b)) * (rising ? 1 : -1));
    }
    heads.forEach((head, index) => {
      if (index === by) head.setAttribute('aria-sort', rising ? 'ascending' : 'descending');
      else head.removeAttribute('aria-sort');
    });
    told.textContent = shown.length === rows.length ? `${rows.length} rows` : `${shown.length} of ${rows.length} rows`;
    const scrolled = document.getElementById(options.id)?.scrollTop > 0;
    const atOnce = kept && options.id && !scrolled && !filter ? kAtOnce : shown.length;
    body.replaceChildren(...shown.slice(0, atOnce).map(rowOf));
    clearTimeout(rest);
    if (atOnce < shown.length) rest = setTimeout(() => body.isConnected && body.append(...shown.slice(atOnce).map(rowOf)), kRest);
  }
  fill();
  const grid = h('div', { class: 'scroll', id: options.id }, h('table', {}, h('thead', {}, h('tr', {}, heads)), body));
  if (!options.search) return grid;
  const box = h('input', {
    type: 'search', value: filter || undefined, placeholder: options.placeholder ?? 'search', 'aria-label': 'search',
    oninput: (event) => { filter = event.target.value.trim().toLowerCase(); fill(); },
  });
  return h('div', {}, h('div', { class: 'tools' }, box, told), grid);
}
