// Pictures of thousands of boxes on a canvas: drawn anew when their place changes its size, told where the pointer is, and
// saved as PNG or as SVG from the same boxes.
import { kept } from '../chart.js';
import { h } from '../dom.js';
import { css } from '../palette.js';
import { svg } from './draw.js';

const live = new Map(); // id → what stands in the page

/** Those that stand in the page: {id, png(), svg()}. */
export const pictures = () => [...live.values()].filter((one) => one.element.isConnected);

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
  let filled;
  for (const { x, y, w, h: high, fill, stroke } of boxes) {
    if (fill) {
      if (fill !== filled) context.fillStyle = filled = fill;
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

let watched; // made with the first picture

function watch() {
  const of = (target) => [...live.values()].find(({ element }) => element === target);
  return {
    inSight: new IntersectionObserver((seen) => {
      for (const { target, isIntersecting } of seen) {
        const one = of(target);
        if (!one) continue;
        one.hidden = !isIntersecting;
        if (isIntersecting && one.stale && one.width) one.redraw();
      }
    }),
    sizes: new ResizeObserver((changed) => {
      for (const { target, contentRect } of changed) {
        const one = of(target);
        if (!one || !target.isConnected || contentRect.width === one.width) continue;
        one.width = contentRect.width;
        one.redraw();
      }
    }),
  };
}

/** Draws what has changed and is in sight, the rest when it comes into sight; forgets what is gone. */
export function drawPictures() {
  for (const [id, one] of live) {
    if (!one.element.isConnected) {
      for (const observer of Object.values(watched)) observer.unobserve(one.element);
      live.delete(id);
    } else if (one.stale && !one.hidden && one.width) one.redraw();
  }
}

/** The canvas of a size in pixels of the page, empty, and its context in these. */
function emptied(canvas, width, height) {
  const ratio = globalThis.devicePixelRatio || 1;
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  const context = canvas.getContext('2d');
  if (canvas.width !== wide || canvas.height !== high) [canvas.width, canvas.height] = [wide, high];
  else {
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, wide, high);
  }
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

/** Tells what the pointer is over, and frames it. */
function point(one, canvas, tip) {
  const at = (event) => {
    const { left, top } = canvas.getBoundingClientRect();
    return [event.clientX - left, event.clientY - top, one.width, one.of.height];
  };
  let waits = false;
  canvas.addEventListener('pointermove', (event) => {
    const place = at(event);
    if (waits) return;
    waits = true;
    requestAnimationFrame(() => {
      waits = false;
      one.pointed = one.of.tell?.(...place) ?? null;
      tip.hidden = !one.pointed;
      if (one.pointed) {
        tip.textContent = one.pointed.text;
        tip.style.left = `${Math.max(0, Math.min(place[0] + 14, place[2] - tip.offsetWidth))}px`;
        tip.style.top = `${Math.max(0, Math.min(place[1] + 14, place[3] - tip.offsetHeight))}px`;
      }
      one.refresh();
    });
  });
  canvas.addEventListener('pointerleave', () => { one.pointed = null; tip.hidden = true; one.refresh(); });
  canvas.addEventListener('click', (event) => one.of.click?.(...at(event)));
}

function made(id, of) {
  const canvas = h('canvas', { id, role: 'img', 'aria-label': of.label });
  const above = h('canvas', { 'aria-hidden': 'true', class: 'above' });
  const tip = h('div', { class: 'tip', hidden: '' });
  const element = h('div', { class: 'picture', id: `picture-${id}`, style: `height:${of.height}px` }, canvas, tip, above);
  const one = {
    id, of, element, canvas, width: 0, stale: true, hidden: false, pointed: null,
    redraw() {
      one.stale = false;
      paint(emptied(canvas, one.width, one.of.height), one.of.draw(one.width, one.of.height));
      one.refresh();
    },
    refresh() {
      const context = emptied(above, one.width, one.of.height);
      if (one.of.over) paint(context, one.of.over(one.width, one.of.height));
      if (one.pointed?.box) paint(context, { boxes: [{ ...one.pointed.box, fill: undefined, stroke: css('--ink') }] });
    },
    png() {
      const both = h('canvas', { width: canvas.width, height: canvas.height });
      const context = both.getContext('2d');
      context.fillStyle = css('--card');
      context.fillRect(0, 0, both.width, both.height);
      if (one.stale) one.redraw();
      for (const layer of [canvas, above]) context.drawImage(layer, 0, 0);
      return both;
    },
    svg: () => asSvg(one.width || 900, one.of.height, [one.of.draw(one.width || 900, one.of.height), one.of.over?.(one.width || 900, one.of.height) ?? {}]),
  };
  point(one, canvas, tip);
  watched ??= watch();
  for (const observer of Object.values(watched)) observer.observe(element);
  return one;
}

/**
 * of: {label, height, draw(width, height) → {boxes, lines, texts}, over(width, height) → the same, drawn above and more
 * often, tell(x, y, width, height) → what the pointer is over: {text, box} or null, click(x, y, width, height)}.
 * Returns {element, redraw(), refresh()}: everything anew, or only what is above. A picture that stands in the page stays
 * there and is drawn anew; its element is then a stand-in (see chart.js).
 */
export function picture(id, of) {
  const known = live.get(id);
  if (known?.element.isConnected) {
    Object.assign(known, { of, stale: true, pointed: null });
    known.canvas.setAttribute('aria-label', of.label);
    known.element.querySelector('.tip').hidden = true;
    return { element: h('div', { id: known.element.id, 'data-stand-in': '' }), redraw: known.redraw, refresh: known.refresh };
  }
  const one = made(id, of);
  live.set(id, one);
  kept.set(one.element.id, one.element);
  return one;
}
