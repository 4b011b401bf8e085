// Pictures of thousands of boxes on a canvas: drawn anew when their place changes its size, told where the pointer is, and
// saved as PNG or as SVG from the same boxes.
import { h } from '../dom.js';
import { css } from '../palette.js';
import { svg } from './draw.js';

let live = [];

/** Those that stand in the page: {id, canvas, svg()}. */
export const pictures = () => live.filter((one) => one.canvas.isConnected);

function paint(context, { boxes = [], lines = [], texts = [] }) {
  for (const { x1, y1, x2, y2, stroke, dash } of lines) {
    context.strokeStyle = stroke;
    context.lineWidth = 1.5;
    context.setLineDash(dash ? [5, 4] : []);
    context.beginPath();
    context.moveTo(x1, y1);
    context.lineTo(x2, y2);
    context.stroke();
  }
  context.setLineDash([]);
  for (const { x, y, w, h: high, fill, stroke } of boxes) {
    if (fill) {
      context.fillStyle = fill;
      context.fillRect(x, y, w, high);
    }
    if (stroke) {
      context.strokeStyle = stroke;
      context.lineWidth = 1.5;
      context.strokeRect(x, y, w, high);
    }
  }
  context.font = '12px system-ui, sans-serif';
  for (const { x, y, text, anchor = 'start', fill } of texts) {
    context.textAlign = anchor === 'middle' ? 'center' : anchor;
    context.fillStyle = fill ?? css('--soft');
    context.fillText(text, x, y);
  }
}

function asSvg(width, height, layers) {
  const root = svg('svg', { xmlns: 'http://www.w3.org/2000/svg', width, height, viewBox: `0 0 ${width} ${height}` }, svg('rect', { width, height, fill: css('--card') }));
  for (const { boxes = [], lines = [], texts = [] } of layers)
    root.append(
      ...lines.map(({ x1, y1, x2, y2, stroke, dash }) => svg('line', { x1, y1, x2, y2, stroke, 'stroke-width': 1.5, ...(dash && { 'stroke-dasharray': '5 4' }) })),
      ...boxes.map(({ x, y, w, h: high, fill, stroke }) => svg('rect', { x: x.toFixed(2), y: y.toFixed(2), width: w.toFixed(2), height: high.toFixed(2), fill: fill ?? 'none', ...(stroke && { stroke }) })),
      ...texts.map(({ x, y, text, anchor = 'start', fill }) => svg('text', { x, y, 'text-anchor': anchor, fill: fill ?? css('--soft'), 'font-size': 12, 'font-family': 'sans-serif' }, text)),
    );
  return root.outerHTML;
}

/**
 * of: {label, height, draw(width, height) → {boxes, lines, texts}, over(width, height) → the same, drawn above and more
 * often, tell(x, y, width, height) → what the pointer is over: {text, box} or null, click(x, y, width, height)}.
 * Returns {element, redraw(), refresh()}: everything anew, or only what is above.
 */
export function picture(id, of) {
  const canvas = h('canvas', { id, role: 'img', 'aria-label': of.label });
  const tip = h('div', { class: 'tip', hidden: '' });
  const element = h('div', { class: 'picture', style: `height:${of.height}px` }, canvas, tip);
  const below = document.createElement('canvas');
  let pointed = null;
  const size = () => [element.clientWidth || 900, of.height];
  function redraw() {
    const [width, height] = size();
    const ratio = globalThis.devicePixelRatio || 1;
    for (const one of [canvas, below]) {
      one.width = Math.round(width * ratio);
      one.height = Math.round(height * ratio);
    }
    const context = below.getContext('2d');
    context.scale(ratio, ratio);
    paint(context, of.draw(width, height));
    refresh();
  }
  function refresh() {
    const [width, height] = size();
    const ratio = globalThis.devicePixelRatio || 1;
    const context = canvas.getContext('2d');
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.drawImage(below, 0, 0);
    context.scale(ratio, ratio);
    if (of.over) paint(context, of.over(width, height));
    if (pointed?.box) paint(context, { boxes: [{ ...pointed.box, fill: undefined, stroke: css('--ink') }] });
  }
  const at = (event) => {
    const { left, top } = canvas.getBoundingClientRect();
    return [event.clientX - left, event.clientY - top, ...size()];
  };
  let waits = false;
  canvas.addEventListener('pointermove', (event) => {
    const place = at(event);
    if (waits) return;
    waits = true;
    requestAnimationFrame(() => {
      waits = false;
      pointed = of.tell?.(...place) ?? null;
      tip.hidden = !pointed;
      if (pointed) {
        tip.textContent = pointed.text;
        tip.style.left = `${Math.max(0, Math.min(place[0] + 14, place[2] - tip.offsetWidth))}px`;
        tip.style.top = `${Math.max(0, Math.min(place[1] + 14, place[3] - tip.offsetHeight))}px`;
      }
      refresh();
    });
  });
  canvas.addEventListener('pointerleave', () => { pointed = null; tip.hidden = true; refresh(); });
  if (of.click) canvas.addEventListener('click', (event) => of.click(...at(event)));
  new ResizeObserver(() => element.isConnected && redraw()).observe(element);
  live = live.filter((one) => one.id !== id);
  live.push({ id, canvas, svg: () => { const [width, height] = size(); return asSvg(width, height, [of.draw(width, height), of.over?.(width, height) ?? {}]); } });
  return { element, redraw, refresh };
}
