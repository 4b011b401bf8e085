// Pictures as PNG and SVG, numbers as CSV and JSON, each a file that the browser saves.
import { init, use } from 'echarts/core';
import { SVGRenderer } from 'echarts/renderers';
import { chartAt, charts, options } from '../chart.js';
import { h } from '../dom.js';
import { words } from '../format.js';
import { css } from '../palette.js';
import { pictures } from './picture.js';

use([SVGRenderer]);

function save(name, url) {
  h('a', { href: url, download: name }).click();
}
function saveText(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  save(name, url);
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/** A chart of the page as SVG text. */
export function svgOf({ place, make }) {
  const chart = init(null, null, { renderer: 'svg', ssr: true, width: place.clientWidth || 900, height: place.clientHeight || 400 });
  chart.setOption({ backgroundColor: css('--card'), ...options(make) });
  const text = chart.renderToSVGString();
  chart.dispose();
  return text;
}

const field = (value) => (/[",\n]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value));

/** Rows of values as CSV (RFC 4180). */
export const rowsAsCsv = (rows) => `${rows.map((row) => row.map(field).join(',')).join('\r\n')}\r\n`;

/** Kernels of a step as CSV (RFC 4180), base units. */
export function csvOf(prediction) {
  const columns = ['name', 'op', 'shape', 'class', 'count', 'time_s', 'limiter', 'flops', 'read_bytes', 'written_bytes', 'dram_bytes', 'l2_hit_rate', 'occupancy'].filter((key) => prediction.kernels.some((k) => k[key] !== undefined));
  return rowsAsCsv([columns, ...prediction.kernels.map((kernel) => columns.map((key) => kernel[key] ?? ''))]);
}

/** A menu of what can be saved of an answer: `answer()` → a function that gives all of it, or nothing; and of the rows of the view: `rows()` → [[name, rows]]. */
export function exportMenu(answer, rows = () => []) {
  const list = h('div', { class: 'buttons' });
  const dialog = h('dialog', { id: 'export', 'aria-label': 'Save' }, h('h2', {}, 'Save'), h('p', {}, 'Pictures of this view, and the numbers of the answer.'), list, h('form', { method: 'dialog' }, h('button', {}, 'Close')));
  document.body.append(dialog);
  const button = (title, run) => h('button', { type: 'button', onclick: run }, title);
  return () => {
    const said = answer();
    list.replaceChildren(
      ...charts().flatMap((chart) => {
        const name = words(chart.place.id).replaceAll('-', ' ');
        return [button(`${name}, SVG`, () => saveText(`${chart.place.id}.svg`, 'image/svg+xml', svgOf(chart))), button(`${name}, PNG`, () => save(`${chart.place.id}.png`, chartAt(chart.place.id).getDataURL({ pixelRatio: 2, backgroundColor: css('--card') })))];
      }),
      ...pictures().flatMap(({ id, canvas, svg }) => [button(`${words(id)}, SVG`, () => saveText(`${id}.svg`, 'image/svg+xml', svg())), button(`${words(id)}, PNG`, () => save(`${id}.png`, canvas.toDataURL()))]),
      ...rows().map(([name, all]) => button(`${name}, CSV`, () => saveText(`${name}.csv`, 'text/csv', rowsAsCsv(all())))),
      ...(said ? [button('kernels, CSV', async () => saveText('kernels.csv', 'text/csv', csvOf(await said()))), button('answer, JSON', async () => saveText('prediction.json', 'application/json', JSON.stringify(await said(), null, 2)))] : []),
    );
    dialog.showModal();
  };
}
