// Pictures as PNG and SVG, numbers as CSV and JSON, each a file that the browser saves.
import { init, use } from 'echarts/core';
import { SVGRenderer } from 'echarts/renderers';
import { chartAt, charts, options } from '../chart.js';
import { escape, h } from '../dom.js';
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

const kLetter = 7; // px of a letter of a caption, about
const kCaption = 16; // px of a line of it

/** Lines of at most `width` pixels, broken at spaces where there are any. */
export function wrapped(texts, width) {
  const most = Math.max(20, Math.floor((width - 16) / kLetter));
  return texts.flatMap((text) => {
    const lines = [];
    for (const word of text.split(' ').flatMap((one) => one.match(new RegExp(`.{1,${most}}`, 'g')) ?? [])) {
      if (lines.length && lines.at(-1).length + 1 + word.length <= most) lines[lines.length - 1] += ` ${word}`;
      else lines.push(word);
    }
    return lines;
  });
}

/** An SVG with lines below it that say what it is of. */
export function captioned(text, lines) {
  const [width, height] = [/ width="([\d.]+)"/, / height="([\d.]+)"/].map((size) => Number(size.exec(text)[1]));
  const shown = wrapped(lines, width);
  const all = height + shown.length * kCaption + 8;
  const words = shown.map((line, i) => `<text x="8" y="${height + (i + 1) * kCaption}" fill="${css('--soft')}" font-size="12" font-family="monospace" xml:space="preserve">${escape(line)}</text>`).join('');
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${all}" viewBox="0 0 ${width} ${all}"><desc>${escape(lines.join('\n'))}</desc><rect width="${width}" height="${all}" fill="${css('--card')}"/>${text}${words}</svg>`;
}

/** A picture as the address of a PNG, with the same lines. */
function captionedPng(picture, lines, ratio) {
  const shown = wrapped(lines, picture.width / ratio);
  const canvas = h('canvas', { width: picture.width, height: picture.height + (shown.length * kCaption + 8) * ratio });
  const context = canvas.getContext('2d');
  context.fillStyle = css('--card');
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(picture, 0, 0);
  context.scale(ratio, ratio);
  context.fillStyle = css('--soft');
  context.font = '12px monospace';
  shown.forEach((line, i) => context.fillText(line, 8, picture.height / ratio + (i + 1) * kCaption));
  return canvas.toDataURL();
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

/** A menu of what can be saved of an answer: `answer()` → a function that gives all of it, or nothing; of the rows of the
 *  view: `rows()` → [[name, rows]]; `about()` → what it is all of: configuration and command. */
export function exportMenu(answer, rows, about) {
  const list = h('div', { class: 'buttons' });
  const dialog = h('dialog', { id: 'export', 'aria-label': 'Save' }, h('h2', {}, 'Save'), h('p', {}, 'Pictures of this view, the numbers of the answer, and the command that asks for them.'), list, h('form', { method: 'dialog' }, h('button', {}, 'Close')));
  document.body.append(dialog);
  const button = (title, run) => h('button', { type: 'button', onclick: run }, title);
  const image = (name, title, svg, png, ratio) => [
    button(`${title}, SVG`, () => saveText(`${name}.svg`, 'image/svg+xml', captioned(svg(), about()))),
    button(`${title}, PNG`, () => save(`${name}.png`, captionedPng(png(), about(), ratio))),
  ];
  return () => {
    const said = answer();
    list.replaceChildren(
      ...charts().flatMap((chart) => image(chart.place.id, words(chart.place.id).replaceAll('-', ' '), () => svgOf(chart), () => chartAt(chart.place.id).getRenderedCanvas({ pixelRatio: 2, backgroundColor: css('--card') }), 2)),
      ...pictures().flatMap(({ id, png, svg }) => image(id, words(id), svg, png, globalThis.devicePixelRatio || 1)),
      ...rows().map(([name, all]) => button(`${name}, CSV`, () => saveText(`${name}.csv`, 'text/csv', rowsAsCsv(all())))),
      ...(said ? [button('kernels, CSV', async () => saveText('kernels.csv', 'text/csv', csvOf(await said()))), button('answer, JSON', async () => saveText('prediction.json', 'application/json', JSON.stringify(await said(), null, 2)))] : []),
      button('command, SH', () => saveText('ridgeline.sh', 'text/plain', `# ${about()[0]}\n${about()[1]}\n`)),
    );
    dialog.showModal();
  };
}
